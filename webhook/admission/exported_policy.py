"""The exported policy, restricted to the pods that the API server sends to the webhook. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from webhook.admission.registered_selection import selection_of_configuration, webhook_for_pods
from webhook.documents.documents import JsonObject, field
from webhook.mutation.exported.export import IDENTITY, Exported, export
from webhook.policy.policy_set import PolicySet


def exported_policy(
    policies: PolicySet, minor: int, namespace: str, configuration: JsonObject | None = None
) -> Exported:
    """Return the objects for the release 1.`minor`; `namespace` is the namespace of the webhook.

    `configuration` is the MutatingWebhookConfiguration of the webhook, whose selectors and conditions also apply to the
    exported policies. None means that they are those of `deploy/base`.

    Raises:
        InvalidInput: a selector or condition of the configuration is malformed.
    """
    excluded = ("kube-system", namespace, f"{namespace}-certs")
    found = export(policies, minor, excluded)
    webhook, selection = webhook_for_pods(configuration or {}), selection_of_configuration(configuration or {})
    if webhook is None or selection is None:
        return found
    return replace(found, objects=[_selected(each, webhook, selection.conditions) for each in found.objects])


def identity_of(content: JsonObject) -> str:
    """Return name and revision of the policy of an exported object, or "" for another object."""
    return str(field(content, "metadata", "annotations", IDENTITY) or "")


def _selected(content: JsonObject, webhook: Mapping[str, Any], conditions: tuple[tuple[str, str], ...]) -> JsonObject:
    """Return an exported policy with the selectors of `webhook` and with `conditions` added.

    Return a binding unchanged.
    """
    spec: JsonObject = content["spec"]
    if "matchConstraints" not in spec:
        return content
    constraints = dict(spec["matchConstraints"])
    for key in ("namespaceSelector", "objectSelector"):
        constraints[key] = _both(constraints.get(key) or {}, webhook.get(key) or {})
    others = [{"name": name, "expression": expression} for name, expression in conditions]
    matching = {"matchConstraints": constraints, "matchConditions": [*others, *spec.get("matchConditions", ())]}
    return content | {"spec": spec | matching}


def _both(own: JsonObject, registered: JsonObject) -> JsonObject:
    """Return the label selector that selects what both select.

    matchLabels become matchExpressions, because both selectors may have the same key.
    """
    expressions = []
    for each in (own, registered):
        labels = each.get("matchLabels") or {}
        expressions += [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
        expressions += [one for one in each.get("matchExpressions") or () if one not in expressions]
    return {"matchExpressions": expressions} if expressions else {}

"""The exported policy: the objects of the exporter, for the pods that the webhook is called for. Pure."""

from dataclasses import replace

from certs.webhook_rules import PODS
from webhook.admission.registered_selection import selection_of_configuration
from webhook.documents.documents import JsonObject, field
from webhook.mutation.exported.export import Exported, export
from webhook.policy.policy_set import PolicySet

IDENTITY = "placement.maip.mxsf.io/policy"
"""The annotation of exported objects with name and revision of their policy."""


def exported_policy(
    policies: PolicySet, minor: int, namespace: str, configuration: JsonObject | None = None
) -> Exported:
    """Return the objects for the release 1.`minor`, for the pods that are sent to the webhook in `namespace`.

    `configuration` is its MutatingWebhookConfiguration; None: the selectors are those of `deploy/base`.

    Raises:
        InvalidInput: a selector or condition of the configuration is malformed.
    """
    excluded = ("kube-system", namespace, f"{namespace}-certs")
    found = export(policies, minor, excluded)
    webhook = _webhook_for_pods(configuration or {})
    if webhook is None:
        return found
    selection = selection_of_configuration(configuration or {})
    conditions = selection.conditions if selection else ()
    return replace(found, objects=[_selected(each, webhook, conditions) for each in found.objects])


def identity_of(content: JsonObject) -> str:
    """Return name and revision of the policy of an exported object; empty if it has none."""
    return str(field(content, "metadata", "annotations", IDENTITY) or "")


def _webhook_for_pods(configuration: JsonObject) -> JsonObject | None:
    webhooks = configuration.get("webhooks")
    found = webhooks if isinstance(webhooks, list) else []
    return next((each for each in found if isinstance(each, dict) and each.get("name") == PODS), None)


def _selected(content: JsonObject, webhook: JsonObject, conditions: tuple[tuple[str, str], ...]) -> JsonObject:
    """Return a policy that must also meet the selectors of `webhook` and `conditions`; bindings as they are."""
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
    """Return the label selector that selects what both select. Labels become expressions: both may name one."""
    expressions = []
    for each in (own, registered):
        labels = each.get("matchLabels") or {}
        expressions += [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
        expressions += [one for one in each.get("matchExpressions") or () if one not in expressions]
    return {"matchExpressions": expressions} if expressions else {}

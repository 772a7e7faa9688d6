"""The webhooks that the API server calls for a pod, by rules, selectors and matchConditions. Pure.

Source: k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go, ShouldCallHook
"""

from collections.abc import Mapping
from typing import Any

from webhook.documents.documents import JsonObject
from webhook.documents.parts import listed, texts
from webhook.kube.cel.expression import compiled
from webhook.kube.reader import Reader
from webhook.kube.selectors import LabelSelector, read_label_selector, selector_matches

DEFAULT_TIMEOUT_SECONDS = 10


def is_called_for_pods(webhook: JsonObject) -> bool:
    """Return whether a rule of `webhook` includes the creation of pods."""
    wanted = {"operations": {"CREATE", "*"}, "apiGroups": {"", "*"}, "apiVersions": {"v1", "*"}}
    wanted["resources"] = {"pods", "*", "*/*"}
    return any(
        all(not values.isdisjoint(_values(rule, name)) for name, values in wanted.items())
        for rule in listed(webhook, "rules")
    )


def namespaces_of(webhook: JsonObject) -> LabelSelector:
    """Return the namespaceSelector of `webhook`. A malformed selector selects every namespace."""
    reader = Reader(webhook)
    selector = read_label_selector(reader, "namespaceSelector") or ()
    return () if reader.errors else selector


def selects_namespace(webhook: JsonObject, labels: Mapping[str, str]) -> bool:
    """Return whether the namespaceSelector of `webhook` selects a namespace with `labels`."""
    return selector_matches(namespaces_of(webhook), labels)


def selects_pods_of(selector: Any, workload: JsonObject) -> bool:
    """Return whether `selector`, a label selector of another object, selects the pods of a workload."""
    labels = texts(workload, "spec", "template", "metadata", "labels")
    return selector_matches(read_label_selector(Reader({"selector": selector}), "selector"), labels)


def may_send_pod(webhook: JsonObject, namespace: str) -> bool:
    """Return whether `webhook` may be called for a plain pod in `namespace`. The namespaceSelector is not evaluated.

    A webhook with an objectSelector is only called for pods with certain labels, so it is not called for a plain pod. A
    condition that cannot be evaluated counts as true.
    """
    if webhook.get("objectSelector"):
        return False
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": namespace, "labels": {}, "annotations": {}},
        "spec": {"containers": [{"name": "main", "image": "image"}], "schedulerName": "default-scheduler"},
    }
    request = {"operation": "CREATE", "namespace": namespace, "dryRun": False}
    variables: dict[str, Any] = {"object": pod, "oldObject": None, "request": request}
    conditions = listed(webhook, "matchConditions")
    return all(compiled(str(each.get("expression"))).holds(variables) is not False for each in conditions)


def labels_selected_by(webhook: JsonObject) -> dict[str, str]:
    """Return labels that the objectSelector of `webhook` selects, or none if it requires no labels."""
    found = texts(webhook, "objectSelector", "matchLabels")
    for each in listed(webhook, "objectSelector", "matchExpressions"):
        if each.get("operator") in ("In", "Exists"):
            found[str(each.get("key"))] = next(iter(_values(each, "values")), "true")
    return found


def timeout_seconds(webhook: JsonObject) -> int:
    """Return the seconds that the API server waits for `webhook`."""
    found = webhook.get("timeoutSeconds")
    return found if isinstance(found, int) else DEFAULT_TIMEOUT_SECONDS


def _values(rule: JsonObject, name: str) -> list[str]:
    found = rule.get(name)
    return [str(each) for each in found] if isinstance(found, list) else []

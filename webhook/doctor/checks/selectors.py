"""The webhooks are not called for objects of kube-system and their own namespace."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.installation import Installation, JsonObject, listed, name_of
from webhook.doctor.matching import is_called_for_pods, may_send_pod, selects_namespace
from webhook.doctor.source import Source
from webhook.kube.documents import field

_SYSTEM = "kube-system"


@check(
    "selectors",
    "A webhook is called for kube-system or its own namespace, whose objects must be created without it, or for none",
    "exclude both with a namespaceSelector on `kubernetes.io/metadata.name`",
    Source.CONFIGURATIONS,
    Source.NAMESPACES,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each webhook and namespace; an error if objects there are refused while no server answers."""
    own = installation.target.namespace
    yield from _selecting_none(installation)
    caught = {
        index: names
        for index, webhook in enumerate(installation.webhooks)
        if _is_of_namespaces(webhook)
        and (names := [name for name in dict.fromkeys((_SYSTEM, own)) if _catches(installation, webhook, name)])
    }
    command = commands.patched(
        installation, {f"/webhooks/{index}/namespaceSelector": _excluding(installation, index) for index in caught}
    )
    for index, names in caught.items():
        webhook = installation.webhooks[index]
        fails = webhook.get("failurePolicy", "Fail") == "Fail"
        effect = "are refused" if fails else "wait for the timeout"
        whose = " and ".join("network and storage" if name == _SYSTEM else "the webhook itself" for name in names)
        objects = "pods" if is_called_for_pods(webhook) else "workload objects"
        yield Fault(
            Severity.ERROR if fails else Severity.WARNING,
            f"{installation.place}: webhooks[{index}].namespaceSelector",
            f"selects {' and '.join(names)}: while no server answers, {objects} of {whose} {effect}",
            command,
        )


def _catches(installation: Installation, webhook: JsonObject, namespace: str) -> bool:
    labels = installation.namespace_labels(namespace)
    return selects_namespace(webhook, labels) and may_send_pod(webhook, namespace)


def _excluding(installation: Installation, index: int) -> JsonObject:
    """Return the namespaceSelector of a webhook with an expression that excludes both namespaces."""
    selector: JsonObject = field(installation.webhooks[index], "namespaceSelector") or {}
    values = [_SYSTEM, installation.target.namespace]
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": values}
    return {**selector, "matchExpressions": [*listed(selector, "matchExpressions"), excluded]}


def _selecting_none(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if the webhook for pods is called in no namespace."""
    if installation.pods_webhook is None or not installation.of(Source.NAMESPACES):
        return
    place, webhook = installation.pods_webhook
    names = map(name_of, installation.of(Source.NAMESPACES))
    if not any(selects_namespace(webhook, installation.namespace_labels(name)) for name in names):
        what = "selects no namespace of the cluster, so no pod is sent"
        remedy = "label the namespaces that it is to select, or correct the selector"
        yield Fault(Severity.WARNING, f"{place}.namespaceSelector", what, remedy)


def _is_of_namespaces(webhook: JsonObject) -> bool:
    """Return whether a rule has objects in namespaces, and not only Namespaces themselves."""
    return any(rule.get("resources") != ["namespaces"] for rule in listed(webhook, "rules"))

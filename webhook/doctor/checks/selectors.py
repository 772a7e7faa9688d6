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
    for index, webhook in enumerate(installation.webhooks):
        if not _is_of_namespaces(webhook):
            continue
        for namespace in dict.fromkeys((_SYSTEM, own)):
            labels = installation.namespace_labels(namespace)
            if not (selects_namespace(webhook, labels) and may_send_pod(webhook, namespace)):
                continue
            fails = webhook.get("failurePolicy", "Fail") == "Fail"
            effect = "are refused" if fails else "wait for the timeout"
            objects = "pods" if is_called_for_pods(webhook) else "workload objects"
            whose = "of the webhook itself" if namespace == own else "of network and storage"
            yield Fault(
                Severity.ERROR if fails else Severity.WARNING,
                f"{installation.place}: webhooks[{index}].namespaceSelector",
                f"selects {namespace}: while no server answers, {objects} {whose} {effect}",
                _excluding(installation, index, own),
            )


def _excluding(installation: Installation, index: int, own: str) -> str:
    """Return the command that adds an expression to the namespaceSelector of a webhook."""
    selector = field(installation.webhooks[index], "namespaceSelector") or {}
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [_SYSTEM, own]}
    expressions = [*listed(selector, "matchExpressions"), excluded]
    wanted = {**selector, "matchExpressions": expressions}
    return commands.patched(installation, f"/webhooks/{index}/namespaceSelector", wanted)


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

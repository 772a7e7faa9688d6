"""The webhook is not called for the pods of kube-system and its own namespace."""

from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.installation import Installation
from webhook.doctor.matching import is_called_for_pods, may_send_pod, selects_namespace
from webhook.doctor.source import Source

_SYSTEM = "kube-system"


@check(
    "selectors",
    "The webhook is called for the pods of kube-system or of its own namespace, which must start without it",
    "exclude both with a namespaceSelector on `kubernetes.io/metadata.name`",
    Source.CONFIGURATIONS,
    Source.NAMESPACES,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each webhook and namespace; an error if pods there are refused while no server answers."""
    for index, webhook in enumerate(installation.webhooks):
        if not is_called_for_pods(webhook):
            continue
        for namespace in dict.fromkeys((_SYSTEM, installation.target.namespace)):
            labels = installation.namespace_labels(namespace)
            if not (selects_namespace(webhook, labels) and may_send_pod(webhook, namespace)):
                continue
            fails = webhook.get("failurePolicy", "Fail") == "Fail"
            effect = "cannot start" if fails else "wait for its timeout"
            yield Fault(
                Severity.ERROR if fails else Severity.WARNING,
                f"{installation.place}: webhooks[{index}].namespaceSelector",
                f"selects {namespace}: while no server answers, pods there {effect}, the webhook's own included"
                if namespace != _SYSTEM
                else f"selects {namespace}: while no server answers, pods of network and storage {effect}",
                f"add to matchExpressions: kubernetes.io/metadata.name NotIn [{_SYSTEM}, "
                f"{installation.target.namespace}]",
            )

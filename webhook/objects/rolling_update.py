"""Whether the rolling update of a Deployment can start while its running pods stay."""

from typing import Any

from webhook.documents.documents import field
from webhook.kube.api.admission import JsonObject
from webhook.kube.workloads.pod_template_path import WorkloadKind

_DEFAULT_UNAVAILABLE = "25%"


def keeps_all_pods(content: JsonObject, kind: WorkloadKind) -> bool:
    """Return whether the update of `content` creates a pod before it removes one: maxUnavailable is 0.

    Percentages are rounded down, so the default of 25 % is 0 for up to three replicas.

    Source: k8s.io/kubernetes/pkg/controller/deployment/util/deployment_util.go, ResolveFenceposts
    """
    if (kind.group, kind.kind) != ("apps", "Deployment"):
        return False
    strategy: Any = field(content, "spec", "strategy", "type")
    replicas: Any = field(content, "spec", "replicas")
    rolling = (field(content, "spec", "strategy", "rollingUpdate", name) for name in ("maxUnavailable", "maxSurge"))
    unavailable, surge = (_DEFAULT_UNAVAILABLE if each is None else each for each in rolling)
    number = replicas if isinstance(replicas, int) else 1
    return strategy in (None, "RollingUpdate") and _scaled(unavailable, number) == 0 and _scaled(surge, 100) != 0


def _scaled(value: object, number: int) -> int | None:
    """Return a count, or a percentage of `number`, rounded down; None for a value that is neither."""
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal():
        return int(value[:-1][:9]) * number // 100
    return None

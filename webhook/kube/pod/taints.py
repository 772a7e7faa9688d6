"""Taints and tolerations."""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from webhook.kube.reader import Reader

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

# A toleration of this key allows a pod on a node that is marked unschedulable.
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

# Prefixes of the taint keys with which Kubernetes marks the state of a node.
CONDITION_DOMAINS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")

# Keys with which autoscalers, network and storage plugins and the GPU operator mark a node that starts, is upgraded or
# is deleted. A key that ends with "/" stands for all keys of that domain.
# Source: k8s.io/autoscaler/cluster-autoscaler/utils/taints/taints.go, sigs.k8s.io/karpenter/pkg/apis/v1/taints.go, and
# the documentation of Cilium ("Taint Effects"), the CSI drivers of AWS ("Node Startup Taint") and the GPU operator
TEMPORARY_TAINTS = (
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "karpenter.sh/unregistered",
    "node.cilium.io/agent-not-ready",
    "ebs.csi.aws.com/agent-not-ready",
    "efs.csi.aws.com/agent-not-ready",
    "fsx.csi.aws.com/agent-not-ready",
    "nvidia.com/gpu-driver-upgrade",
)

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY_TAINTS = frozenset((_NOT_READY, _UNREACHABLE))


class Taint(NamedTuple):
    """A taint of a node; `value` may be empty."""

    key: str
    value: str
    effect: str

    @classmethod
    def of(cls, taint: Mapping[str, Any]) -> "Taint":
        """Return the taint in a raw API object."""
        return cls(taint.get("key") or "", taint.get("value") or "", taint.get("effect") or "")

    @classmethod
    def read(cls, taint: Reader) -> "Taint":
        """Return the taint in `taint`, which reports fields with wrong types."""
        return cls(taint.text("key"), taint.text("value"), taint.text("effect"))


def is_temporary(key: str, listed: Collection[str] = TEMPORARY_TAINTS) -> bool:
    """Return true if `key` is of a temporary taint: of Kubernetes, or in `listed`, by domain if it ends in "/"."""
    return key.startswith(CONDITION_DOMAINS) or key in listed or "".join(key.partition("/")[:2]) in listed


class Toleration(NamedTuple):
    """A toleration of a pod, without tolerationSeconds, which no scheduler reads. `value` is empty for `Exists`."""

    key: str
    operator: str
    value: str
    effect: str

    @classmethod
    def of(cls, toleration: Mapping[str, Any]) -> "Toleration":
        """Return the toleration in a raw API object; an empty operator is Equal."""
        get = toleration.get
        operator = get("operator") or "Equal"
        return cls(get("key") or "", operator, "" if operator == "Exists" else get("value") or "", get("effect") or "")

    def tolerates(self, taint: Taint) -> bool:
        """Return true if the toleration tolerates `taint`.

        An empty effect matches every effect, and an empty key matches every key. `Lt` and `Gt` tolerate nothing,
        because their feature gate TaintTolerationComparisonOperators is alpha and off by default.

        Source: k8s.io/api/core/v1/toleration.go, ToleratesTaint
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Equal":
            return self.value == taint.value
        return self.operator == "Exists"


def any_tolerates(tolerations: AbstractSet[Toleration], taint: Taint) -> bool:
    """Return true if one of `tolerations`, a set because there can be thousands, tolerates `taint`."""
    key, value, effect = taint
    return (
        (key, "Equal", value, effect) in tolerations
        or (key, "Exists", "", effect) in tolerations
        or (key, "Equal", value, "") in tolerations
        or (key, "Exists", "", "") in tolerations
        or ("", "Exists", "", "") in tolerations
        or ("", "Exists", "", effect) in tolerations
        or ("", "Equal", value, effect) in tolerations
        or ("", "Equal", value, "") in tolerations
    )


def keeps_away(taint: Taint, tolerations: AbstractSet[Toleration]) -> bool:
    """Return true if kube-scheduler places no pod with `tolerations` on a node with `taint`."""
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any_tolerates(tolerations, taint)


def with_default_tolerations(tolerations: Iterable[Toleration]) -> frozenset[Toleration]:
    """Return `tolerations` with the default tolerations for not-ready and unreachable nodes that the API server adds.

    Source: k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds/admission.go
    """
    own = frozenset(tolerations)
    keys = {each.key for each in own if each.effect in ("", NO_EXECUTE)}
    if "" in keys:
        return own
    return frozenset((*own, *(each for each in _DEFAULT_TOLERATIONS if each.key not in keys)))


_DEFAULT_TOLERATIONS = (
    Toleration(_NOT_READY, "Exists", "", NO_EXECUTE),
    Toleration(_UNREACHABLE, "Exists", "", NO_EXECUTE),
)


def covers(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> bool:
    """Return true if `wide` tolerates every taint that `narrow` tolerates, for at least as long.

    `tolerationSeconds` limits the time under a NoExecute taint. Without it, the time is not limited.

    Source: k8s.io/kubernetes/pkg/util/tolerations/tolerations.go, isSuperset
    """
    if wide.get("key") and wide.get("key") != narrow.get("key"):
        return False
    wider, narrower = Toleration.of(wide), Toleration.of(narrow)
    if wider.effect and wider.effect != narrower.effect:
        return False
    most, seconds = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    if narrower.effect in ("", NO_EXECUTE) and most is not None and (seconds is None or seconds > most):
        return False
    if wider.operator == "Exists":
        return True
    return (wider.operator, wider.value) == (narrower.operator, narrower.value)

"""Topology spread constraints of a pending pod."""

from collections.abc import Mapping
from typing import NamedTuple

from webhook.kube.names import HOSTNAME_LABEL, ZONE_LABEL
from webhook.kube.reader import Reader
from webhook.kube.selectors import LabelRequirement, LabelSelector, read_label_selector

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"

_HONOR = "Honor"
_IGNORE = "Ignore"
_INT32 = 2**31 - 1


class SpreadConstraint(NamedTuple):
    """One TopologySpreadConstraint; the selector includes its `matchLabelKeys`.

    `honors_affinity`: nodes that do not match the pod's nodeSelector and node affinity do not count. `honors_taints`:
    nodes with untolerated taints do not count.
    """

    topology_key: str
    max_skew: int
    when_unsatisfiable: str
    selector: LabelSelector | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


# Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/plugin.go, systemDefaultConstraints
SYSTEM_DEFAULT_CONSTRAINTS = (
    SpreadConstraint(HOSTNAME_LABEL, 3, SCHEDULE_ANYWAY, None),
    SpreadConstraint(ZONE_LABEL, 5, SCHEDULE_ANYWAY, None),
)


def read_spread_constraints(spec: Reader, labels: Mapping[str, str]) -> tuple[SpreadConstraint, ...]:
    """Return the constraints of a pod with `spec` and `labels`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/common.go,
    filterTopologySpreadConstraints
    """
    if spec.raw.get("topologySpreadConstraints") is None:
        return ()
    return tuple([_constraint(each, labels) for each in spec.objects("topologySpreadConstraints")])


def _constraint(constraint: Reader, labels: Mapping[str, str]) -> SpreadConstraint:
    selector, keys = read_label_selector(constraint, "labelSelector"), constraint.texts("matchLabelKeys")
    if selector is not None:
        selector += tuple([LabelRequirement(key, "In", (labels[key],)) for key in keys if key in labels])
    affinity_policy, taints_policy = constraint.text("nodeAffinityPolicy"), constraint.text("nodeTaintsPolicy")
    return SpreadConstraint(
        topology_key=constraint.text("topologyKey"),
        max_skew=_positive(constraint, "maxSkew"),
        when_unsatisfiable=constraint.text("whenUnsatisfiable"),
        selector=selector,
        min_domains=1 if constraint.raw.get("minDomains") is None else _positive(constraint, "minDomains"),
        honors_affinity=(affinity_policy or _HONOR) == _HONOR,
        honors_taints=(taints_policy or _IGNORE) == _HONOR,
    )


def _positive(constraint: Reader, key: str) -> int:
    number = constraint.integer(key)
    if not 1 <= number <= _INT32:
        constraint.error(key, constraint.raw.get(key), f"must be in the range 1-{_INT32}")
        return 1
    return number

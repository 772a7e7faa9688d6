"""Topology spread constraints of a pending pod."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

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


def read_spread_constraints(
    reader: Reader, spec: Mapping[str, Any], labels: Mapping[str, str]
) -> tuple[SpreadConstraint, ...]:
    """Return the constraints of a pod with `spec` and `labels`; report malformed fields to `reader`.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/common.go,
    filterTopologySpreadConstraints
    """
    constraints = spec.get("topologySpreadConstraints")
    return () if constraints is None else tuple(_constraints(reader, constraints, labels))


def _constraints(reader: Reader, value: Any, labels: Mapping[str, str]) -> Iterator[SpreadConstraint]:
    for path, constraint in reader.objects(value, "spec.topologySpreadConstraints"):
        selector = read_label_selector(reader, constraint.get("labelSelector"), f"{path}.labelSelector")
        keys = reader.texts(constraint.get("matchLabelKeys"), f"{path}.matchLabelKeys")
        if selector is not None:
            selector += tuple([LabelRequirement(key, "In", (labels[key],)) for key in keys if key in labels])
        affinity_policy = reader.text(constraint.get("nodeAffinityPolicy"), f"{path}.nodeAffinityPolicy")
        taints_policy = reader.text(constraint.get("nodeTaintsPolicy"), f"{path}.nodeTaintsPolicy")
        min_domains = constraint.get("minDomains")
        yield SpreadConstraint(
            topology_key=reader.text(constraint.get("topologyKey"), f"{path}.topologyKey"),
            max_skew=_positive(reader, constraint.get("maxSkew"), f"{path}.maxSkew"),
            when_unsatisfiable=reader.text(constraint.get("whenUnsatisfiable"), f"{path}.whenUnsatisfiable"),
            selector=selector,
            min_domains=1 if min_domains is None else _positive(reader, min_domains, f"{path}.minDomains"),
            honors_affinity=(affinity_policy or _HONOR) == _HONOR,
            honors_taints=(taints_policy or _IGNORE) == _HONOR,
        )


def _positive(reader: Reader, value: Any, path: str) -> int:
    number = reader.integer(value, path)
    if not 1 <= number <= _INT32:
        reader.error(path, value, f"must be in the range 1-{_INT32}")
        return 1
    return number

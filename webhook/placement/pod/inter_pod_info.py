"""The parts of a pending pod that relate it to other pods, including topology spread constraints."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from webhook.cluster.index.pod_term import NO_TERMS, PodTerms, read_pod_terms
from webhook.cluster.objects.selecting_objects import Owner
from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import DEFAULT_NAMESPACE, HOSTNAME_LABEL, ZONE_LABEL
from webhook.kube.reader import Reader
from webhook.kube.selectors import LabelRequirement, LabelSelector, read_label_selector

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"

_HONOR = "Honor"
_IGNORE = "Ignore"
_INT32 = 2**31 - 1


class SpreadConstraint(NamedTuple):
    """One TopologySpreadConstraint. The selector includes its `matchLabelKeys`.

    `honors_affinity` is true if nodes that do not match the pod's nodeSelector and node affinity do not count.
    `honors_taints` is true if nodes with untolerated taints do not count.
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


class InterPodInfo(NamedTuple):
    """The namespace, labels and controller by which a pod is selected, its affinity terms and spread constraints."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()
    owner: Owner | None = None
    terms: PodTerms = NO_TERMS
    spread: tuple[SpreadConstraint, ...] = ()

    @classmethod
    def of(cls, metadata: Reader, spec: Reader) -> "InterPodInfo":
        """Return the info of a pod with `metadata` and `spec`."""
        namespace, labels = metadata.text("namespace") or DEFAULT_NAMESPACE, metadata.text_map("labels")
        return cls(
            namespace,
            tuple(labels.items()),
            None if metadata.raw.get("ownerReferences") is None else _owner(metadata),
            NO_TERMS if spec.raw.get("affinity") is None else read_pod_terms(spec, namespace, labels),
            read_spread_constraints(spec, labels),
        )

    def normalized_for(self, snapshot: Snapshot) -> "InterPodInfo":
        """Return the info without the parts that nothing on `snapshot` reads, so that more pods are equal."""
        owner = self.owner if not self.spread and self.owner is not None and self.owner.is_looked_up else None
        read = {*snapshot.pods.term_keys, *snapshot.nominated.term_keys, *self._read_keys()}
        if not self.spread:
            read |= snapshot.workloads.read_keys(self.namespace, owner)
        labels = tuple([label for label in self.labels if label[0] in read])
        is_related = bool(self.terms or self.spread or owner)
        is_selected = is_related or bool(snapshot.pods.has_terms or snapshot.workloads or snapshot.left_out.names)
        return InterPodInfo(self.namespace if is_selected else "", labels, owner, self.terms, self.spread)

    def _read_keys(self) -> Iterator[str]:
        for term in self.terms:
            for requirement in term.selector or ():
                yield requirement.key
        for constraint in self.spread:
            for requirement in constraint.selector or ():
                yield requirement.key


def _owner(metadata: Reader) -> Owner | None:
    for owner in metadata.objects("ownerReferences"):
        if owner.raw.get("controller") is True:
            return Owner(owner.text("apiVersion"), owner.text("kind"), owner.text("name"))
    return None

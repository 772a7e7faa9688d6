"""The parts of a pending pod that relate it to other pods, with its topology spread constraints."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.cluster.index.pod_term import NO_TERMS, PodTerms, read_pod_terms
from webhook.cluster.objects.workloads import Owner
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


@dataclass(frozen=True, slots=True)
class InterPodInfo:
    """The namespace, labels and controller that other pods select a pod by, and its terms and spread constraints."""

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()
    owner: Owner | None = None
    terms: PodTerms = NO_TERMS
    spread: tuple[SpreadConstraint, ...] = ()

    @classmethod
    def of(cls, reader: Reader, pod: Mapping[str, Any]) -> "InterPodInfo":
        """Return the info of `pod`, a raw API object; report malformed fields to `reader`."""
        metadata = reader.object(pod.get("metadata"), "metadata")
        spec = reader.object(pod.get("spec"), "spec")
        namespace = reader.text(metadata.get("namespace"), "metadata.namespace") or DEFAULT_NAMESPACE
        labels = reader.text_map(metadata.get("labels"), "metadata.labels")
        affinity = spec.get("affinity")
        return cls(
            namespace,
            tuple(labels.items()),
            _owner(reader, metadata.get("ownerReferences")),
            NO_TERMS if affinity is None else read_pod_terms(reader, affinity, namespace, labels),
            read_spread_constraints(reader, spec, labels),
        )

    def normalized_for(self, snapshot: Snapshot) -> "InterPodInfo":
        """Return the info without what nothing on `snapshot` reads, so that pods of one template are equal."""
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


def _owner(reader: Reader, references: Any) -> Owner | None:
    """Return the controller among the owner references; there is at most one."""
    if references is None:
        return None
    owner = None
    for path, reference in reader.objects(references, "metadata.ownerReferences"):
        if owner is None and reference.get("controller") is True:
            owner = Owner(
                reader.text(reference.get("apiVersion"), f"{path}.apiVersion"),
                reader.text(reference.get("kind"), f"{path}.kind"),
                reader.text(reference.get("name"), f"{path}.name"),
            )
    return owner

"""The parts of a pending pod that relate it to other pods."""

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.cluster.index.pod_term import NO_TERMS, PodTerms, read_pod_terms
from webhook.cluster.objects.workloads import Owner
from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.reader import Reader
from webhook.placement.pod.spread_constraint import SpreadConstraint, read_spread_constraints


@dataclass(frozen=True, slots=True)
class InterPodInfo:
    """The namespace, labels and controller that other pods select a pod by, and its terms and spread constraints."""

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


def _owner(metadata: Reader) -> Owner | None:
    """Return the controller among the owner references; there is at most one."""
    for owner in metadata.objects("ownerReferences"):
        if owner.raw.get("controller") is True:
            return Owner(owner.text("apiVersion"), owner.text("kind"), owner.text("name"))
    return None

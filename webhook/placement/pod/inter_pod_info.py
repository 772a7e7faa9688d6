"""The parts of a pending pod that relate it to other pods."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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

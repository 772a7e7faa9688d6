"""Pod affinity and anti-affinity terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.kube.reader import Reader
from webhook.kube.selectors import LabelSelector, read_label_selector, selector_matches, with_label_keys

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Labels = Mapping[str, str]


class PodTerm(NamedTuple):
    """One PodAffinityTerm: the pods that it selects, and the topology key.

    `namespaces` contains the pod's own namespace if the term has none. A `namespace_selector` of None selects no
    namespace, an empty one selects all.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None

    @property
    def chooses_namespaces(self) -> bool:
        """Return true if it selects namespaces by label; an empty selector needs no labels."""
        return bool(self.namespace_selector)

    def matches(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Return true if it selects a pod with `labels` in `namespace`, which has `namespace_labels`.

        Source: k8s.io/kube-scheduler/framework/types.go, AffinityTerm.Matches
        """
        if namespace not in self.namespaces and not selector_matches(self.namespace_selector, namespace_labels):
            return False
        return selector_matches(self.selector, labels)


class WeightedPodTerm(NamedTuple):
    """One preferred term; the weight is negative in anti-affinity."""

    weight: int
    term: PodTerm


@dataclass(frozen=True, slots=True)
class PodTerms:
    """The podAffinity and podAntiAffinity of one pod."""

    required: tuple[PodTerm, ...] = ()
    anti_required: tuple[PodTerm, ...] = ()
    preferred: tuple[WeightedPodTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.anti_required or self.preferred)

    def __iter__(self) -> Iterator[PodTerm]:
        yield from self.required
        yield from self.anti_required
        for weighted in self.preferred:
            yield weighted.term


NO_TERMS = PodTerms()


def read_pod_terms(reader: Reader, affinity: Any, namespace: str, labels: Labels) -> PodTerms:
    """Return the terms in `spec.affinity` of a pod with `labels` in `namespace`; `reader` collects the errors.

    `matchLabelKeys` and `mismatchLabelKeys` become part of the selectors, as in the API server: the scheduler does not
    read them.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, applyMatchLabelKeysAndMismatchLabelKeys
    """
    parts = reader.object(affinity, "spec.affinity")
    if parts.get("podAffinity") is None and parts.get("podAntiAffinity") is None:
        return NO_TERMS
    read = _TermReader(reader, namespace, labels)
    required, preferred = read.part(parts.get("podAffinity"), "spec.affinity.podAffinity")
    anti_required, anti_preferred = read.part(parts.get("podAntiAffinity"), "spec.affinity.podAntiAffinity")
    repelled = [WeightedPodTerm(-weight, term) for weight, term in anti_preferred]
    return PodTerms(required, anti_required, (*preferred, *repelled))


class _TermReader(NamedTuple):
    reader: Reader
    namespace: str
    labels: Labels

    def part(self, value: Any, path: str) -> tuple[tuple[PodTerm, ...], tuple[WeightedPodTerm, ...]]:
        """Return the required and the preferred terms of a PodAffinity or a PodAntiAffinity."""
        reader = self.reader
        part = reader.object(value, path)
        required = [
            self._term(term, where) for where, term in reader.objects(part.get(_REQUIRED), f"{path}.{_REQUIRED}")
        ]
        preferred = reader.objects(part.get(_PREFERRED), f"{path}.{_PREFERRED}")
        return tuple(required), tuple([self._weighted(weighted, where) for where, weighted in preferred])

    def _weighted(self, weighted: Mapping[str, Any], path: str) -> WeightedPodTerm:
        weight = self.reader.integer(weighted.get("weight"), f"{path}.weight")
        if not 1 <= weight <= 100:
            self.reader.error(f"{path}.weight", weighted.get("weight"), "must be in the range 1-100")
        where = f"{path}.podAffinityTerm"
        return WeightedPodTerm(weight, self._term(self.reader.object(weighted.get("podAffinityTerm"), where), where))

    def _term(self, term: Mapping[str, Any], path: str) -> PodTerm:
        reader = self.reader
        namespaces = frozenset(reader.texts(term.get("namespaces"), f"{path}.namespaces"))
        namespace_selector = read_label_selector(reader, term.get("namespaceSelector"), f"{path}.namespaceSelector")
        if not namespaces and namespace_selector is None:
            namespaces = frozenset((self.namespace,))
        selector = read_label_selector(reader, term.get("labelSelector"), f"{path}.labelSelector")
        wanted = reader.texts(term.get("matchLabelKeys"), f"{path}.matchLabelKeys")
        unwanted = reader.texts(term.get("mismatchLabelKeys"), f"{path}.mismatchLabelKeys")
        if wanted or unwanted:
            matching = with_label_keys(selector, "In", wanted, self.labels)
            selector = with_label_keys(matching, "NotIn", unwanted, self.labels)
        topology_key = reader.text(term.get("topologyKey"), f"{path}.topologyKey")
        return PodTerm(topology_key, namespaces, namespace_selector, selector)

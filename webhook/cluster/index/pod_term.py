"""Pod affinity and anti-affinity terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from webhook.cluster.index.node_selector import PREFERRED, REQUIRED, read_weight
from webhook.kube.reader import Reader
from webhook.kube.selectors import LabelSelector, read_label_selector, selector_matches, with_label_keys

Labels = Mapping[str, str]


class PodTerm(NamedTuple):
    """One PodAffinityTerm: the pods that it selects, and the topology key.

    If the term names no namespaces, `namespaces` contains the pod's own namespace. A `namespace_selector` of None
    selects no namespace; an empty one selects all.
    """

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None

    @property
    def chooses_namespaces(self) -> bool:
        """Return true if the term selects namespaces by labels. An empty selector needs none."""
        return bool(self.namespace_selector)

    def matches(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Return true if the term selects a pod with `labels` in `namespace`, which has `namespace_labels`.

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


def read_pod_terms(spec: Reader, namespace: str, labels: Labels) -> PodTerms:
    """Return the pod affinity terms of a pod with `spec` and `labels` in `namespace`.

    `matchLabelKeys` and `mismatchLabelKeys` become part of the selectors, as in the API server: the scheduler does not
    read them.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, applyMatchLabelKeysAndMismatchLabelKeys
    """
    affinity = spec.object("affinity")
    if affinity.raw.get("podAffinity") is None and affinity.raw.get("podAntiAffinity") is None:
        return NO_TERMS
    required, preferred = _terms(affinity.object("podAffinity"), namespace, labels)
    anti_required, anti_preferred = _terms(affinity.object("podAntiAffinity"), namespace, labels)
    repelled = [WeightedPodTerm(-weight, term) for weight, term in anti_preferred]
    return PodTerms(required, anti_required, (*preferred, *repelled))


def _terms(part: Reader, namespace: str, labels: Labels) -> tuple[tuple[PodTerm, ...], tuple[WeightedPodTerm, ...]]:
    """Return the required and the preferred terms of a PodAffinity or a PodAntiAffinity."""
    required = [_term(term, namespace, labels) for term in part.objects(REQUIRED)]
    preferred = [
        WeightedPodTerm(read_weight(each), _term(each.object("podAffinityTerm"), namespace, labels))
        for each in part.objects(PREFERRED)
    ]
    return tuple(required), tuple(preferred)


def _term(term: Reader, namespace: str, labels: Labels) -> PodTerm:
    namespaces = frozenset(term.texts("namespaces"))
    namespace_selector = read_label_selector(term, "namespaceSelector")
    if not namespaces and namespace_selector is None:
        namespaces = frozenset((namespace,))
    selector = read_label_selector(term, "labelSelector")
    wanted, unwanted = term.texts("matchLabelKeys"), term.texts("mismatchLabelKeys")
    if wanted or unwanted:
        matching = with_label_keys(selector, "In", wanted, labels)
        selector = with_label_keys(matching, "NotIn", unwanted, labels)
    return PodTerm(term.text("topologyKey"), namespaces, namespace_selector, selector)

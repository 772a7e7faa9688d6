"""Changes of a pod after which it might fit."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from webhook.cluster.index.node_selector import Requirement, Term
from webhook.kube.pod.ports import HostPort
from webhook.kube.pod.resources import ContainerRequests
from webhook.kube.pod.taints import Toleration
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.suggest.changes import Scenario


class PodChange(ABC):
    """A change of the pod."""

    def apply(self, scenario: Scenario) -> Scenario:
        """Return `scenario` with the changed pod."""
        return Scenario(self._changed(scenario.pod), scenario.nodes)

    @abstractmethod
    def _changed(self, pod: PodInfo) -> PodInfo: ...


@dataclass(frozen=True, slots=True)
class TolerateTaint(PodChange):
    """Tolerate every taint of this key and value, with any effect."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key

    def _changed(self, pod: PodInfo) -> PodInfo:
        added = Toleration(self.key, "Equal", self.value, "")
        return pod._replace(tolerations=pod.tolerations | {added})


@dataclass(frozen=True, slots=True)
class Ungate(PodChange):
    """Remove the scheduling gates, as their controller does."""

    def _changed(self, pod: PodInfo) -> PodInfo:
        return pod._replace(gates=0)


class Without(PodChange):
    """Remove a part of the pod. The text of the change is the name of this part."""


_OPERATORS = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<", "Exists": "exists", "DoesNotExist": "does not exist"}


@dataclass(frozen=True, slots=True)
class WithoutRequirement(Without):
    """Remove the requirement from all terms of the required node affinity, and the affinity if one is empty then."""

    requirement: Requirement
    is_of_field: bool = False

    def __str__(self) -> str:
        return f"the requirement {_requirement_text(self.requirement)}"

    def _changed(self, pod: PodInfo) -> PodInfo:
        terms = [self._less(term) for term in satisfiable_terms(pod)]
        is_void = any(not term.expressions and not term.fields for term in terms)
        return pod._replace(required=None if is_void or not terms else tuple(terms))

    def _less(self, term: Term) -> Term:
        kept = tuple(each for each in term[self.is_of_field] if each != self.requirement)
        return Term(term.expressions, kept) if self.is_of_field else Term(kept, term.fields)


def _requirement_text(requirement: Requirement) -> str:
    key, operator, values = requirement
    words = f"{key} {_OPERATORS.get(operator, operator)}"
    if operator in ("Exists", "DoesNotExist"):
        return words
    return f"{words} " + (f"[{', '.join(values)}]" if operator.endswith("In") else " ".join(values))


@dataclass(frozen=True, slots=True)
class WithoutTerms(Without):
    """Keep only the requirements that all terms of the required node affinity share.

    `alternatives` are the other requirements if each term has one of them, such as one under several labels.
    """

    alternatives: tuple[Requirement, ...] = ()

    def __str__(self) -> str:
        if not self.alternatives:
            return "the nodeSelectorTerms of its required node affinity"
        return f"the requirement {' or '.join(map(_requirement_text, self.alternatives))}"

    def _changed(self, pod: PodInfo) -> PodInfo:
        common = common_term(pod)
        return pod._replace(required=(common,) if common.expressions or common.fields else None)


@dataclass(frozen=True, slots=True)
class WithoutNodeSelector(Without):
    """Remove this label from the nodeSelector. If `runtime_class` is not empty, this RuntimeClass adds the label."""

    key: str
    value: str
    runtime_class: str = ""

    def __str__(self) -> str:
        source = f" of RuntimeClass {self.runtime_class}" if self.runtime_class else ""
        return f"the nodeSelector {self.key}={self.value}{source}"

    def _changed(self, pod: PodInfo) -> PodInfo:
        return pod._replace(node_selector=tuple(each for each in pod.node_selector if each != (self.key, self.value)))


@dataclass(frozen=True, slots=True)
class WithoutHostPort(Without):
    """Remove this host port."""

    port: HostPort

    def __str__(self) -> str:
        return f"the host port {self.port.port}/{self.port.protocol}"

    def _changed(self, pod: PodInfo) -> PodInfo:
        return pod._replace(host_ports=tuple(port for port in pod.host_ports if port != self.port))


@dataclass(frozen=True, slots=True)
class WithoutPodTerms(Without):
    """Remove the required podAffinity, or the required podAntiAffinity."""

    kind: Literal["podAffinity", "podAntiAffinity"]

    def __str__(self) -> str:
        return f"its required {self.kind}"

    def _changed(self, pod: PodInfo) -> PodInfo:
        terms = pod.inter_pod.terms
        kept = replace(terms, required=()) if self.kind == "podAffinity" else replace(terms, anti_required=())
        return pod._replace(inter_pod=pod.inter_pod._replace(terms=kept))


@dataclass(frozen=True, slots=True)
class WithoutSpread(Without):
    """Remove the topologySpreadConstraints that exclude nodes."""

    def __str__(self) -> str:
        return f"its topologySpreadConstraints that are {DO_NOT_SCHEDULE}"

    def _changed(self, pod: PodInfo) -> PodInfo:
        kept = tuple(each for each in pod.inter_pod.spread if each.when_unsatisfiable != DO_NOT_SCHEDULE)
        return pod._replace(inter_pod=pod.inter_pod._replace(spread=kept))


@dataclass(frozen=True, slots=True)
class ReduceRequest(PodChange):
    """Reduce the request of a resource, for filters and for scores, from `requested` to `amount`.

    Both amounts include the `overhead`, which is not a request of a container.
    """

    resource: str
    amount: int
    requested: int
    overhead: int = 0

    def _changed(self, pod: PodInfo) -> PodInfo:
        return pod._replace(
            requests=self._less(pod.requests),
            scoring_requests=self._less(pod.scoring_requests),
            by_container=tuple(self._of_container(each) for each in pod.by_container),
        )

    def _of_container(self, container: ContainerRequests) -> ContainerRequests:
        amounts = dict(container.amounts)
        if amounts.get(self.resource) != self.requested * 1000:
            return container
        return container._replace(amounts=tuple((amounts | {self.resource: self.amount * 1000}).items()))

    def _less(self, amounts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple((name, self.amount if name == self.resource else amount) for name, amount in amounts)


@dataclass(frozen=True, slots=True)
class ReplaceRequest(PodChange):
    """Replace `resource`, which no node has, by `amount` of `other`, which the pod does not request yet."""

    resource: str
    other: str
    amount: int

    def _changed(self, pod: PodInfo) -> PodInfo:
        return pod._replace(requests=self._renamed(pod.requests), scoring_requests=self._renamed(pod.scoring_requests))

    def _renamed(self, amounts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple((self.other if name == self.resource else name, amount) for name, amount in amounts)


def satisfiable_terms(pod: PodInfo) -> tuple[Term, ...]:
    """Return the terms of the required node affinity that can match a node. Empty terms are left out."""
    return tuple(term for term in pod.required or () if term.expressions or term.fields)


def common_term(pod: PodInfo) -> Term:
    """Return the requirements that all satisfiable terms share, as one term."""
    terms = satisfiable_terms(pod)
    if not terms:
        return Term((), ())
    expressions = frozenset(terms[0].expressions).intersection(*(term.expressions for term in terms))
    fields = frozenset(terms[0].fields).intersection(*(term.fields for term in terms))
    return Term(
        tuple(each for each in terms[0].expressions if each in expressions),
        tuple(each for each in terms[0].fields if each in fields),
    )

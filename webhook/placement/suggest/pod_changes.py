"""Changes of a pod after which it might fit."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from webhook.cluster.index.node_selector import Requirement, Term
from webhook.kube.ports import HostPort
from webhook.kube.taints import Toleration, Tolerations
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.pod.spread_constraint import DO_NOT_SCHEDULE
from webhook.placement.suggest.changes import Scenario


@dataclass(frozen=True, slots=True)
class TolerateTaint:
    """The pod tolerates every taint of this key and value, whatever its effect."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key

    def apply(self, scenario: Scenario) -> Scenario:
        """With the toleration beside those that the pod has."""
        pod, nodes = scenario
        added = Toleration(self.key, "Equal", self.value, "")
        return Scenario(pod._replace(tolerations=Tolerations({*pod.tolerations, added})), nodes)


_OPERATORS = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<", "Exists": "exists", "DoesNotExist": "does not exist"}


@dataclass(frozen=True, slots=True)
class WithoutRequirement:
    """The pod does not require this of a node, in none of the terms of its node affinity."""

    requirement: Requirement
    is_of_field: bool = False

    def __str__(self) -> str:
        key, operator, values = self.requirement
        words = f"{key} {_OPERATORS.get(operator, operator)}"
        if operator in ("Exists", "DoesNotExist"):
            return f"the requirement {words}"
        return f"the requirement {words} " + (f"[{', '.join(values)}]" if operator.endswith("In") else " ".join(values))

    def apply(self, scenario: Scenario) -> Scenario:
        """A term that requires nothing else makes the whole affinity void: terms are ORed."""
        pod, nodes = scenario
        terms = [self._less(term) for term in satisfiable_terms(pod)]
        is_void = any(not term.expressions and not term.fields for term in terms)
        return Scenario(pod._replace(required=None if is_void or not terms else tuple(terms)), nodes)

    def _less(self, term: Term) -> Term:
        kept = tuple(each for each in term[self.is_of_field] if each != self.requirement)
        return Term(term.expressions, kept) if self.is_of_field else Term(kept, term.fields)


@dataclass(frozen=True, slots=True)
class WithoutTerms:
    """Of its required node affinity the pod keeps what all terms have in common, if anything."""

    def __str__(self) -> str:
        return "the nodeSelectorTerms of its required node affinity"

    def apply(self, scenario: Scenario) -> Scenario:
        """One term is left, or none."""
        pod, nodes = scenario
        common = common_term(pod)
        required = (common,) if common.expressions or common.fields else None
        return Scenario(pod._replace(required=required), nodes)


@dataclass(frozen=True, slots=True)
class WithoutNodeSelector:
    """The pod has not this label in its nodeSelector."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"the nodeSelector {self.key}={self.value}"

    def apply(self, scenario: Scenario) -> Scenario:
        """The other labels stay."""
        pod, nodes = scenario
        kept = tuple(pair for pair in pod.node_selector if pair != (self.key, self.value))
        return Scenario(pod._replace(node_selector=kept), nodes)


@dataclass(frozen=True, slots=True)
class WithoutHostPort:
    """The pod does not take this port of the node."""

    port: HostPort

    def __str__(self) -> str:
        return f"the host port {self.port.port}/{self.port.protocol}"

    def apply(self, scenario: Scenario) -> Scenario:
        """The other ports stay."""
        pod, nodes = scenario
        kept = tuple(port for port in pod.host_ports if port != self.port)
        return Scenario(pod._replace(host_ports=kept), nodes)


@dataclass(frozen=True, slots=True)
class WithoutPodAffinity:
    """The pod requires no pods beside it, by its podAffinity."""

    def __str__(self) -> str:
        return "its required podAffinity"

    def apply(self, scenario: Scenario) -> Scenario:
        """What it prefers stays."""
        pod, nodes = scenario
        terms = replace(pod.inter_pod.terms, required=())
        return Scenario(pod._replace(inter_pod=replace(pod.inter_pod, terms=terms)), nodes)


@dataclass(frozen=True, slots=True)
class WithoutPodAntiAffinity:
    """The pod keeps away from no pods, by its podAntiAffinity."""

    def __str__(self) -> str:
        return "its required podAntiAffinity"

    def apply(self, scenario: Scenario) -> Scenario:
        """What it prefers stays."""
        pod, nodes = scenario
        terms = replace(pod.inter_pod.terms, anti_required=())
        return Scenario(pod._replace(inter_pod=replace(pod.inter_pod, terms=terms)), nodes)


@dataclass(frozen=True, slots=True)
class WithoutSpread:
    """The pod need not be spread: none of its topologySpreadConstraints bars a node."""

    def __str__(self) -> str:
        return f"its topologySpreadConstraints that are {DO_NOT_SCHEDULE}"

    def apply(self, scenario: Scenario) -> Scenario:
        """Those that only rank nodes stay."""
        pod, nodes = scenario
        kept = tuple(each for each in pod.inter_pod.spread if each.when_unsatisfiable != DO_NOT_SCHEDULE)
        return Scenario(pod._replace(inter_pod=replace(pod.inter_pod, spread=kept)), nodes)


@dataclass(frozen=True, slots=True)
class ReduceRequest:
    """The pod requests `amount` of a resource, less than the `asked` that it does."""

    resource: str
    amount: int
    requested: int

    def apply(self, scenario: Scenario) -> Scenario:
        """In what must be free as in what is scored."""
        pod, nodes = scenario
        return Scenario(
            pod._replace(requests=self._less(pod.requests), scoring_requests=self._less(pod.scoring_requests)), nodes
        )

    def _less(self, amounts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple((name, self.amount if name == self.resource else amount) for name, amount in amounts)


# What the pod would do without.
WITHOUT = (
    WithoutRequirement,
    WithoutTerms,
    WithoutNodeSelector,
    WithoutHostPort,
    WithoutPodAffinity,
    WithoutPodAntiAffinity,
    WithoutSpread,
)


def satisfiable_terms(pod: PodInfo) -> tuple[Term, ...]:
    """The terms of the required node affinity that can match a node: an empty one matches none."""
    return tuple(term for term in pod.required or () if term.expressions or term.fields)


def common_term(pod: PodInfo) -> Term:
    """What all of these terms require, as one term."""
    terms = satisfiable_terms(pod)
    if not terms:
        return Term((), ())
    expressions = frozenset(terms[0].expressions).intersection(*(term.expressions for term in terms))
    fields = frozenset(terms[0].fields).intersection(*(term.fields for term in terms))
    return Term(
        tuple(each for each in terms[0].expressions if each in expressions),
        tuple(each for each in terms[0].fields if each in fields),
    )

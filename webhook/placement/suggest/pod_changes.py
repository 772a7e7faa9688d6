"""Changes of a pod after which it might fit."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from webhook.cluster.index.node_selector import Requirement, Term
from webhook.kube.pod.ports import HostPort
from webhook.kube.pod.taints import Toleration, Tolerations
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.pod.spread_constraint import DO_NOT_SCHEDULE
from webhook.placement.suggest.changes import Scenario


@dataclass(frozen=True, slots=True)
class TolerateTaint:
    """Tolerate every taint of this key and value, with any effect."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key

    def apply(self, scenario: Scenario) -> Scenario:
        """Add the toleration to those of the pod."""
        pod, nodes = scenario
        added = Toleration(self.key, "Equal", self.value, "")
        return Scenario(pod._replace(tolerations=Tolerations({*pod.tolerations, added})), nodes)


_OPERATORS = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<", "Exists": "exists", "DoesNotExist": "does not exist"}


@dataclass(frozen=True, slots=True)
class WithoutRequirement:
    """Remove the requirement from all terms of the required node affinity."""

    requirement: Requirement
    is_of_field: bool = False

    def __str__(self) -> str:
        key, operator, values = self.requirement
        words = f"{key} {_OPERATORS.get(operator, operator)}"
        if operator in ("Exists", "DoesNotExist"):
            return f"the requirement {words}"
        return f"the requirement {words} " + (f"[{', '.join(values)}]" if operator.endswith("In") else " ".join(values))

    def apply(self, scenario: Scenario) -> Scenario:
        """Remove the requirement; a term that becomes empty removes the whole affinity, since terms are ORed."""
        pod, nodes = scenario
        terms = [self._less(term) for term in satisfiable_terms(pod)]
        is_void = any(not term.expressions and not term.fields for term in terms)
        return Scenario(pod._replace(required=None if is_void or not terms else tuple(terms)), nodes)

    def _less(self, term: Term) -> Term:
        kept = tuple(each for each in term[self.is_of_field] if each != self.requirement)
        return Term(term.expressions, kept) if self.is_of_field else Term(kept, term.fields)


@dataclass(frozen=True, slots=True)
class WithoutTerms:
    """Keep only the requirements that all terms of the required node affinity share."""

    def __str__(self) -> str:
        return "the nodeSelectorTerms of its required node affinity"

    def apply(self, scenario: Scenario) -> Scenario:
        """Replace the terms with the common one, or none."""
        pod, nodes = scenario
        common = common_term(pod)
        required = (common,) if common.expressions or common.fields else None
        return Scenario(pod._replace(required=required), nodes)


@dataclass(frozen=True, slots=True)
class WithoutNodeSelector:
    """Remove this label from the nodeSelector."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"the nodeSelector {self.key}={self.value}"

    def apply(self, scenario: Scenario) -> Scenario:
        """Remove the label and keep the others."""
        pod, nodes = scenario
        kept = tuple(pair for pair in pod.node_selector if pair != (self.key, self.value))
        return Scenario(pod._replace(node_selector=kept), nodes)


@dataclass(frozen=True, slots=True)
class WithoutHostPort:
    """Remove this host port."""

    port: HostPort

    def __str__(self) -> str:
        return f"the host port {self.port.port}/{self.port.protocol}"

    def apply(self, scenario: Scenario) -> Scenario:
        """Remove the port and keep the others."""
        pod, nodes = scenario
        kept = tuple(port for port in pod.host_ports if port != self.port)
        return Scenario(pod._replace(host_ports=kept), nodes)


@dataclass(frozen=True, slots=True)
class WithoutPodAffinity:
    """Remove the required podAffinity."""

    def __str__(self) -> str:
        return "its required podAffinity"

    def apply(self, scenario: Scenario) -> Scenario:
        """Remove the required terms and keep the preferred ones."""
        pod, nodes = scenario
        terms = replace(pod.inter_pod.terms, required=())
        return Scenario(pod._replace(inter_pod=replace(pod.inter_pod, terms=terms)), nodes)


@dataclass(frozen=True, slots=True)
class WithoutPodAntiAffinity:
    """Remove the required podAntiAffinity."""

    def __str__(self) -> str:
        return "its required podAntiAffinity"

    def apply(self, scenario: Scenario) -> Scenario:
        """Remove the required terms and keep the preferred ones."""
        pod, nodes = scenario
        terms = replace(pod.inter_pod.terms, anti_required=())
        return Scenario(pod._replace(inter_pod=replace(pod.inter_pod, terms=terms)), nodes)


@dataclass(frozen=True, slots=True)
class WithoutSpread:
    """Remove the topologySpreadConstraints that exclude nodes."""

    def __str__(self) -> str:
        return f"its topologySpreadConstraints that are {DO_NOT_SCHEDULE}"

    def apply(self, scenario: Scenario) -> Scenario:
        """Remove DoNotSchedule constraints and keep ScheduleAnyway ones."""
        pod, nodes = scenario
        kept = tuple(each for each in pod.inter_pod.spread if each.when_unsatisfiable != DO_NOT_SCHEDULE)
        return Scenario(pod._replace(inter_pod=replace(pod.inter_pod, spread=kept)), nodes)


@dataclass(frozen=True, slots=True)
class ReduceRequest:
    """Reduce the request of a resource from `requested` to `amount`."""

    resource: str
    amount: int
    requested: int

    def apply(self, scenario: Scenario) -> Scenario:
        """Reduce the filtered and the scored request."""
        pod, nodes = scenario
        return Scenario(
            pod._replace(requests=self._less(pod.requests), scoring_requests=self._less(pod.scoring_requests)), nodes
        )

    def _less(self, amounts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple((name, self.amount if name == self.resource else amount) for name, amount in amounts)


@dataclass(frozen=True, slots=True)
class ReplaceRequest:
    """Request `amount` of the resource `other` in place of `resource`, which no node has."""

    resource: str
    other: str
    amount: int

    def apply(self, scenario: Scenario) -> Scenario:
        """Rename the resource in the filtered and the scored requests; the pod does not request `other` itself."""
        pod, nodes = scenario
        return Scenario(
            pod._replace(requests=self._renamed(pod.requests), scoring_requests=self._renamed(pod.scoring_requests)),
            nodes,
        )

    def _renamed(self, amounts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        return tuple((self.other if name == self.resource else name, amount) for name, amount in amounts)


# Changes that drop a part of the pod.
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
    """Return the terms of the required node affinity that can match a node; an empty one matches none."""
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

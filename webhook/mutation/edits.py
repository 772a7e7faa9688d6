"""Edits: what can be injected into a pod, as data.

Two laws hold for every kind, so that no rule has to think of them: doing it twice is doing it once, and nothing that
the user wrote is removed or overruled. An edit that finds its end already reached changes nothing; one that
contradicts the user leaves the user's value and says in a warning which wins and what follows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from webhook.kube import wellknown
from webhook.kube.field import FieldError, forbidden
from webhook.kube.taints import Taint, Toleration, covers, one_tolerates
from webhook.kube.text import cut
from webhook.mutation import node_terms
from webhook.mutation.editor import Path, PodEditor
from webhook.mutation.node_terms import LONGEST_WORDED, Requirement

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED_NODE: Path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
PREFERRED_NODES: Path = ("spec", "affinity", "nodeAffinity", PREFERRED)
PREFERRED_PODS: Path = ("spec", "affinity", "podAffinity", PREFERRED)


# etcd takes no object of more, and the time that it takes is everybody's.
LARGEST_GROWTH_BYTES = 1536 * 1024

# A pod can have thousands of terms, and what kubectl shows ends at 4 KiB.
_CLASHES_TOLD = 10


class PodTooLargeError(Exception):
    """The pod would become larger than anything that can be stored."""

    def __init__(self, error: FieldError) -> None:
        self.error = error
        super().__init__(str(error))


@dataclass(frozen=True, slots=True)
class Effect:
    """What an edit did: whether the pod changed, what to tell the user, which value of the user's it yielded to."""

    changed: bool
    warnings: tuple[str, ...] = ()
    yielded_to: str = ""


KEPT = Effect(changed=False)
CHANGED = Effect(changed=True)


class Edit(Protocol):
    """One wish for the pod. `str(edit)` tells it to a person."""

    def apply(self, pod: PodEditor) -> Effect:
        """Fulfil the wish, if the pod does not do so already and the user has not said otherwise.

        Raises:
            PodTooLargeError: the pod would become larger than anything that can be stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class RequireNode:
    """The node must meet `requirement`: ANDed into every non-empty term of the required node affinity.

    Terms are ORed, so that one term without it would let the pod pass it by. An empty term matches no node, and would
    match some with a requirement in it: it stays empty.
    """

    requirement: Requirement

    def __str__(self) -> str:
        return f"require node {self.requirement}"

    def apply(self, pod: PodEditor) -> Effect:
        """AND the requirement into each non-empty term that does not imply it; the only term where there is none.

        Raises:
            PodTooLargeError: the pod could not be stored with that in so many terms.
        """
        warnings = [*self._node_selector_warnings(pod)]
        path: Path = (*REQUIRED_NODE, "nodeSelectorTerms")
        if pod.get(*REQUIRED_NODE) is None:
            pod.append({"matchExpressions": [self.requirement.to_json()]}, *path)
            return Effect(changed=True, warnings=tuple(warnings))
        terms: Sequence[Mapping[str, Any]] = pod.get(*path) or ()
        added = 0
        most = LARGEST_GROWTH_BYTES // self.requirement.size_bytes
        clashes = {}
        for index, term in enumerate(terms):
            if node_terms.is_empty(term):
                continue
            expressions = term.get("matchExpressions") or ()
            if clash := self.requirement.contradiction(expressions):
                clashes[index] = clash
            if not self.requirement.is_implied_by(expressions):
                if added == most:
                    detail = f"too many terms ({len(terms)}) to add to each that the policy does: {self.requirement}"
                    raise PodTooLargeError(forbidden(".".join(map(str, path)), detail))
                pod.append(self.requirement.to_json(), *path, index, "matchExpressions")
                added += 1
        matching = [index for index, term in enumerate(terms) if index not in clashes and not node_terms.is_empty(term)]
        follows = "it matches no node" if matching else "no node matches and the pod will stay Pending"
        told = list(clashes.items())[:_CLASHES_TOLD]
        warnings += [f"nodeSelectorTerms[{index}]: {clash}; both stand: {follows}" for index, clash in told]
        if not matching and not clashes:
            warnings.append("no nodeSelectorTerm has a requirement: none matches a node, and the pod will stay Pending")
        return Effect(added > 0, tuple(warnings))

    def _node_selector_warnings(self, pod: PodEditor) -> Sequence[str]:
        value = pod.get("spec", "nodeSelector", self.requirement.key)
        if value is None or self.requirement.admits(value):
            return ()
        worded = f"nodeSelector {self.requirement.key}={cut(value, LONGEST_WORDED)}"
        clash = f"{worded} contradicts the policy's {self.requirement}"
        return (f"{clash}; both stand: no node matches and the pod will stay Pending",)


@dataclass(frozen=True, slots=True)
class PreferNode:
    """Nodes that meet `requirement` are preferred with `weight`, unless the user already weighs the same."""

    weight: int
    requirement: Requirement

    def __str__(self) -> str:
        return f"prefer node {self.requirement} (weight {self.weight})"

    def apply(self, pod: PodEditor) -> Effect:
        """Append a preferred term, if none has exactly this requirement."""
        for term in pod.get(*PREFERRED_NODES) or ():
            preference = term.get("preference") or {}
            expressions: Sequence[Mapping[str, Any]] = preference.get("matchExpressions") or ()
            if len(expressions) == 1 and not preference.get("matchFields") and self.requirement.equals(expressions[0]):
                return KEPT
        term = {"weight": self.weight, "preference": {"matchExpressions": [self.requirement.to_json()]}}
        pod.append(term, *PREFERRED_NODES)
        return CHANGED


@dataclass(frozen=True, slots=True)
class Tolerate:
    """The taint `key`=`value`:`effect` is tolerated.

    A toleration that another covers is not added: PodTolerationRestriction would drop it, and every later update of
    the pod would be refused.
    """

    key: str
    value: str
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        return f"tolerate {self.key}={self.value}:{self.effect}"

    def apply(self, pod: PodEditor) -> Effect:
        """Append the toleration, if no other covers it."""
        toleration = {"key": self.key, "operator": "Equal", "value": self.value, "effect": self.effect}
        if one_tolerates(pod.tolerations, Taint(self.key, self.value, self.effect)) and any(
            covers(present, toleration) for present in pod.get("spec", "tolerations") or ()
        ):
            return KEPT
        pod.append(toleration, "spec", "tolerations")
        pod.tolerations.add(Toleration.of(toleration))
        return CHANGED


@dataclass(frozen=True, slots=True)
class AddLabel:
    """The label `key`, unless the user gave it another value."""

    key: str
    value: str
    consequence: str
    """What follows where the user's value wins."""

    def __str__(self) -> str:
        return f"label {self.key}={self.value}"

    def apply(self, pod: PodEditor) -> Effect:
        """Add the label where it is missing."""
        present = pod.get("metadata", "labels", self.key)
        if present is None:
            pod.set(self.value, "metadata", "labels", self.key)
            return CHANGED
        if present == self.value:
            return KEPT
        present = cut(present, LONGEST_WORDED)
        warning = f"label {self.key}={present} of the pod wins over the policy's {self.key}={self.value}: "
        yielded_to = f"label {self.key}={present}"
        return Effect(changed=False, warnings=(warning + self.consequence,), yielded_to=yielded_to)


@dataclass(frozen=True, slots=True)
class PreferBeside:
    """Domains of `topology_key` that run pods of any namespace with the label are preferred with `weight`."""

    weight: int
    label_key: str
    label_value: str
    topology_key: str

    def __str__(self) -> str:
        return f"prefer {self.topology_key} with pods {self.label_key}={self.label_value} (weight {self.weight})"

    def apply(self, pod: PodEditor) -> Effect:
        """Append the preferred podAffinity term, if the user has none for the same pods and topology."""
        if any(self._is_same(weighted.get("podAffinityTerm") or {}) for weighted in pod.get(*PREFERRED_PODS) or ()):
            return KEPT
        requirement = {"key": self.label_key, "operator": "In", "values": [self.label_value]}
        term = {
            "labelSelector": {"matchExpressions": [requirement]},
            # Empty, not absent: an absent one would mean the pod's own namespace alone.
            "namespaceSelector": {},
            "topologyKey": self.topology_key,
        }
        pod.append({"weight": self.weight, "podAffinityTerm": term}, *PREFERRED_PODS)
        return CHANGED

    def _is_same(self, term: Mapping[str, Any]) -> bool:
        selector = term.get("labelSelector") or {}
        expressions: Sequence[Mapping[str, Any]] = selector.get("matchExpressions") or ()
        labels: Mapping[str, str] = selector.get("matchLabels") or {}
        wanted = Requirement(self.label_key, "In", (self.label_value,))
        selects = (not labels and len(expressions) == 1 and wanted.equals(expressions[0])) or (
            not expressions and labels == {self.label_key: self.label_value}
        )
        narrowed = term.get("matchLabelKeys") or term.get("mismatchLabelKeys")
        everywhere = term.get("namespaceSelector") == {} and not narrowed
        return selects and everywhere and term.get("topologyKey") == self.topology_key


@dataclass(frozen=True, slots=True)
class ChooseScheduler:
    """The scheduler `name`, where the pod still has the default one.

    `asked` tells that the pod's annotation asks for it; a type's default yields to the user's scheduler in silence.
    """

    name: str
    asked: bool

    def __str__(self) -> str:
        return f"scheduler {self.name}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the scheduler's name where the default one, or none, stands."""
        present = pod.get("spec", "schedulerName") or wellknown.DEFAULT_SCHEDULER
        if present == self.name:
            return KEPT
        if present == wellknown.DEFAULT_SCHEDULER:
            pod.set(self.name, "spec", "schedulerName")
            return CHANGED
        present = cut(present, LONGEST_WORDED)
        warning = (
            f"spec.schedulerName {present} of the pod wins over the annotation's {self.name}: {present} schedules it"
        )
        yielded_to = f"schedulerName {present}"
        return Effect(changed=False, warnings=(warning,) if self.asked else (), yielded_to=yielded_to)


@dataclass(frozen=True, slots=True)
class Annotate:
    """An annotation of our own, always as `value` has it: it tells who mutated the pod, which no user can know."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"annotation {self.key}={self.value}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the annotation."""
        if pod.get("metadata", "annotations", self.key) == self.value:
            return KEPT
        pod.set(self.value, "metadata", "annotations", self.key)
        return CHANGED

"""Edits: the changes that rules can make to a pod, as data.

Every edit is idempotent and, but for `SetAnnotation`, never removes or overrides what the user wrote. An edit that is
already satisfied changes nothing. An edit that contradicts the user keeps the user's value and returns a warning with
the consequence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from webhook.kube import wellknown
from webhook.kube.field import FieldError, forbidden
from webhook.kube.taints import Taint, Toleration, any_tolerates, covers
from webhook.kube.text import cut
from webhook.mutation import node_terms
from webhook.mutation.editor import Path, PodEditor
from webhook.mutation.node_terms import LONGEST_SHOWN, NodeLabelRequirement

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED_NODE: Path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
PREFERRED_NODES: Path = ("spec", "affinity", "nodeAffinity", PREFERRED)
PREFERRED_PODS: Path = ("spec", "affinity", "podAffinity", PREFERRED)


# etcd stores no larger object, and applying a larger edit would delay the requests of other users.
LARGEST_GROWTH_BYTES = 1536 * 1024

# A pod can have thousands of terms, and kubectl shows 4 KiB of warnings.
_MOST_CONFLICTS_REPORTED = 10


class PodTooLargeError(Exception):
    """Raised if the pod would become too large to be stored."""

    def __init__(self, error: FieldError) -> None:
        self.error = error
        super().__init__(str(error))


@dataclass(frozen=True, slots=True)
class Effect:
    """The result of an edit: whether the pod changed, warnings for the user, and the user's value that it kept."""

    changed: bool
    warnings: tuple[str, ...] = ()
    kept_value: str = ""


KEPT = Effect(changed=False)
CHANGED = Effect(changed=True)


class Edit(Protocol):
    """One change to a pod. `str(edit)` describes it in messages and audit records."""

    def apply(self, pod: PodEditor) -> Effect:
        """Change the pod, unless it satisfies the edit already or the user chose another value.

        Raises:
            PodTooLargeError: the pod would become too large to be stored.
        """
        ...


@dataclass(frozen=True, slots=True)
class RequireNode:
    """Require nodes that meet `requirement`: it is ANDed into every non-empty term of the required node affinity.

    Terms are ORed, so a single term without the requirement would bypass it. An empty term matches no node. It stays
    empty, because with a requirement it would match some nodes.
    """

    requirement: NodeLabelRequirement

    def __str__(self) -> str:
        return f"require node {self.requirement}"

    def apply(self, pod: PodEditor) -> Effect:
        """AND the requirement into each non-empty term that does not imply it; add a term if there is none.

        Raises:
            PodTooLargeError: with the requirement in all its terms, the pod would be too large to be stored.
        """
        warnings = [*self._node_selector_warnings(pod)]
        path: Path = (*REQUIRED_NODE, "nodeSelectorTerms")
        if pod.get(*REQUIRED_NODE) is None:
            pod.append({"matchExpressions": [self.requirement.to_json()]}, *path)
            return Effect(changed=True, warnings=tuple(warnings))
        terms: Sequence[Mapping[str, Any]] = pod.get(*path) or ()
        added = 0
        most = LARGEST_GROWTH_BYTES // self.requirement.size_bytes
        conflicts = {}
        for index, term in enumerate(terms):
            if node_terms.is_empty(term):
                continue
            expressions = term.get("matchExpressions") or ()
            if conflict := self.requirement.contradiction(expressions):
                conflicts[index] = conflict
            if not self.requirement.is_implied_by(expressions):
                if added == most:
                    detail = f"too many terms ({len(terms)}) to add to each that the policy does: {self.requirement}"
                    raise PodTooLargeError(forbidden(".".join(map(str, path)), detail))
                pod.append(self.requirement.to_json(), *path, index, "matchExpressions")
                added += 1
        matching = [
            index for index, term in enumerate(terms) if index not in conflicts and not node_terms.is_empty(term)
        ]
        follows = "it matches no node" if matching else "no node matches and the pod will stay Pending"
        reported = list(conflicts.items())[:_MOST_CONFLICTS_REPORTED]
        warnings += [f"nodeSelectorTerms[{index}]: {conflict}; both stand: {follows}" for index, conflict in reported]
        if not matching and not conflicts:
            warnings.append("no nodeSelectorTerm has a requirement: none matches a node, and the pod will stay Pending")
        return Effect(added > 0, tuple(warnings))

    def _node_selector_warnings(self, pod: PodEditor) -> Sequence[str]:
        value = pod.get("spec", "nodeSelector", self.requirement.key)
        if value is None or self.requirement.admits(value):
            return ()
        user_selector = f"nodeSelector {self.requirement.key}={cut(value, LONGEST_SHOWN)}"
        conflict = f"{user_selector} contradicts the policy's {self.requirement}"
        return (f"{conflict}; both stand: no node matches and the pod will stay Pending",)


@dataclass(frozen=True, slots=True)
class PreferNode:
    """Prefer nodes that meet `requirement` with `weight`, unless the user has a preference with this requirement."""

    weight: int
    requirement: NodeLabelRequirement

    def __str__(self) -> str:
        return f"prefer node {self.requirement} (weight {self.weight})"

    def apply(self, pod: PodEditor) -> Effect:
        """Append a preferred term, unless one has exactly this requirement."""
        for term in pod.get(*PREFERRED_NODES) or ():
            preference = term.get("preference") or {}
            expressions: Sequence[Mapping[str, Any]] = preference.get("matchExpressions") or ()
            if len(expressions) == 1 and not preference.get("matchFields") and self.requirement.equals(expressions[0]):
                return KEPT
        term = {"weight": self.weight, "preference": {"matchExpressions": [self.requirement.to_json()]}}
        pod.append(term, *PREFERRED_NODES)
        return CHANGED


@dataclass(frozen=True, slots=True)
class AddToleration:
    """Tolerate the taint `key`=`value`:`effect`.

    A toleration that another one covers is not added. PodTolerationRestriction would drop it, and every later update
    of the pod would be rejected.
    """

    key: str
    value: str
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        return f"tolerate {self.key}={self.value}:{self.effect}"

    def apply(self, pod: PodEditor) -> Effect:
        """Append the toleration, unless another one covers it."""
        toleration = {"key": self.key, "operator": "Equal", "value": self.value, "effect": self.effect}
        # `any_tolerates` looks up a set, so most pods need no pass over their tolerations.
        # `covers` decides: it also compares tolerationSeconds, which `any_tolerates` ignores.
        if any_tolerates(pod.tolerations, Taint(self.key, self.value, self.effect)) and any(
            covers(present, toleration) for present in pod.get("spec", "tolerations") or ()
        ):
            return KEPT
        pod.append(toleration, "spec", "tolerations")
        pod.tolerations.add(Toleration.of(toleration))
        return CHANGED


@dataclass(frozen=True, slots=True)
class AddLabel:
    """Add the label `key`, unless the user set another value."""

    key: str
    value: str
    consequence: str
    """The consequence if the user's value is kept."""

    def __str__(self) -> str:
        return f"label {self.key}={self.value}"

    def apply(self, pod: PodEditor) -> Effect:
        """Add the label if it is missing."""
        present = pod.get("metadata", "labels", self.key)
        if present is None:
            pod.set(self.value, "metadata", "labels", self.key)
            return CHANGED
        if present == self.value:
            return KEPT
        present = cut(present, LONGEST_SHOWN)
        warning = f"label {self.key}={present} of the pod wins over the policy's {self.key}={self.value}: "
        kept_value = f"label {self.key}={present}"
        return Effect(changed=False, warnings=(warning + self.consequence,), kept_value=kept_value)


@dataclass(frozen=True, slots=True)
class PreferPodAffinity:
    """Prefer topology domains that run pods with the label, in any namespace, with `weight`."""

    weight: int
    label_key: str
    label_value: str
    topology_key: str

    def __str__(self) -> str:
        return f"prefer {self.topology_key} with pods {self.label_key}={self.label_value} (weight {self.weight})"

    def apply(self, pod: PodEditor) -> Effect:
        """Append the preferred podAffinity term, unless the user has one for the same pods and topology."""
        if any(self._is_same(weighted.get("podAffinityTerm") or {}) for weighted in pod.get(*PREFERRED_PODS) or ()):
            return KEPT
        requirement = {"key": self.label_key, "operator": "In", "values": [self.label_value]}
        term = {
            "labelSelector": {"matchExpressions": [requirement]},
            # Empty, not absent: an absent selector means the namespace of the pod only.
            "namespaceSelector": {},
            "topologyKey": self.topology_key,
        }
        pod.append({"weight": self.weight, "podAffinityTerm": term}, *PREFERRED_PODS)
        return CHANGED

    def _is_same(self, term: Mapping[str, Any]) -> bool:
        selector = term.get("labelSelector") or {}
        expressions: Sequence[Mapping[str, Any]] = selector.get("matchExpressions") or ()
        labels: Mapping[str, str] = selector.get("matchLabels") or {}
        wanted = NodeLabelRequirement(self.label_key, "In", (self.label_value,))
        selects = (not labels and len(expressions) == 1 and wanted.equals(expressions[0])) or (
            not expressions and labels == {self.label_key: self.label_value}
        )
        narrowed = term.get("matchLabelKeys") or term.get("mismatchLabelKeys")
        everywhere = term.get("namespaceSelector") == {} and not narrowed
        return selects and everywhere and term.get("topologyKey") == self.topology_key


@dataclass(frozen=True, slots=True)
class SetScheduler:
    """Set the scheduler `name`, if the pod has the default one.

    `requested`: the pod's annotation requests it. If the pod names another scheduler, only a requested one leads to a
    warning; the default of a workload type does not.
    """

    name: str
    requested: bool

    def __str__(self) -> str:
        return f"scheduler {self.name}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the scheduler name if the pod has none or the default one."""
        present = pod.get("spec", "schedulerName") or wellknown.DEFAULT_SCHEDULER
        if present == self.name:
            return KEPT
        if present == wellknown.DEFAULT_SCHEDULER:
            pod.set(self.name, "spec", "schedulerName")
            return CHANGED
        present = cut(present, LONGEST_SHOWN)
        warning = (
            f"spec.schedulerName {present} of the pod wins over the annotation's {self.name}: {present} schedules it"
        )
        kept_value = f"schedulerName {present}"
        return Effect(changed=False, warnings=(warning,) if self.requested else (), kept_value=kept_value)


@dataclass(frozen=True, slots=True)
class SetAnnotation:
    """Set an annotation of the webhook's own. It records the mutation, so it overrides a value of the user."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"annotation {self.key}={self.value}"

    def apply(self, pod: PodEditor) -> Effect:
        """Set the annotation, unless it has the value already."""
        if pod.get("metadata", "annotations", self.key) == self.value:
            return KEPT
        pod.set(self.value, "metadata", "annotations", self.key)
        return CHANGED

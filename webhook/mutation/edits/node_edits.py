"""Edits of the node affinity. The invariants of edits are in `webhook.mutation.edits.edits`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from webhook.documents.field import forbidden
from webhook.documents.text import cut
from webhook.kube.selectors import term_is_empty
from webhook.mutation.edits.editor import Path, PodEditor
from webhook.mutation.edits.edits import CHANGED, KEPT, LARGEST_GROWTH_BYTES, PREFERRED, Effect, PodTooLargeError
from webhook.mutation.edits.node_terms import LONGEST_SHOWN, NodeLabelRequirement

REQUIRED_NODE: Path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
PREFERRED_NODES: Path = ("spec", "affinity", "nodeAffinity", PREFERRED)

# The beginning of the text of an edit that requires a label of nodes.
REQUIRES = "require node "
# Between the alternatives in that text.
OR = " or "

# A pod can have thousands of terms, and kubectl shows 4 KiB of warnings.
_MOST_CONFLICTS_REPORTED = 10


@dataclass(frozen=True, slots=True)
class RequireNode:
    """Require nodes that meet `requirement`, which is ANDed into every non-empty term of the required node affinity.

    Terms are ORed, so a single term without the requirement would bypass it. An empty term matches no node; it stays
    empty, because it would match nodes if the requirement were added. A node may meet it by one of `other_labels`
    instead: a term is then copied for each of them.
    """

    requirement: NodeLabelRequirement
    other_labels: tuple[str, ...] = ()

    @property
    def _alternatives(self) -> tuple[NodeLabelRequirement, ...]:
        return (self.requirement, *(replace(self.requirement, key=label) for label in self.other_labels))

    def __str__(self) -> str:
        return f"{REQUIRES}{OR.join(map(str, self._alternatives))}"

    def apply(self, pod: PodEditor) -> Effect:
        """AND the requirement into each non-empty term that does not imply it; add a term if there is none.

        Raises:
            PodTooLargeError: with the requirement in all its terms, the pod would be too large to be stored.
        """
        warnings = [*self._node_selector_warnings(pod)]
        path: Path = (*REQUIRED_NODE, "nodeSelectorTerms")
        if pod.get(*REQUIRED_NODE) is None:
            for each in self._alternatives:
                pod.append({"matchExpressions": [each.to_json()]}, *path)
            return Effect(changed=True, warnings=tuple(warnings))
        # The copies of terms are appended to the list itself.
        terms: Sequence[Mapping[str, Any]] = tuple(pod.get(*path) or ())
        added = 0
        left, size = LARGEST_GROWTH_BYTES, self.requirement.size_bytes
        conflicts = {}
        for index, term in enumerate(terms):
            if term_is_empty(term):
                continue
            expressions = term.get("matchExpressions") or ()
            requirement, *copied = self._possible(expressions) if self.other_labels else (self.requirement,)
            if conflict := requirement.contradiction(expressions):
                conflicts[index] = conflict
            if requirement.is_implied_by(expressions) or (copied and _implies_any(expressions, copied)):
                continue
            left -= size + (_size_of(term, copied) if copied else 0)
            if left < 0:
                detail = f"too many terms ({len(terms)}) to add to each that the policy does: {self.requirement}"
                raise PodTooLargeError(forbidden(".".join(map(str, path)), detail))
            for each in copied:
                pod.append({**term, "matchExpressions": [*expressions, each.to_json()]}, *path)
            pod.append(requirement.to_json(), *path, index, "matchExpressions")
            added += 1
        matching = [index for index, term in enumerate(terms) if index not in conflicts and not term_is_empty(term)]
        follows = "this term matches no node" if matching else "no node matches and the pod will stay Pending"
        reported = list(conflicts.items())[:_MOST_CONFLICTS_REPORTED]
        warnings += [
            f"nodeSelectorTerms[{index}]: {conflict}; a node must meet both, so {follows}"
            for index, conflict in reported
        ]
        if not matching and not conflicts:
            warnings.append("no nodeSelectorTerm has a requirement: none matches a node, and the pod will stay Pending")
        return Effect(added > 0, tuple(warnings))

    def _possible(self, expressions: Sequence[Mapping[str, Any]]) -> Sequence[NodeLabelRequirement]:
        """Return the alternatives that do not contradict the ANDed `expressions`, or the first one if all do."""
        every = self._alternatives
        return [each for each in every if not each.contradiction(expressions)] or every[:1]

    def _node_selector_warnings(self, pod: PodEditor) -> Sequence[str]:
        value = pod.get("spec", "nodeSelector", self.requirement.key)
        if value is None or self.requirement.admits(value):
            return ()
        for each in self._alternatives[1:]:
            other = pod.get("spec", "nodeSelector", each.key)
            if other is None or each.admits(other):
                return ()
        user_selector = f"nodeSelector {self.requirement.key}={cut(value, LONGEST_SHOWN)}"
        conflict = f"{user_selector} contradicts the policy's {self.requirement.summary}"
        return (f"{conflict}; a node must meet both, so no node matches and the pod will stay Pending",)


def _implies_any(expressions: Sequence[Mapping[str, Any]], requirements: Iterable[NodeLabelRequirement]) -> bool:
    return any(each.is_implied_by(expressions) for each in requirements)


def _size_of(term: Mapping[str, Any], copied: Iterable[NodeLabelRequirement]) -> int:
    """Return the bytes of the copies of `term`, one for each requirement."""
    return sum(len(orjson.dumps(term)) + each.size_bytes for each in copied)


@dataclass(frozen=True, slots=True)
class PreferNode:
    """Prefer nodes that meet `requirement` with `weight`, unless the user prefers other values of the label.

    Weights add up, so together with a preference of the user, that of the policy could move the pod to nodes that the
    user prefers less. `policy_preferences` are all (weight, requirement) of the policy; they distinguish its terms from
    those of the user.
    """

    weight: int
    requirement: NodeLabelRequirement
    policy_preferences: tuple[tuple[int, NodeLabelRequirement], ...] = ()

    def __str__(self) -> str:
        return f"prefer node {self.requirement} (weight {self.weight})"

    def apply(self, pod: PodEditor) -> Effect:
        """Append a preferred term, unless one has exactly this requirement or the user prefers other values."""
        user_prefers_others = False
        terms: Sequence[Mapping[str, Any]] = pod.get(*PREFERRED_NODES) or ()
        added = self._added_preferences(terms)
        for term in terms:
            alone = _only_expression(term)
            if self.requirement.equals(alone):
                return KEPT
            expressions = (term.get("preference") or {}).get("matchExpressions") or ()
            user_prefers_others = user_prefers_others or (
                self._is_contradicted(expressions)
                and not any(term.get("weight") == weight and each.equals(alone) for weight, each in added)
            )
        if user_prefers_others:
            key = self.requirement.key
            warning = (
                f"the pod's own preferred node affinity for {key} wins over the policy's, which is not added: {self}"
            )
            return Effect(changed=False, warnings=(warning,), kept_value=f"preference for {key}")
        term = {"weight": self.weight, "preference": {"matchExpressions": [self.requirement.to_json()]}}
        pod.append(term, *PREFERRED_NODES)
        return CHANGED

    def _added_preferences(self, terms: Sequence[Mapping[str, Any]]) -> Sequence[tuple[int, NodeLabelRequirement]]:
        """Return the preferences of the policy that an earlier admission has added to `terms`.

        They are added in the policy's order, so the result ends before the first one that is missing. A later one that
        is in `terms` anyway is a preference of the user.
        """
        present = [(term.get("weight"), _only_expression(term)) for term in terms]
        for index, (weight, requirement) in enumerate(self.policy_preferences):
            if not any(found == weight and requirement.equals(alone) for found, alone in present):
                return self.policy_preferences[:index]
        return self.policy_preferences

    def _is_contradicted(self, expressions: Sequence[Mapping[str, Any]]) -> bool:
        return any(
            each.get("key") == self.requirement.key for each in expressions
        ) and not self.requirement.is_implied_by(expressions)


def _only_expression(term: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the expression of a preferred term that has one requirement, or an empty expression for any other term."""
    preference = term.get("preference") or {}
    expressions: Sequence[Mapping[str, Any]] = preference.get("matchExpressions") or ()
    return expressions[0] if len(expressions) == 1 and not preference.get("matchFields") else {}

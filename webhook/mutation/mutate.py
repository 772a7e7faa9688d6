"""Apply the rules to a pod and collect the result of each rule."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from webhook.documents.documents import JsonObject
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import Edit, Effect, SetAnnotation
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import WITHDRAWAL, Policy

Rule = Callable[[Workload, Policy], Sequence[Edit] | str]


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """The result of one rule: the edits that changed the pod, or the reason why there were none."""

    name: str
    edits: tuple[str, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Mutation:
    """The mutated `pod` and the `operations` (RFC 6902) that turn the original into it, or none if nothing changed."""

    pod: JsonObject
    operations: list[JsonObject]
    rules: tuple[RuleOutcome, ...]
    warnings: tuple[str, ...]

    def followed_by(self, other: "Mutation") -> "Mutation":
        """Return this mutation followed by `other`, a mutation of the pod that this one returns."""
        operations, rules = [*self.operations, *other.operations], (*self.rules, *other.rules)
        return Mutation(other.pod, operations, rules, (*self.warnings, *other.warnings))


def mutate(pod: JsonObject, workload: Workload, policy: Policy, rules: Mapping[str, Rule]) -> Mutation:
    """Return the mutation of `pod` by `rules`, which are given by name. `pod` itself is not changed.

    A rule is effective if it applies to the workload and did not only keep values of the user. The effective rules are
    written to an annotation even if they changed nothing, so that a second admission writes the same value.

    Raises:
        PodTooLargeError: the pod would become too large to be stored.
    """
    editor = PodEditor(pod)
    outcomes: list[RuleOutcome] = []
    warnings: list[str] = []
    recorded = (pod["metadata"].get("annotations") or {}).get(policy.rules_annotation) or ""
    effective_rules = [WITHDRAWAL] if recorded.startswith(WITHDRAWAL) else []
    for name, rule in rules.items():
        edits = rule(workload, policy)
        if isinstance(edits, str):
            outcomes.append(RuleOutcome(name, skipped=edits))
            continue
        effects = [edit.apply(editor) for edit in edits]
        outcomes.append(_outcome(name, edits, effects))
        warnings += [warning for effect in effects for warning in effect.warnings]
        if not all(effect.kept_value for effect in effects):
            effective_rules.append(name)
    SetAnnotation(policy.policy_annotation, policy.identity).apply(editor)
    SetAnnotation(policy.rules_annotation, ",".join(effective_rules)).apply(editor)
    return Mutation(editor.pod, editor.operations, tuple(outcomes), tuple(dict.fromkeys(warnings)))


def _outcome(name: str, edits: Sequence[Edit], effects: Sequence[Effect]) -> RuleOutcome:
    changes = tuple(str(edit) for edit, effect in zip(edits, effects, strict=True) if effect.changed)
    if changes:
        return RuleOutcome(name, changes)
    kept_value = [effect.kept_value for effect in effects if effect.kept_value]
    return RuleOutcome(name, skipped=f"kept: {', '.join(kept_value)}" if kept_value else "the pod is already so")

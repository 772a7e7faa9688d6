"""A pod and its workload into the mutated pod, with what each rule did."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from webhook.mutation.editor import PodEditor
from webhook.mutation.edits import Annotate, Edit, Effect
from webhook.mutation.rule import Rule, Skipped
from webhook.mutation.workload import Workload
from webhook.policy.policy import Policy

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What one rule did: the edits that changed the pod, or why there were none."""

    name: str
    edits: tuple[str, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Mutation:
    """`operations` (RFC 6902) turn the original into `pod`; both are empty of change where nothing was to be done."""

    pod: JsonObject
    operations: list[JsonObject]
    rules: tuple[RuleOutcome, ...]
    warnings: tuple[str, ...]


def mutate(pod: JsonObject, workload: Workload, policy: Policy, rules: Sequence[type[Rule]]) -> Mutation:
    """The pod as the policy wants it. `pod` itself is left as it is.

    The rules in force, those that concern the workload and did not yield to the user, are written on the pod whether
    or not they found anything left to do, so that a second admission writes the same.

    Raises:
        PodTooLargeError: it would become larger than anything that can be stored.
    """
    editor = PodEditor(pod)
    outcomes: list[RuleOutcome] = []
    warnings: list[str] = []
    in_force: list[str] = []
    for rule in rules:
        edits = rule.edits(workload, policy)
        if isinstance(edits, Skipped):
            outcomes.append(RuleOutcome(rule.name, skipped=edits.reason))
            continue
        effects = [edit.apply(editor) for edit in edits]
        outcomes.append(_outcome(rule.name, edits, effects))
        warnings += [warning for effect in effects for warning in effect.warnings]
        if not all(effect.yielded_to for effect in effects):
            in_force.append(rule.name)
    Annotate(policy.policy_annotation, policy.identity).apply(editor)
    Annotate(policy.rules_annotation, ",".join(in_force)).apply(editor)
    return Mutation(editor.pod, editor.operations, tuple(outcomes), tuple(warnings))


def _outcome(name: str, edits: Sequence[Edit], effects: Sequence[Effect]) -> RuleOutcome:
    changes = tuple(str(edit) for edit, effect in zip(edits, effects, strict=True) if effect.changed)
    if changes:
        return RuleOutcome(name, changes)
    yielded_to = [effect.yielded_to for effect in effects if effect.yielded_to]
    return RuleOutcome(name, skipped=f"kept: {', '.join(yielded_to)}" if yielded_to else "the pod is already so")

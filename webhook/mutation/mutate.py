"""A pod and its workload into the mutated pod, with what each rule did."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from webhook.mutation.editor import PodEditor
from webhook.mutation.edits import Annotate
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

    The rules in force, those that concern the workload whether or not they found anything left to do, are written on
    the pod, so that a second admission writes the same.
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
        in_force.append(rule.name)
        changes = []
        for edit in edits:
            effect = edit.apply(editor)
            warnings += effect.warnings
            if effect.changed:
                changes.append(str(edit))
        outcomes.append(RuleOutcome(rule.name, tuple(changes), None if changes else "the pod is already so"))
    for key, value in (
        (policy.policy_annotation, policy.identity),
        (policy.rules_annotation, ",".join(in_force)),
    ):
        Annotate(key, value).apply(editor)
    return Mutation(editor.pod, editor.operations, tuple(outcomes), tuple(warnings))

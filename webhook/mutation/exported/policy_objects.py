"""The objects of one policy: the mutations with their variables, and the validations."""

from collections.abc import Iterator
from typing import Any

from webhook.mutation.exported import (
    cards,
    limits,
    node_affinity,
    qos,
    scheduling,
    spreading,
    tolerations,
    variables,
)
from webhook.mutation.exported.cel import Cel, add, all_of, concatenated, parents, text, texts, when
from webhook.mutation.exported.matching import in_force
from webhook.mutation.exported.variables import Variable
from webhook.policy.keys import Keys
from webhook.policy.policy import WITHDRAWAL, Policy


def reading(policy: Policy, before: tuple[Policy, ...]) -> Iterator[Variable]:
    """Yield the variables of what is requested, each after those that it uses.

    The policies in `before` have precedence over `policy` where both select a namespace.
    """
    yield "own", "object.metadata.?annotations.orValue({})"
    yield "labels", "object.metadata.?labels.orValue({})"
    yield "defaults", "namespaceObject.metadata.?annotations.orValue({})"
    yield "inForce", in_force(policy, before)
    yield from scheduling.own_scheduler()
    yield from variables.requested_cards(policy)
    yield from variables.workload_type(policy)
    if policy.spec.namespace_limits:
        yield from limits.allowed_defaults(policy)
    yield from scheduling.scheduler(policy)
    of_kai = variables.is_of_backend(policy, "kai", "variables.batchScheduler")
    shares = f"variables.share || (variables.kaiShare && {of_kai})"
    yield "accelerators", f"({shares}) ? [0] : variables.requested"
    yield from scheduling.batch(policy)
    if policy.spec.namespace_limits:
        yield from limits.denials(policy)
    yield from cards.card_of(policy)
    yield from cards.products(policy)
    yield from cards.amounts(policy)
    yield from spreading.topology(policy)
    yield "packText", variables.value_of(policy, Keys.bin_packing)
    if qos.asks_for_class(policy):
        yield from qos.parts(policy)
        yield from qos.denied_gaps(policy)


def injection(policy: Policy) -> Iterator[Variable]:
    """Yield the variables of what is injected."""
    left = variables.is_left_without_card(policy)
    conditions = ["variables.inForce", 'variables.type != ""', f"!{left}" if left != "false" else "true"]
    if policy.spec.namespace_limits:
        conditions += ["variables.limitDenials.size() == 0", limits.is_countable(policy)]
    if qos.asks_for_class(policy):
        conditions.append("variables.gaps.size() == 0")
    yield "usable", all_of(conditions)
    yield from cards.any_product(policy)
    usage = f"[{node_affinity.usage_requirement(policy)}]"
    yield "requirements", concatenated((usage, *cards.requirements(policy)))
    yield from node_affinity.required_variables()
    if node_affinity.preferences(policy):
        yield from node_affinity.preferred_variables(policy)
    key = text(policy.node_usage_key)
    pools = (
        (name, f"[{', '.join(tolerations.equal(key, text(value)) for value in each.node_usage.allow)}]")
        for name, each in variables.types_of(policy)
    )
    yield "tolerated", concatenated((variables.by_type(pools, "[]"), *cards.tolerations(policy)))
    yield "missing", tolerations.missing("variables.tolerated")
    if tolerations.has_extra(policy):
        yield from tolerations.extra_variables(policy)
    if scheduling.has_priority(policy):
        yield from scheduling.priority(policy)
    yield from spreading.group(policy)
    yield from spreading.packing(policy)
    yield from spreading.spread_variables(policy)


def mutations(policy: Policy) -> list[dict[str, Any]]:
    """Return one mutation, since the API server encodes and decodes the pod for each.

    Its operations are in the order of the rules, and each is expressed on the pod as it was before all of them.
    """
    expression = when("variables.usable", concatenated(_operations(policy)))
    return [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]


def _operations(policy: Policy) -> Iterator[Cel]:
    # Encoding drops an empty map, so one that stays so changes nothing.
    yield from (parents(("metadata", each, "")) for each in ("labels", "annotations"))
    # From here on the pod has spec.affinity.nodeAffinity.
    yield node_affinity.required_operations()
    if node_affinity.preferences(policy):
        yield node_affinity.preferred_operations()
    yield tolerations.operations(policy)
    yield spreading.packing_operations(policy)
    yield from scheduling.field_operations(policy, native=True)
    yield scheduling.scheduler_operations()
    yield from scheduling.field_operations(policy, native=False)
    if scheduling.has_priority(policy):
        yield scheduling.priority_operations()
    if qos.asks_for_class(policy) and qos.fills_limits(policy):
        yield qos.limit_operations()
    yield spreading.spread_operations(policy)
    yield _record_operations(policy)


def _record_operations(policy: Policy) -> Cel:
    """Return the operations that write the policy and the rules that apply to the annotations of the pod."""
    recorded = f'variables.own[?{text(policy.rules_annotation)}].orValue("")'
    withdrawn = when(f"{recorded}.startsWith({text(WITHDRAWAL)})", texts([WITHDRAWAL]))
    names = concatenated((withdrawn, *(when(condition, texts([name])) for name, condition in _effective(policy))))
    values = {policy.policy_annotation: text(policy.identity), policy.rules_annotation: f'{names}.join(",")'}
    return concatenated(add(("metadata", "annotations", key), value) for key, value in values.items())


def _effective(policy: Policy) -> Iterator[tuple[str, Cel]]:
    """Yield the rules, each with the condition under which it has not kept the user's values throughout."""
    yield "NodeUsageAffinity", "true"
    yield "GpuProduct", cards.is_effective()
    if tolerations.has_extra(policy):
        yield "ExtraTolerations", "variables.extra.size() > 0"
    yield "BinPacking", "variables.isPacked"
    yield "SchedulerName", 'variables.scheduler != "" && variables.ownScheduler in ["", variables.scheduler]'
    yield "BatchScheduler", scheduling.batch_is_effective(policy)
    if scheduling.has_priority(policy):
        yield "Priority", "variables.priorityIsEffective"
    yield "Spread", "variables.spreads"
    if qos.asks_for_class(policy):
        yield "Guaranteed", qos.is_effective()

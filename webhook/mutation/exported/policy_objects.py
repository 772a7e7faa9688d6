"""The objects of one policy: the mutations with their variables, and the validations."""

from collections.abc import Iterator
from typing import Any

from webhook.mutation.exported import (
    cards,
    limits,
    node_affinity,
    qos,
    record,
    scheduling,
    spreading,
    tolerations,
    variables,
)
from webhook.mutation.exported.cel import Cel, all_of, concatenated, json_patch, text, when
from webhook.mutation.exported.edits import mutation
from webhook.mutation.exported.matching import in_force
from webhook.mutation.exported.variables import Variable
from webhook.policy.keys import Keys
from webhook.policy.policy import Policy

USABLE: Cel = "variables.usable"


def reading(policy: Policy, before: tuple[Policy, ...]) -> Iterator[Variable]:
    """Yield the variables of what is requested, each after those that it uses.

    The policies in `before` have precedence over `policy` where both select a namespace.
    """
    yield from variables.own_and_defaults()
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
    """Return the mutations in the order of the rules; each finds the pod as those before have left it."""
    found = [mutation(USABLE, (node_affinity.required_operations(), tolerations.operations("missing")))]
    preferred = node_affinity.preferences(policy)
    found += [mutation(USABLE, node_affinity.preferred_operations(policy, index)) for index in range(preferred)]
    if tolerations.has_extra(policy):
        found.append(mutation(USABLE, tolerations.operations("extraMissing")))
    found.append(mutation(USABLE, spreading.packing_operations(policy)))
    native = concatenated(scheduling.field_operations(policy, native=True))
    if native != "[]":
        found.append(mutation(USABLE, native))
    fields = [scheduling.scheduler_operations(), *_batch_operations(policy)]
    if scheduling.has_priority(policy):
        fields.append(scheduling.priority_operations())
    if qos.asks_for_class(policy) and qos.fills_limits(policy):
        fields.append(qos.limit_operations())
    found.append(mutation(USABLE, fields))
    found.append(mutation(USABLE, spreading.spread_operations(policy)))
    found.append(mutation(USABLE, record.operations(policy)))
    return [each for each in found if each["jsonPatch"]["expression"] != "[]"]


def _batch_operations(policy: Policy) -> Iterator[Cel]:
    """Yield the operations of batch keys, with the missing parents."""
    operations = concatenated(scheduling.field_operations(policy, native=False))
    parents = (
        when(f"!object.metadata.?{each}.hasValue()", f"[{json_patch('add', text(f'/metadata/{each}'), 'dyn({})')}]")
        for each in ("labels", "annotations")
    )
    if operations != "[]":
        yield when(f"{operations}.size() > 0", concatenated((*parents, operations)))

"""The mutation of a policy, with its variables."""

from collections.abc import Iterator
from typing import Any

from webhook.mutation.exported import affinity_operations, scheduling, tolerations, variables
from webhook.mutation.exported.cel import Cel, add, concatenated, parents, text, texts, when
from webhook.mutation.exported.matching import in_force
from webhook.mutation.exported.variables import Variable
from webhook.mutation.rules import RULES
from webhook.policy.policy import WITHDRAWAL, Policy

_PRODUCT_TAINT: Cel = 'variables.card + ".product"'


def injection(policy: Policy, before: tuple[Policy, ...]) -> Iterator[Variable]:
    """Yield the variables for the requests of the pod and for the injected fields. Each one follows those that it uses.

    The policies in `before` have precedence over `policy` in namespaces that both select.
    """
    yield "own", "object.metadata.?annotations.orValue({})"
    yield "defaults", "namespaceObject.metadata.?annotations.orValue({})"
    yield "inForce", in_force(policy, before)
    yield from variables.requested_cards(policy)
    yield from variables.workload_type(policy)
    yield "usable", variables.is_usable(policy)
    yield from scheduling.scheduler(policy)
    yield from scheduling.packing(policy)
    yield from variables.products(policy)
    of_products = affinity_operations.requirement("variables.productLabel", "variables.accepted")
    product = when("variables.accepted.size() > 0", f"[{of_products}]") if policy.spec.product_affinity else "[]"
    yield "requirements", concatenated((f"[{affinity_operations.usage_requirement(policy)}]", product))
    yield from affinity_operations.required_variables()
    yield affinity_operations.preferences(policy)
    yield "tolerated", concatenated(_tolerations(policy))
    yield "missing", tolerations.missing("variables.tolerated")
    if tolerations.has_extra(policy):
        yield from tolerations.extra_variables(policy)


def _tolerations(policy: Policy) -> Iterator[Cel]:
    key = text(policy.node_usage_key)
    pools = (
        (name, f"[{', '.join(tolerations.equal(key, text(value)) for value in each.node_usage.allow)}]")
        for name, each in variables.types_of(policy)
    )
    yield variables.by_type(pools, "[]")
    yield f"variables.accepted.map(p, {tolerations.equal(_PRODUCT_TAINT, 'p')})"
    indexes: dict[str, list[int]] = {}
    for index, each in enumerate(policy.spec.accelerators):
        indexes.setdefault(each.product_taint, []).append(index)
    for taint, of_taint in indexes.items():
        asks = f"variables.anyWillDo && variables.requested.exists(i, i in {of_taint})"
        yield when(asks, f"[{tolerations.exists(text(taint))}]")


def mutations(policy: Policy) -> list[dict[str, Any]]:
    """Return one mutation, which the API server decodes the pod once for, of operations in the order of the rules."""
    expression = when("variables.usable", concatenated(_operations(policy)))
    return [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]


def _operations(policy: Policy) -> Iterator[Cel]:
    # Encoding drops an empty map, so one that stays so changes nothing.
    yield from (parents(("metadata", each, "")) for each in ("labels", "annotations"))
    # From here on the pod has spec.affinity.nodeAffinity.
    yield affinity_operations.required_operations()
    yield affinity_operations.preferred_operations(policy)
    yield tolerations.operations(policy)
    yield scheduling.packing_operations(policy)
    yield scheduling.scheduler_operations()
    yield _record_operations(policy)


def _record_operations(policy: Policy) -> Cel:
    """Return the operations that write the policy and the effective rules to the annotations of the pod.

    Rules that the webhook has recorded are kept, because the API server evaluates the policy again after webhooks.
    """
    recorded = f'variables.own[?{text(policy.rules_annotation)}].orValue("")'
    withdrawn = when(f"{recorded}.startsWith({text(WITHDRAWAL)})", texts([WITHDRAWAL]))
    is_current = f'variables.own[?{text(policy.policy_annotation)}].orValue("") == {text(policy.identity)}'
    known = when(is_current, f'{recorded}.split(",")')
    effective = concatenated(when(condition, texts([name])) for name, condition in effective_rules(policy).items())
    rules = f"{texts(RULES)}.filter(r, r in {effective} || r in {known})"
    values = {
        policy.policy_annotation: text(policy.identity),
        policy.rules_annotation: f'{concatenated((withdrawn, rules))}.join(",")',
    }
    return concatenated(add(("metadata", "annotations", key), value) for key, value in values.items())


def effective_rules(policy: Policy) -> dict[str, Cel]:
    """Return the exported rules, each with its condition: it is effective, and did not only keep values of the user."""
    return {
        "NodeUsageAffinity": "true",
        "GpuProduct": "variables.accepted.size() > 0 || variables.anyWillDo",
        "ExtraTolerations": "variables.extra.size() > 0" if tolerations.has_extra(policy) else "false",
        "BinPacking": "variables.isPacked",
        "SchedulerName": 'variables.scheduler != "" && variables.ownScheduler in ["", variables.scheduler]',
    }

"""The webhook's own annotations, and a policy's objects by name."""

from collections.abc import Iterator

from webhook.mutation.exported import cards, qos, scheduling
from webhook.mutation.exported.cel import Cel, concatenated, json_patch, text, texts, when
from webhook.mutation.exported.edits import pointer
from webhook.mutation.exported.tolerations import has_extra
from webhook.mutation.rules.batch_scheduler import BatchScheduler
from webhook.mutation.rules.bin_packing import BinPacking
from webhook.mutation.rules.extra_tolerations import ExtraTolerations
from webhook.mutation.rules.gpu_product import GpuProduct
from webhook.mutation.rules.guaranteed import Guaranteed
from webhook.mutation.rules.node_usage_affinity import NodeUsageAffinity
from webhook.mutation.rules.priority import Priority
from webhook.mutation.rules.scheduler_name import SchedulerName
from webhook.mutation.rules.spread import Spread
from webhook.policy.policy import WITHDRAWAL, Policy


def _effective(policy: Policy) -> Iterator[tuple[str, Cel]]:
    """Yield the rules, each with the condition under which it has not kept the user's values throughout."""
    yield NodeUsageAffinity.name, "true"
    yield GpuProduct.name, cards.is_effective()
    if has_extra(policy):
        yield ExtraTolerations.name, "variables.extra.size() > 0"
    yield BinPacking.name, "variables.isPacked"
    yield SchedulerName.name, scheduling.scheduler_is_effective()
    yield BatchScheduler.name, scheduling.batch_is_effective(policy)
    if scheduling.has_priority(policy):
        yield Priority.name, "variables.priorityIsEffective"
    yield Spread.name, "variables.spreads"
    if qos.asks_for_class(policy):
        yield Guaranteed.name, qos.is_effective()


def operations(policy: Policy) -> Cel:
    """Return the operations that write the policy and the rules that apply to the annotations of the pod."""
    recorded = f'variables.own[?{text(policy.rules_annotation)}].orValue("")'
    withdrawn = when(f"{recorded}.startsWith({text(WITHDRAWAL)})", texts([WITHDRAWAL]))
    names = concatenated((withdrawn, *(when(condition, texts([name])) for name, condition in _effective(policy))))
    values = {policy.policy_annotation: text(policy.identity), policy.rules_annotation: f'{names}.join(",")'}
    return concatenated(
        f"[{json_patch('add', text(pointer(('metadata', 'annotations', key))), value)}]"
        for key, value in values.items()
    )

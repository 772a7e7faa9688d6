"""The rules of the policy for the pods of a workload. Each is a function with an entry in `RULES`.

A rule reads the workload and the policy, never the pod or the cluster. So the injection depends only on the pod
template and the policy revision, as required by schedulers that group equal pods. A rule returns its edits in the order
of their application, or the reason why it does not apply.
"""

from collections.abc import Iterator, Mapping, Sequence

from webhook.documents.text import cut
from webhook.mutation.edits.edits import AddLabel, AddToleration, Edit, SetScheduler, packing_hint
from webhook.mutation.edits.node_edits import PreferNode, RequireNode
from webhook.mutation.edits.node_terms import LONGEST_SHOWN, NodeLabelRequirement, Operator
from webhook.mutation.edits.scheduling_edits import (
    SetAmount,
    SetField,
    SetPriorityClass,
    SpreadByAntiAffinity,
    SpreadByConstraint,
    WhenUnsatisfiable,
)
from webhook.mutation.mutate import Rule
from webhook.mutation.workload.gathering import Gathering
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


def node_usage_affinity(workload: Workload, policy: Policy) -> Sequence[Edit]:
    """Require the type's `node.usage` labels, prefer its own pool by weight, and tolerate the pools' taints."""
    usage, key = workload.type.node_usage, policy.node_usage_key
    preferences = tuple((weight, NodeLabelRequirement(key, "In", (value,))) for value, weight in usage.preferences)
    return (
        RequireNode(NodeLabelRequirement(key, "In", usage.allow)),
        *(PreferNode(weight, preference, preferences) for weight, preference in preferences),
        *(AddToleration(key, value) for value in usage.allow),
    )


def gpu_product(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
    """Require the labels of the annotations, and tolerate the taints of these products, or of every allowed one."""
    accelerator = workload.accelerator
    edits: list[Edit] = []
    if workload.products and policy.spec.product_affinity:
        label, *others = accelerator.product_labels
        edits.append(RequireNode(NodeLabelRequirement(label, "In", workload.products), tuple(others)))
    edits += _amounts(workload)
    edits += [AddToleration(accelerator.product_taint, product) for product in workload.products]
    edits += _any_product(workload)
    if not edits and not workload.requested_accelerators:
        return "the pod has no valid gpu- annotation and requests no accelerator"
    return edits or "the pod has no valid gpu- annotation"


def _amounts(workload: Workload) -> Iterator[Edit]:
    accelerator, amounts = workload.accelerator, workload.amounts
    memory = amounts.memory
    if memory is not None and accelerator.labels.memory_values:
        values = accelerator.memory_values(memory.least_bytes)
        yield _require(accelerator.memory_labels, "In", values, memory.origin)
    elif memory is not None:
        yield _at_least(accelerator.memory_labels, accelerator.least_memory(memory.least_bytes), memory.origin)
    if amounts.count is not None:
        yield _at_least(accelerator.count_labels, amounts.count)
    if amounts.driver is not None:
        yield _at_least(accelerator.driver_labels, amounts.driver)


def _require(labels: Sequence[str], operator: Operator, values: tuple[str, ...], origin: str = "") -> RequireNode:
    """Return the edit that requires one of `labels`, at least one."""
    return RequireNode(NodeLabelRequirement(labels[0], operator, values, origin), tuple(labels[1:]))


def _at_least(labels: Sequence[str], least: int, origin: str = "") -> RequireNode:
    # Node selectors have no operator for "at least", only Gt.
    return _require(labels, "Gt", (str(least - 1),), origin)


def _any_product(workload: Workload) -> Iterator[Edit]:
    choice = workload.any_product
    if choice is None:
        return
    for accelerator in workload.requested_accelerators:
        labels, taint = accelerator.product_labels, accelerator.product_taint
        if choice.listed is not None:
            if choice.is_required and choice.listed:
                yield _require(labels, "In", choice.listed)
            yield from (AddToleration(taint, product) for product in choice.listed)
            continue
        if choice.excluded:
            # NotIn also matches nodes without the label, whose taint could be that of an excluded product.
            yield _require(labels, "Exists", ())
            yield from (RequireNode(NodeLabelRequirement(label, "NotIn", choice.excluded)) for label in labels)
        yield AddToleration(taint, operator="Exists")


def extra_tolerations(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
    """Tolerate the taints that the policy lists for the accelerators that the pod requests, then for its type."""
    listed = [accelerator.extra_tolerations for accelerator in workload.requested_accelerators]
    edits = [
        AddToleration(each.key, each.value, each.effect or "", each.operator, each.toleration_seconds)
        for tolerations in (*listed, workload.type.extra_tolerations)
        for each in tolerations
    ]
    return edits or "the policy lists no extra tolerations for this pod"


def bin_packing(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
    """Pack small pods on few nodes, by a label and pod affinity, so that whole nodes stay free for large pods."""
    if not workload.bin_packing:
        return "bin-packing is off for this pod"
    if not workload.batch.adds_packing_hint:
        return "the policy leaves packing to the scheduler (schedulers.NAME.binPackingHint)"
    packing, spreading = policy.spec.bin_packing, workload.spreading
    if not isinstance(spreading, str) and spreading.is_undone_by(packing):
        return f"the pod prefers to be spread over {spreading.topology_key}, which packing would undo"
    label = AddLabel(packing.label_key, packing.label_value, "others are not drawn to this pod")
    return label, packing_hint(packing)


def scheduler_name(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
    """Assign the pod to the scheduler of its workload type or annotation."""
    if workload.scheduler is None:
        return "the type names no scheduler"
    return (SetScheduler(workload.scheduler, workload.scheduler_is_requested),)


def batch_scheduler(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
    """Request queue, gang, its domain, share of a card and preemptibility in the fields that the scheduler reads."""
    batch, gathering = workload.batch, workload.gathering
    edits: list[Edit] = [SetField(field) for field in batch.fields]
    if isinstance(gathering, Gathering) and gathering.edit is not None:
        edits.append(gathering.edit)
    if edits:
        return edits
    if isinstance(gathering, Gathering):
        return "the owner of the pod states the domain of the gang"
    if batch.request.is_empty:
        return "no queue, gang or share of a card is requested"
    return f"scheduler {cut(batch.scheduler, LONGEST_SHOWN)} cannot express what is requested"


def priority(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
    """Set the PriorityClass of the workload type for a pod that names none."""
    name = workload.type.priority_class_name
    if name is None:
        return "the type names no priority class"
    return (SetPriorityClass(name, policy.spec.default_priority_class),)


def spread(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
    """Keep the replicas of one owner apart over a topology. A label is added if no other selects them."""
    spreading = workload.spreading
    if isinstance(spreading, str):
        return spreading
    settings, hint = spreading.settings, packing_hint(policy.spec.bin_packing)
    key, group, is_requested = spreading.topology_key, spreading.group, spreading.is_requested
    is_preferred = settings.mode == "preferred"
    if settings.form == "antiAffinity":
        weight = settings.weight if is_preferred else None
        return (SpreadByAntiAffinity(key, group, hint, is_requested, weight),)
    when: WhenUnsatisfiable = "ScheduleAnyway" if is_preferred else "DoNotSchedule"
    return (SpreadByConstraint(key, group, hint, is_requested, settings.max_skew, when),)


def guaranteed(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
    """Set missing amounts of cpu and memory for the QoS class Guaranteed, if they can be derived from other amounts."""
    if workload.qos is None:
        return "the type asks for no QoS class"
    return [SetAmount(path, value) for path, value in workload.qos.amounts] or "no limit or request to derive from"


RULES: Mapping[str, Rule] = {
    "NodeUsageAffinity": node_usage_affinity,
    "GpuProduct": gpu_product,
    "ExtraTolerations": extra_tolerations,
    "BinPacking": bin_packing,
    "SchedulerName": scheduler_name,
    "BatchScheduler": batch_scheduler,
    "Priority": priority,
    "Spread": spread,
    "Guaranteed": guaranteed,
}
"""The rules by name, in the order in which they are applied."""

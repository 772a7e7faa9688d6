"""Scheduler, batch keys and priority, as `SetScheduler`, `SetField` and `SetPriorityClass` edit them."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from webhook.backends.backend import Backend, BatchRequest, PodField
from webhook.backends.kube_scheduler import Native
from webhook.backends.kueue import Kueue
from webhook.backends.registry import BACKENDS
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.mutation.edits.editor import Path
from webhook.mutation.edits.scheduling_edits import PREEMPT_LOWER_PRIORITY
from webhook.mutation.exported.cards import IS_FRACTION, SHORTEST_FRACTION, is_positive
from webhook.mutation.exported.cel import (
    Cel,
    add,
    add_missing,
    all_of,
    any_of,
    concatenated,
    is_label_value,
    json_patch,
    text,
    texts,
    value_at,
    when,
)
from webhook.mutation.exported.variables import Variable, by_type, is_of_backend, types_of, value_of
from webhook.policy.keys import Keys
from webhook.policy.policy import Policy

_SCHEDULER: Path = ("spec", "schedulerName")
_SIZE = 1_234_567
_PROBE = BatchRequest("variables.queue", "variables.gang", _SIZE, "variables.fraction", preemptible=True)
REQUESTED = {
    "queue": 'variables.queue != ""',
    "gang": 'variables.gang != ""',
    "gang_size": "variables.gangSize > 0",
    "gpu_fraction": 'variables.fraction != ""',
    "preemptible": 'variables.preemptible != ""',
}
"""Whether the pod has a valid value of each attribute of a request."""

_OF_QUEUE = frozenset(("queue", "gang", "gang_size"))


def own_scheduler() -> Iterator[Variable]:
    """Yield the scheduler that the pod names itself. It is empty for the default one."""
    name = f'{value_at(_SCHEDULER)}.orValue("")'
    yield "ownScheduler", f'({name} == {text(DEFAULT_SCHEDULER)} ? "" : {name})'


def scheduler(policy: Policy) -> Iterator[Variable]:
    """Yield the scheduler that the annotation or the type chooses, and the one that the pod will have."""
    yield "schedulerText", value_of(policy, Keys.scheduler)
    of_type = by_type(((name, text(each.scheduler_name or "")) for name, each in types_of(policy)), '""')
    named = "variables.schedulerText"
    yield "scheduler", f"({named} in {texts(policy.spec.allowed_schedulers)} ? {named} : {of_type})"
    default = 'variables.scheduler == "" ? ""'
    chosen = f'({default} : variables.scheduler == {text(DEFAULT_SCHEDULER)} ? "" : variables.scheduler)'
    yield "batchScheduler", f'(variables.ownScheduler != "" ? variables.ownScheduler : {chosen})'


def batch(policy: Policy) -> Iterator[Variable]:
    """Yield what the annotations request of the scheduler; empty or 0 if they do not."""
    for name, annotation in (("queue", Keys.queue), ("gang", Keys.gang)):
        yield f"{name}Text", value_of(policy, annotation)
        yield name, f'({is_label_value(f"variables.{name}Text")} ? variables.{name}Text : "")'
    yield "gangSizeText", value_of(policy, Keys.gang_size)
    yield "gangSize", f"({is_positive('variables.gangSizeText')} ? int(variables.gangSizeText) : 0)"
    yield "fractionText", value_of(policy, Keys.gpu_fraction)
    is_valid = f"{IS_FRACTION} && variables.requested.size() == 0"
    yield "fraction", f'({is_valid} ? {SHORTEST_FRACTION} : "")'
    yield "preemptibleText", value_of(policy, Keys.preemptible)
    yield "preemptible", 'variables.preemptibleText in ["true", "false"] ? variables.preemptibleText : ""'


def _backends(policy: Policy) -> Iterator[tuple[Cel, type[Backend], frozenset[str]]]:
    """Yield the backends that read annotations, whether the pod is of one, and the attributes that it reads."""
    every = frozenset(REQUESTED)
    if policy.spec.queueing == "kueue":
        yield "true", Kueue, _OF_QUEUE
        every -= _OF_QUEUE
    for name, backend in BACKENDS.items():
        condition = is_of_backend(policy, name, "variables.batchScheduler")
        if condition != "false":
            yield condition, backend, every


def batch_fields(policy: Policy) -> Iterator[tuple[Cel, Path, Cel]]:
    """Yield the fields of the pod that express the request: whether there is one, its path and value."""
    for is_it, backend, attributes in _backends(policy):
        for requested, field in _fields(backend, attributes):
            yield all_of((is_it, requested)), field.path, _value(backend, field, attributes)


def _fields(backend: type[Backend], attributes: frozenset[str]) -> Iterator[tuple[Cel, PodField]]:
    """Yield the fields that `backend` writes, each with the attributes that it needs."""
    known: dict[tuple[str, ...], None] = {}
    ordered = [each for each in REQUESTED if each in attributes]
    for size in range(1, len(ordered) + 1):
        for chosen in combinations(ordered, size):
            for field in _expressed(backend, chosen):
                if field.path not in known:
                    known[field.path] = None
                    yield all_of(REQUESTED[each] for each in chosen), field


def _expressed(backend: type[Backend], chosen: Sequence[str], *, preemptible: bool = True) -> Sequence[PodField]:
    given: dict[str, Any] = {each: getattr(_PROBE, each) for each in chosen}
    if "preemptible" in given:
        given["preemptible"] = preemptible
    return backend.express(BatchRequest(**given)).fields


def _value(backend: type[Backend], field: PodField, attributes: frozenset[str]) -> Cel:
    """Return the value of a field: that of an annotation, or a text for each of the two of `preemptible`."""
    if field.value == str(_SIZE):
        return "string(variables.gangSize)"
    if field.value in (_PROBE.queue, _PROBE.gang, _PROBE.gpu_fraction):
        return field.value
    chosen = tuple(attributes)
    other = next(each for each in _expressed(backend, chosen, preemptible=False) if each.path == field.path)
    return f'(variables.preemptible == "true" ? {text(field.value)} : {text(other.value)})'


def field_operations(policy: Policy, *, native: bool) -> Iterator[Cel]:
    """Yield the operations that set the batch fields, `native` those of `spec`, the others those of the metadata."""
    for condition, path, value in batch_fields(policy):
        if (path == Native.group_at) == native:
            is_new = f"!{value_when_packed(policy, path)}.hasValue()"
            needed = add(path, value)
            if native:
                needed = concatenated((add_missing(path[:-1], "dyn({})"), needed))
            yield when(all_of((condition, is_new)), needed)


def value_when_packed(policy: Policy, path: Path) -> Cel:
    """Return the optional value at `path` of the pod with the label of packing, which is added first."""
    packing, own = policy.spec.bin_packing, value_at(path)
    if path != ("metadata", "labels", packing.label_key):
        return own
    return f"{own}.or(variables.isPacked ? optional.of({text(packing.label_value)}) : optional.none())"


def batch_labels(policy: Policy) -> Iterator[tuple[Cel, Cel, Cel]]:
    """Yield the batch fields that are labels: whether the label is added, its key and its value."""
    for condition, path, value in batch_fields(policy):
        if path[:2] == ("metadata", "labels"):
            is_new = f"!{value_when_packed(policy, path)}.hasValue()"
            yield all_of((condition, is_new)), text(str(path[-1])), value


def batch_is_effective(policy: Policy) -> Cel:
    """Return whether the pod has one of the batch fields as requested, or none in its place."""
    return any_of(
        all_of((condition, f"{value_when_packed(policy, path)}.orValue({value}) == {value}"))
        for condition, path, value in batch_fields(policy)
    )


def scheduler_operations() -> Cel:
    """Return the operations that set the scheduler."""
    is_new = 'variables.scheduler != "" && variables.ownScheduler == ""'
    differs = f"variables.scheduler != {text(DEFAULT_SCHEDULER)}"
    return when(all_of((is_new, differs)), add(_SCHEDULER, "variables.scheduler"))


def priority(policy: Policy) -> Iterator[Variable]:
    """Yield the PriorityClass of the type, and whether it replaces that of the pod."""
    yield (
        "priorityClass",
        by_type(((name, text(each.priority_class_name or "")) for name, each in types_of(policy)), '""'),
    )
    own = 'object.spec.?priorityClassName.orValue("")'
    is_default = (
        f"{own} == {text(policy.spec.default_priority_class)}" if policy.spec.default_priority_class else "false"
    )
    is_unset = (
        f'({own} == "" && object.spec.?priority.orValue(0) == 0 && '
        f'object.spec.?preemptionPolicy.orValue("") in ["", {text(PREEMPT_LOWER_PRIORITY)}])'
    )
    yield (
        "priorityIsNew",
        all_of(('variables.priorityClass != ""', f"{own} != variables.priorityClass", any_of((is_default, is_unset)))),
    )
    yield (
        "priorityIsEffective",
        (f'variables.priorityClass != "" && (variables.priorityIsNew || {own} == variables.priorityClass)'),
    )


def has_priority(policy: Policy) -> bool:
    """Return whether a type names a PriorityClass."""
    return any(each.priority_class_name for _, each in types_of(policy))


def priority_operations() -> Cel:
    """Return the operations that set the class; the API server sets the removed values by it."""
    removed = (
        when(f"object.spec.?{each}.hasValue()", f"[{json_patch('remove', text(f'/spec/{each}'))}]")
        for each in ("priority", "preemptionPolicy")
    )
    added = add(("spec", "priorityClassName"), "variables.priorityClass")
    return when("variables.priorityIsNew", concatenated((*removed, added)))


def packing_hint_schedulers(policy: Policy) -> Cel:
    """Return whether the policy adds the packing hint for the scheduler of the pod."""
    without = [name for name, each in policy.spec.schedulers.items() if not each.bin_packing_hint]
    names = [*without, *([""] if DEFAULT_SCHEDULER in without else [])]
    return f"!(variables.batchScheduler in {texts(names)})" if names else "true"

"""Tolerations, as `AddToleration` adds them."""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.kube.pod.taints import NO_SCHEDULE, covers
from webhook.mutation.edits.edits import AddToleration
from webhook.mutation.exported.cel import Cel, all_of, append, concatenated, dyn_map, negated, text, value_at, when
from webhook.mutation.exported.variables import Variable, is_type, types_of
from webhook.policy.policy import Policy
from webhook.policy.spec.workloads import ExtraToleration

TOLERATIONS = ("spec", "tolerations")


def equal(key: Cel, value: Cel) -> Cel:
    """Return the toleration of a NoSchedule taint; `key` and `value` are expressions."""
    return dyn_map({"key": key, "operator": '"Equal"', "value": value, "effect": text(NO_SCHEDULE)})


def exists(key: Cel) -> Cel:
    """Return the toleration of a NoSchedule taint with any value."""
    return dyn_map({"key": key, "operator": '"Exists"', "effect": text(NO_SCHEDULE)})


def _is_covered(*, has_time: bool) -> Cel:
    """Return whether the pod's toleration `t` covers the new toleration `c`."""
    lasts = "(!has(t.tolerationSeconds) || (has(c.tolerationSeconds) && c.tolerationSeconds <= t.tolerationSeconds))"
    is_bound = f'({"true" if not has_time else "false"} || c.?effect.orValue("") in ["NoSchedule", "PreferNoSchedule"]'
    operator = 't.?operator.orValue("")'
    values = f'({operator} in ["", "Equal"] && c.operator == "Equal" && t.?value.orValue("") == c.?value.orValue(""))'
    return all_of(
        (
            '(t.?key.orValue("") == "" || t.key == c.key)',
            '(t.?effect.orValue("") == "" || t.effect == c.?effect.orValue(""))',
            f'({operator} == "Exists" || {values})',
            f"{is_bound} || {lasts})" if has_time else "true",
        )
    )


def missing(candidates: Cel, *added: Cel, has_time: bool = False) -> Cel:
    """Return the `candidates` that are covered neither by a toleration of the pod nor by one in the lists `added`."""
    present = concatenated((f"{value_at(TOLERATIONS)}.orValue([])", *added))
    return f"{candidates}.filter(c, !{present}.exists(t, {_is_covered(has_time=has_time)}))"


def operations(policy: Policy) -> Cel:
    """Return the operations that append the tolerations that the pod lacks."""
    lacking = concatenated(("variables.missing", *(["variables.extraMissing"] if has_extra(policy) else [])))
    return when(f"{lacking}.size() > 0", append(lacking, TOLERATIONS))


def extra_variables(policy: Policy) -> Iterator[Variable]:
    """Yield the tolerations that the policy lists for the accelerators and the type, and those that are missing."""
    yield "extra", concatenated(_extra(policy))
    yield "extraMissing", missing("variables.extra", "variables.missing", has_time=True)


def has_extra(policy: Policy) -> bool:
    """Return whether the policy lists tolerations."""
    of_cards = any(each.extra_tolerations for each in policy.spec.accelerators)
    return of_cards or any(each.extra_tolerations for each in policy.spec.workload_types.values())


def _extra(policy: Policy) -> Iterator[Cel]:
    """Yield the tolerations in order, without those that an earlier one covers."""
    before: list[tuple[Cel, Mapping[str, Any]]] = []
    for condition, each in _listed(policy):
        edit = AddToleration(each.key, each.value, each.effect or "", each.operator, each.toleration_seconds)
        toleration = edit.to_json()
        if any(covers(other, toleration) and holds == condition for holds, other in before):
            continue
        covered = [holds for holds, other in before if covers(other, toleration) and _may_both(holds, condition)]
        before.append((condition, toleration))
        fields = {key: text(value) if isinstance(value, str) else str(value) for key, value in toleration.items()}
        yield when(all_of((condition, *map(negated, covered))), f"[{dyn_map(fields)}]")


def _may_both(one: Cel, other: Cel) -> bool:
    """Return whether two conditions can both be true for a pod, which has only one type."""
    types = [each for each in (one, other) if each.startswith("variables.type ")]
    return len(types) < 2 or one == other


def _listed(policy: Policy) -> Iterator[tuple[Cel, ExtraToleration]]:
    for index, accelerator in enumerate(policy.spec.accelerators):
        for each in accelerator.extra_tolerations:
            yield f"{index} in variables.requested", each
    for name, of_type in types_of(policy):
        for each in of_type.extra_tolerations:
            yield is_type([name]), each

"""The second invariant of edits: no value of the user is removed or overruled. ARCHITECTURE.md states both."""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.mutation.edits.scheduling_edits import PREEMPT_LOWER_PRIORITY
from webhook.policy.policy import WITHDRAWAL, Policy

Steps = tuple[str, ...]
"""The keys and indices that lead to a value."""


def lost_values(before: Any, after: Any, place: Steps = ()) -> Iterator[Steps]:
    """Yield the places of values in `before` that `after` does not have in the same place; null is no value.

    A list may grow at its end. The time is linear in the size of `before`.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            yield from lost_values(value, after.get(key), (*place, key))
    elif isinstance(before, list) and isinstance(after, list):
        if len(after) < len(before):
            yield place
        for index, (left, right) in enumerate(zip(before, after, strict=False)):
            yield from lost_values(left, right, (*place, str(index)))
    elif before is not None and before != after:
        yield place


def overruled_values(before: Mapping[str, Any], after: Mapping[str, Any], policy: Policy) -> Iterator[Steps]:
    """Yield the places of values that the user wrote in the pod `before` and that the admitted pod `after` lacks."""
    for place in lost_values(before, after):
        if not may_replace(place, before, after, policy):
            yield place


def may_replace(place: Steps, before: Mapping[str, Any], after: Mapping[str, Any], policy: Policy) -> bool:
    """Return whether the value at `place` of the pod `before` counts as unset.

    These are the webhook's own annotations, injected tolerations that it takes back, and the values that the API server
    has filled in.
    """
    spec = before.get("spec") or {}
    match place:
        case ("metadata", "annotations", key):
            return key in (policy.policy_annotation, policy.rules_annotation)
        case ("spec", "tolerations", *_):
            # Those that the webhook has injected itself, and takes back.
            return _is_withdrawn(after, policy) and not _is_withdrawn(before, policy)
        case ("spec", "schedulerName"):
            return spec.get("schedulerName") in ("", DEFAULT_SCHEDULER)
        case ("spec", "priorityClassName" | "priority" | "preemptionPolicy"):
            return bool((after.get("spec") or {}).get("priorityClassName")) and _has_default_priority(spec, policy)
    return False


def _is_withdrawn(pod: Mapping[str, Any], policy: Policy) -> bool:
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(policy.rules_annotation) or "").startswith(WITHDRAWAL)


def _has_default_priority(spec: Mapping[str, Any], policy: Policy) -> bool:
    if name := spec.get("priorityClassName"):
        return bool(name == policy.spec.default_priority_class)
    return spec.get("priority") in (None, 0) and spec.get("preemptionPolicy") in (None, "", PREEMPT_LOWER_PRIORITY)

"""Warnings about annotations of the key domain that have no effect."""

from collections.abc import Mapping
from difflib import get_close_matches

from webhook.policy.policy import Policy

# The comparison is slow, and a pod may have thousands of annotations.
_MOST_COMPARED = 20


def misspelt_keys(annotations: Mapping[str, str], policy: Policy) -> list[str]:
    """Return warnings for keys similar to a known one. Other keys are ignored: the domain belongs to the company."""
    prefix = policy.spec.key_domain + "/"
    if not any(key.startswith(prefix) for key in annotations):
        return []
    ours = {*policy.keys, policy.policy_annotation, policy.rules_annotation}
    unknown = [key for key in annotations if key.startswith(prefix) and key not in ours]
    return [
        f"annotation {key} is not known and does nothing; did you mean {close[0]}?"
        for key in unknown[:_MOST_COMPARED]
        if (close := get_close_matches(key, policy.keys, 1, 0.9))
    ]


def keys_without_type(own: Mapping[str, str], policy: Policy, *, type_is_left_out: bool = False) -> list[str]:
    """Return a warning if a pod without a workload type has other annotations of ours.

    With `type_is_left_out`, its namespace has a type that does not apply because the pod requests no accelerator.
    """
    if not own:
        return []
    present = [key for key in policy.keys if key in own and key != policy.keys.workload_type]
    if not present:
        return []
    type_key = policy.keys.workload_type
    # Clients see the beginning of a long warning, so the keys are at its end.
    without_effect = f"without it, these have no effect: {', '.join(present)}"
    if type_is_left_out:
        reason = "the pod requests no accelerator, so the workload type of its namespace does not apply"
        example = policy.spec.accelerators[0].resources[0]
        return [f"{reason}: request one, such as {example}, or add {type_key}; {without_effect}"]
    types = ", ".join(policy.spec.workload_types)
    return [f"{type_key} is missing: add it ({types}); {without_effect}"]

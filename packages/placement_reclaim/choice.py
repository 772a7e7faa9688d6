"""Choose the held pods that may be evicted, with the reasons not to evict the others."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from placement_reclaim.cluster import Raw, full_name
from placement_reclaim.held import EVICTABLE, IDLE, Held, owner_of
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.documents.listing import plural
from webhook.policy.policy import Policy
from webhook.policy.spec.field_types import matches_any

PolicyOf = Callable[[str], Policy]
"""Returns the policy of a namespace."""


class Limits(NamedTuple):
    """The maximum numbers of evicted pods, in total and of one owner, and the time between two evictions.

    The cards of a pod must have been held for at least `least_seconds` when it is evicted.
    """

    most: int
    most_per_owner: int
    pause_seconds: float = 0
    least_seconds: float = 0


def choose(rows: Iterable[Held], policy_of: PolicyOf, snapshot: Snapshot, limits: Limits) -> list[tuple[Held, str]]:
    """Return each row with the reason not to evict its pods, or "" to evict them all. A gang is never split."""
    evicted, found = Counter[object](), []
    for held in rows:
        own, more = Counter((held.namespace, owner_of(pod)) for pod in held.pods), plural(len(held.pods), "more pod")
        reason = forbidden(held, policy_of(held.namespace), snapshot)
        if not reason and any(evicted[owner] + number > limits.most_per_owner for owner, number in own.items()):
            reason = f"--max-per-owner {limits.most_per_owner}: {more} of its owner"
        if not reason and evicted.total() + len(held.pods) > limits.most:
            reason = f"--max {limits.most}: {more}"
        if not reason:
            evicted.update(own)
        found.append((held, reason))
    return found


def forbidden(held: Held, policy: Policy, snapshot: Snapshot) -> str:
    """Return the reason not to evict the pods of `held`, or ""."""
    if held.reason == IDLE:
        return f"class {IDLE}: only its owner knows whether it is used"
    if held.reason not in EVICTABLE:
        return f"class {held.reason}: an eviction frees nothing"
    if not held.since.is_known:
        return "the API has no time since when its cards are not used"
    if not matches_any(held.namespace, policy.spec.reclaim.namespaces):
        return "spec.reclaim.namespaces of the policy does not list its namespace"
    return opted_out(held.pods, held.namespace, snapshot, policy)


def opted_out(pods: Iterable[Raw], namespace: str, snapshot: Snapshot, policy: Policy) -> str:
    """Return the reason not to evict `pods` of `namespace` if it or one of them has the annotation, or ""."""
    key = policy.keys.reclaim
    if key in snapshot.namespace_annotations(namespace):
        return f"its namespace has the annotation {key}"
    found = (pod for pod in pods if field(pod, "metadata", "annotations", key) is not None)
    return next((f"pod {full_name(pod)[1]} has the annotation {key}" for pod in found), "")

"""The rows of the report, one for each pod, gang, claim, quota and node, and which of them may be evicted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from placement_reclaim.classes.objects import rejecting_nodes, unused_claims, unused_quota
from placement_reclaim.classes.pods import PodUse, ending_or_lost, idle, lost_since, not_starting, partial_gangs
from placement_reclaim.cluster import Name, Objects, Raw, full_name
from placement_reclaim.held import EVICTABLE, IDLE, Held, owner_of
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.documents.listing import plural
from webhook.policy.policy import Policy
from webhook.policy.spec.field_types import matches_any

# Work can pause for minutes, such as for a checkpoint or a download.
_LEAST_IDLE_SECONDS = 1800
NO_USES: Mapping[Name, PodUse] = {}
PolicyOf = Callable[[str], Policy]
"""Returns the policy of a namespace."""


class Limits(NamedTuple):
    """The most pods to evict, in total and of one owner, the time in between, and that for which cards must be held."""

    most: int
    most_per_owner: int
    pause_seconds: float = 0
    least_seconds: float = 0


def idle_seconds(least_seconds: float) -> int:
    """Return the time for which idle cards must have done nothing, if cards must be held for `least_seconds`."""
    return max(int(least_seconds), _LEAST_IDLE_SECONDS)


def held_rows(objects: Objects, now: int, least_seconds: float, uses: Mapping[Name, PodUse] = NO_USES) -> list[Held]:
    """Return the rows of cards held for at least `least_seconds`: on usable nodes first, then those with the most.

    `now` is in Unix seconds. `uses` are the uses of cards in `idle_seconds` by namespace and name of the pod.
    """
    rows = [*rows_of_pods(objects, now, uses, idle_seconds(least_seconds))]
    rows += [*unused_claims(objects), *unused_quota(objects), *rejecting_nodes(objects, now)]
    found = (each for each in rows if each.since.age(now) >= least_seconds)
    return sorted(found, key=lambda each: (each.is_down, -each.count, each.nodes, each.namespace, each.name))


def rows_of_pods(objects: Objects, now: int, uses: Mapping[Name, PodUse] = NO_USES, seconds: int = 0) -> Iterator[Held]:
    """Yield the rows of pods and gangs; each pod is in one row. `seconds` is the time of `uses`."""
    holding = {full_name(each.content): each for each in objects.holding()}
    single = {key: pod for key, pod in holding.items() if not pod.is_exempt}
    ending = {key: row for key, pod in single.items() if (row := ending_or_lost(pod, now))}
    lost = {key: lost_since(row, single[key], now) for key, row in ending.items()}
    gangs = [*partial_gangs(objects, holding, lost)]
    yield from ending.values()
    yield from gangs
    for key in single.keys() - ending.keys() - {full_name(pod) for each in gangs for pod in each.pods}:
        if row := not_starting(single[key]) or idle(single[key], uses.get(key), now, seconds):
            yield row


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

"""Which of the held pods may be evicted, and why the others are left alone. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from placement_reclaim.cluster import Raw, full_name
from placement_reclaim.held import EVICTABLE, Held
from placement_reclaim.owners import Owner
from webhook.cluster.batch import fields
from webhook.cluster.snapshot import Snapshot
from webhook.documents.listing import plural
from webhook.policy.policy import Policy
from webhook.policy.spec.fields import matches_any

PolicyOf = Callable[[str], Policy]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most pods to evict, in all and of one owner, and the seconds between two of them."""

    most: int
    most_per_owner: int
    pause_seconds: float


class Chosen(NamedTuple):
    """A row whose pods may all be evicted, or the reason why none of them is."""

    held: Held
    reason: str = ""


def choose(rows: Iterable[Held], policy_of: PolicyOf, snapshot: Snapshot, limits: Limits) -> list[Chosen]:
    """Return for each row with pods whether these may be evicted; a gang is evicted whole, or left alone.

    `policy_of` returns the policy of a namespace.
    """
    owners: Counter[Owner] = Counter()
    found, count = [], 0
    for held in rows:
        if not held.pods:
            continue
        own = Counter(Owner.of(pod) for pod in held.pods)
        reason = _forbidden(held, policy_of(held.namespace), snapshot)
        if not reason and any(owners[owner] + number > limits.most_per_owner for owner, number in own.items()):
            reason = f"--max-per-owner {limits.most_per_owner}: {plural(len(held.pods), 'more pod')} of its owner"
        if not reason and count + len(held.pods) > limits.most:
            reason = f"--max {limits.most}: {plural(len(held.pods), 'more pod')}"
        if not reason:
            owners += own
            count += len(held.pods)
        found.append(Chosen(held, reason))
    return found


def _forbidden(held: Held, policy: Policy, snapshot: Snapshot) -> str:
    if held.reason not in EVICTABLE:
        return f"class {held.reason}: an eviction frees nothing"
    if held.is_down:
        return "its node is down: an eviction frees nothing"
    if not held.since.is_known:
        return "the API has no time since when its cards are not used"
    if not matches_any(held.namespace, policy.spec.reclaim.namespaces):
        return "spec.reclaim.namespaces of the policy does not list its namespace"
    key = policy.keys.reclaim
    if key in snapshot.namespace_annotations(held.namespace):
        return f"its namespace has the annotation {key}"
    opted_out = [pod for pod in held.pods if key in fields.texts(pod, "metadata", "annotations")]
    return f"pod {full_name(opted_out[0])[1]} has the annotation {key}" if opted_out else ""


def is_still_held(held: Held, pod: Raw, fresh: Iterable[Held]) -> bool:
    """Return whether `pod` of `held` is still held for the same reason in the rows `fresh`."""
    uid = fields.text(pod, "metadata", "uid")
    return any(
        each.reason == held.reason and uid in {fields.text(other, "metadata", "uid") for other in each.pods}
        for each in fresh
    )

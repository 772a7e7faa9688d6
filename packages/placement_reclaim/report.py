"""The rows of the report. There is one row for each pod, gang, claim, quota and node."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from placement_reclaim.classes.gangs import GangOf, partial_gangs
from placement_reclaim.classes.idle import PodUse, idle_pods
from placement_reclaim.classes.objects import rejecting_nodes, unused_claims, unused_quota
from placement_reclaim.classes.pods import ending_or_lost, not_starting
from placement_reclaim.cluster import Objects, Raw, full_name
from placement_reclaim.held import Held
from webhook.cluster.batch import fields
from webhook.cluster.snapshot import Snapshot
from webhook.policy.policy import Policy

# Work can pause for minutes, such as for a checkpoint or a download.
_LEAST_IDLE_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows to report: by classes, nodes and namespace (empty or None means all), held for at least `seconds`."""

    seconds: int
    classes: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    namespace: str | None = None

    @property
    def idle_seconds(self) -> int:
        """Return the time for which idle cards must have done nothing."""
        return max(self.seconds, _LEAST_IDLE_SECONDS)

    def has(self, held: Held, now: int) -> bool:
        """Return whether the report at `now`, in Unix seconds, includes `held`."""
        return (
            (not self.classes or held.reason in self.classes)
            and (not self.nodes or not self.nodes.isdisjoint(held.nodes))
            and (self.namespace is None or held.namespace == self.namespace)
            and now - held.since.seconds >= self.seconds
        )


def held_rows(
    snapshot: Snapshot,
    objects: Objects,
    policy: Policy,
    selection: Selection,
    now: int,
    uses: Mapping[tuple[str, str], PodUse],
) -> list[Held]:
    """Return the rows of the selection: those on usable nodes first, then those with the most cards.

    `now` is in Unix seconds. `uses` are the uses of cards in `selection.idle_seconds` by namespace and name of the pod.
    """
    rows = [*rows_of_pods(objects, GangOf(snapshot, policy), now)]
    shown = {full_name(pod) for each in rows for pod in each.pods}
    others = (pod for pod in objects.holding() if uses and full_name(pod.content) not in shown)
    rows += idle_pods(others, uses, now, selection.idle_seconds)
    rows += unused_claims(objects, snapshot)
    rows += unused_quota(objects)
    rows += rejecting_nodes(objects, snapshot, now)
    found = (each for each in rows if selection.has(each, now))
    return sorted(found, key=lambda each: (each.is_down, -each.count, each.nodes, each.namespace, each.name))


def rows_of_pods(objects: Objects, gang_of: GangOf, now: int) -> Iterator[Held]:
    """Yield the rows of pods and gangs; each pod is in one row. `now` is in Unix seconds."""
    pods = [*objects.holding()]
    ending = {full_name(each.content): row for each in pods if (row := ending_or_lost(each, now))}
    lost = {key: row.since for key, row in ending.items()}
    holders = {full_name(each.content) for each in pods}
    # A launcher can request 0 cards, or claim a device that is no card.
    others = [pod for key, pod in objects.pods.items() if key not in holders and _node_of(pod) in objects.nodes]
    bare = [*objects.bare.values(), *others]
    gangs = [*partial_gangs(pods, objects.pending.values(), objects.ended.values(), bare, lost, gang_of)]
    shown = {full_name(pod) for each in gangs for pod in each.pods}
    yield from ending.values()
    yield from gangs
    for each in pods:
        key = full_name(each.content)
        if key not in ending and key not in shown and (row := not_starting(each, objects)):
            yield row


def _node_of(pod: Raw) -> str:
    return fields.text(pod, "spec", "nodeName")

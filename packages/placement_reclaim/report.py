"""The rows of the report. There is one row for each pod, gang, claim, quota and node."""

from collections.abc import Iterator
from dataclasses import dataclass

from placement_reclaim.classes.gangs import GangOf, partial_gangs
from placement_reclaim.classes.objects import rejecting_nodes, unused_claims, unused_quota
from placement_reclaim.classes.pods import ending_or_lost, not_starting
from placement_reclaim.cluster import Objects, Raw, full_name
from placement_reclaim.held import Held
from webhook.cluster.batch import fields
from webhook.cluster.snapshot import Snapshot
from webhook.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows to report: by classes, nodes and namespace (empty or None means all), held for at least `seconds`."""

    seconds: int
    classes: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    namespace: str | None = None

    def has(self, held: Held, now: int) -> bool:
        """Return whether the report at `now`, in Unix seconds, includes `held`."""
        return (
            (not self.classes or held.reason in self.classes)
            and (not self.nodes or not self.nodes.isdisjoint(held.nodes))
            and (self.namespace is None or held.namespace == self.namespace)
            and now - held.since.seconds >= self.seconds
        )


def held_rows(snapshot: Snapshot, objects: Objects, policy: Policy, selection: Selection, now: int) -> list[Held]:
    """Return the rows of the selection: those on usable nodes first, then those with the most cards.

    `now` is in Unix seconds.
    """
    found = (each for each in _rows(snapshot, objects, policy, now) if selection.has(each, now))
    return sorted(found, key=lambda each: (each.is_down, -each.count, each.nodes, each.namespace, each.name))


def _rows(snapshot: Snapshot, objects: Objects, policy: Policy, now: int) -> Iterator[Held]:
    yield from rows_of_pods(objects, GangOf(snapshot, policy), now)
    yield from unused_claims(objects, snapshot)
    yield from unused_quota(objects)
    yield from rejecting_nodes(objects, snapshot, now)


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

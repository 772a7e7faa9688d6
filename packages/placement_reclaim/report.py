"""The rows of the report. There is one row for each pod, gang, claim, quota and node."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from placement_reclaim.classes.gangs import partial_gangs
from placement_reclaim.classes.idle import PodUse, idle
from placement_reclaim.classes.objects import rejecting_nodes, unused_claims, unused_quota
from placement_reclaim.classes.pods import ending_or_lost, not_starting
from placement_reclaim.cluster import Name, Objects, full_name
from placement_reclaim.held import Held

# Work can pause for minutes, such as for a checkpoint or a download.
_LEAST_IDLE_SECONDS = 1800
NO_USES: Mapping[Name, PodUse] = {}


class Selection(NamedTuple):
    """The rows to report: by classes, nodes and namespace (empty or None means all), held for at least `seconds`."""

    seconds: float
    classes: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    namespace: str | None = None

    @property
    def idle_seconds(self) -> int:
        """Return the time for which idle cards must have done nothing."""
        return max(int(self.seconds), _LEAST_IDLE_SECONDS)

    def has(self, held: Held, now: int) -> bool:
        """Return whether the report at `now`, in Unix seconds, includes `held`."""
        return (
            (not self.classes or held.reason in self.classes)
            and (not self.nodes or not self.nodes.isdisjoint(held.nodes))
            and (self.namespace is None or held.namespace == self.namespace)
            and held.since.age(now) >= self.seconds
        )


def held_rows(objects: Objects, selection: Selection, now: int, uses: Mapping[Name, PodUse]) -> list[Held]:
    """Return the rows of the selection: those on usable nodes first, then those with the most cards.

    `now` is in Unix seconds. `uses` are the uses of cards in `selection.idle_seconds` by namespace and name of the pod.
    """
    rows = [*rows_of_pods(objects, now, uses, selection.idle_seconds)]
    rows += [*unused_claims(objects), *unused_quota(objects), *rejecting_nodes(objects, now)]
    found = (each for each in rows if selection.has(each, now))
    return sorted(found, key=lambda each: (each.is_down, -each.count, each.nodes, each.namespace, each.name))


def rows_of_pods(
    objects: Objects, now: int, uses: Mapping[Name, PodUse] = NO_USES, idle_seconds: int = 0
) -> Iterator[Held]:
    """Yield the rows of pods and gangs; each pod is in one row. Times are as in `held_rows`."""
    holding = {full_name(each.content): each for each in objects.holding()}
    single = {key: pod for key, pod in holding.items() if not pod.is_exempt}
    ending = {key: row for key, pod in single.items() if (row := ending_or_lost(pod, now))}
    gangs = [*partial_gangs(objects, holding, {key: row.since for key, row in ending.items()})]
    yield from ending.values()
    yield from gangs
    for key in single.keys() - ending.keys() - {full_name(pod) for each in gangs for pod in each.pods}:
        if row := not_starting(single[key], objects) or idle(single[key], uses.get(key), now, idle_seconds):
            yield row

"""The rows of the report. There is one row for each pod, gang, claim, quota and node."""

from collections.abc import Iterator, Mapping

from placement_reclaim.classes.gangs import partial_gangs
from placement_reclaim.classes.idle import PodUse, idle
from placement_reclaim.classes.objects import rejecting_nodes, unused_claims, unused_quota
from placement_reclaim.classes.pods import ending_or_lost, not_starting
from placement_reclaim.cluster import Name, Objects, full_name
from placement_reclaim.held import Held

# Work can pause for minutes, such as for a checkpoint or a download.
_LEAST_IDLE_SECONDS = 1800
NO_USES: Mapping[Name, PodUse] = {}


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
    gangs = [*partial_gangs(objects, holding, {key: row.since for key, row in ending.items()})]
    yield from ending.values()
    yield from gangs
    for key in single.keys() - ending.keys() - {full_name(pod) for each in gangs for pod in each.pods}:
        if row := not_starting(single[key], objects) or idle(single[key], uses.get(key), now, seconds):
            yield row

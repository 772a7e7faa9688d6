"""Virtual time: pods arrive, are placed, run and end, as kube-scheduler's queue and scheduling cycles do it.

A scheduling cycle takes no time. All nodes are scored, as with `percentageOfNodesToScore: 100`. Pods are not preempted.

Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from placement_planner.simulation.arrival import Arrival
from placement_planner.simulation.backlog import Backlog, Group, Groups, Order, TracePod, Unit
from placement_planner.simulation.outcome import Recorder
from placement_planner.simulation.templates import Template, Templates
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.cluster.working_snapshot import WorkingSnapshot
from webhook.kube.pod.gang_key import GangKey

# Chooses among the rows of the best nodes for a pod; there is at least one.
Choose = Callable[[Rows, TracePod], int]


class SimulatedCluster:
    """The nodes and pods of `base`, and the pods that were placed on them. Not thread-safe.

    `snapshot` is changed in place, so a scheduler brings its rankings up to date by the changed rows.
    """

    def __init__(self, base: Snapshot) -> None:
        self._base = base
        self._placed: dict[int, RunningPod] = {}
        self._working = WorkingSnapshot(base)

    @property
    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now."""
        return self._working.snapshot

    def add(self, pod: RunningPod, row: int) -> RunningPod:
        """Place `pod` on the node in `row`, and return it as it runs there."""
        bound = pod._replace(node_name=self._base.nodes[row].node.name)
        self._placed[id(bound)] = bound
        if self._working.is_worn:
            self._working = WorkingSnapshot(self._base, self._placed.values())
        else:
            self._working.add(bound)
        return bound

    def remove(self, pod: RunningPod) -> int:
        """Remove `pod`, which `add` returned, and return the row of its node."""
        del self._placed[id(pod)]
        self._working.remove(pod)
        return self._base.rows[pod.node_name]


class Simulation:
    """One run on `snapshot`: the pods of `templates` arrive, and `recorder` notes their outcome.

    Of nodes with equal scores, `choose` picks one, as kube-scheduler does at random.
    """

    def __init__(self, snapshot: Snapshot, templates: Templates, recorder: Recorder, choose: Choose) -> None:
        self._cluster = SimulatedCluster(snapshot)
        self._templates, self._recorder, self._choose = templates, recorder, choose
        self._backlog, self._groups = Backlog(), Groups()
        self._ends: list[tuple[float, int, TracePod, RunningPod]] = []
        self._number = count()
        self._gangs: dict[tuple[int, GangKey], Unit] = {}
        self.pods: list[TracePod] = []
        self.denied: list[str] = []

    def run(self, arrivals: Sequence[Arrival], on_progress: Callable[[int], object] = lambda _: None) -> None:
        """Let the pods of `arrivals`, in the order of time, arrive and end. `on_progress` gets the number of arrivals.

        Raises:
            InvalidInput: a pod is malformed; the error names its place in the trace.
        """
        recorder, position = self._recorder, 0
        recorder.begin(self._cluster.snapshot)
        while position < len(arrivals) or (self._ends and self._backlog.count):
            now = min(
                arrivals[position].at_seconds if position < len(arrivals) else float("inf"),
                self._ends[0][0] if self._ends else float("inf"),
            )
            recorder.advance(now, self._cluster.snapshot, self._backlog.count)
            freed = self._end_pods(now)
            if freed:
                snapshot = self._cluster.snapshot
                nodes = [snapshot.nodes[row] for row in freed]
                self._try_waiting(now, [each for each in self._groups.waiting if each.may_fit(snapshot, nodes)])
                self._backlog.end_event(now)
            first = position
            while position < len(arrivals) and arrivals[position].at_seconds == now:
                position += 1
            if position > first:
                self._arrive(now, arrivals[first:position])
                on_progress(position)
                if position == len(arrivals):
                    recorder.finish(self._cluster.snapshot, self._backlog.count)

    def _end_pods(self, now: float) -> list[int]:
        """Remove the pods that end at `now`, and return the rows of their nodes."""
        rows = []
        while self._ends and self._ends[0][0] == now:
            _, _, pod, running = heapq.heappop(self._ends)
            rows.append(self._cluster.remove(running))
            self._recorder.change(-pod.template.cards)
        return rows

    def _arrive(self, now: float, arrivals: Iterable[Arrival]) -> None:
        """Try the pods that arrive at `now`, by priority, then in the order of the trace."""
        units = [unit for each in arrivals for unit in self._units(each)]
        units.sort(key=lambda unit: -unit.priority)
        has_placed = False
        for unit in units:
            group = self._groups.of(unit)
            # What waits has been tried on the same nodes, or on emptier ones.
            is_known_not_to_fit = bool(group.units) and not group.reads_pods
            if not is_known_not_to_fit and self._try(unit, now):
                has_placed = True
            else:
                self._groups.wait(group, unit, self._cluster.snapshot)
                self._backlog.add(unit, now)
        while has_placed:
            has_placed = self._try_waiting(now, [each for each in self._groups.waiting if each.waits_for_pods])

    def _units(self, arrival: Arrival) -> Iterable[Unit]:
        """Yield the units that are complete once the pods of `arrival` are created."""
        template = self._templates.of(arrival)
        for _ in range(arrival.replicas):
            if not isinstance(template, Template):
                self.denied.append(template)
                continue
            pod = TracePod(template, arrival.at_seconds, arrival.duration_seconds)
            self.pods.append(pod)
            if template.gang is None:
                yield Unit([pod])
                continue
            key = arrival.draw, template.gang
            gang = self._gangs.setdefault(key, Unit([], template.least))
            gang.pods.append(pod)
            if len(gang.pods) == gang.least:
                yield gang
            elif len(gang.pods) > gang.least:
                # The scheduler adds them to the gang one by one.
                gang.pods.pop()
                yield Unit([pod])

    def _try_waiting(self, now: float, groups: Iterable[Group]) -> bool:
        """Try the units of `groups`, which may fit, in their order; return whether one was placed."""
        heads: list[tuple[Order, int, Group, list[tuple[Order, Unit]]]] = []
        for number, group in enumerate(groups):
            units = sorted(((self._backlog.order(unit, now), unit) for unit in group.units), key=lambda each: each[0])
            units.reverse()
            heads.append((units[-1][0], number, group, units))
        heapq.heapify(heads)
        has_placed = False
        while heads:
            _, number, group, units = heapq.heappop(heads)
            # If one of them does not fit, the others of its group, which are equal, do not fit either.
            if self._try(units.pop()[1], now):
                has_placed = True
                if units:
                    heapq.heappush(heads, (units[-1][0], number, group, units))
        for group in groups:
            self._groups.settle(group)
        return has_placed

    def _try(self, unit: Unit, now: float) -> bool:
        """Place the pods of `unit`, at least the least of them or none, and return whether they are placed."""
        placed: list[tuple[TracePod, RunningPod]] = []
        for pod in unit.pods:
            template = pod.template
            rows = template.scheduler.best_rows(template.signature, self._cluster.snapshot)
            if not len(rows):
                break
            placed.append((pod, self._cluster.add(template.running, self._choose(rows, pod))))
        if len(placed) < len(unit.pods):
            for _, running in placed:
                self._cluster.remove(running)
            return False
        if unit.is_waiting:
            self._backlog.remove(unit)
        for pod, running in placed:
            self._recorder.waited[pod] = now - pod.created_at
            self._recorder.change(pod.template.cards)
            if pod.duration_seconds is not None:
                heapq.heappush(self._ends, (now + pod.duration_seconds, next(self._number), pod, running))
        return True

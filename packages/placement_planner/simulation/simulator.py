"""The simulation in virtual time: pods arrive, are placed, run and end, with kube-scheduler's queue and cycles.

A scheduling cycle takes no time. All nodes are scored, as with `percentageOfNodesToScore: 100`.

Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from placement_planner.simulation.arrival import Arrival
from placement_planner.simulation.backlog import Backlog, Group, Groups, Order, TracePod, Unit
from placement_planner.simulation.cluster import SimulatedCluster
from placement_planner.simulation.outcome import Recorder, Unplaced
from placement_planner.simulation.preemption import ChooseVictims, Preemption, can_preempt
from placement_planner.simulation.templates import GRACE_SECONDS, Template, Templates
from webhook.backends.references import Within
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import never
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.gang.domains import domains_together, in_domain
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.pending_placement import WaitingPod

_MOST_REASONS = 10

# Chooses among the rows of the best nodes for a pod; there is at least one.
Choose = Callable[[Rows, TracePod], int]


class Simulation:
    """One run on `snapshot`: the pods of `templates` arrive, and `recorder` records the outcome.

    `choose` picks one of the nodes with equal scores; kube-scheduler picks at random. `choose_victims` selects pods to
    evict for a pod that no node can take. If it is None, no pod is evicted.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        templates: Templates,
        recorder: Recorder,
        choose: Choose,
        choose_victims: ChooseVictims | None = None,
    ) -> None:
        self._cluster = SimulatedCluster(snapshot)
        self._templates, self._recorder, self._choose = templates, recorder, choose
        self._preemption = Preemption(self._cluster, choose_victims) if choose_victims else None
        self._backlog, self._groups = Backlog(), Groups()
        # The end of each pod, and its cards; one that was evicted before then has another entry.
        self._ends: list[tuple[float, int, int, RunningPod]] = []
        self._running: dict[int, tuple[TracePod, float]] = {}
        self._restarted: list[Unit] = []
        # Since the last attempts of the units that depend on other pods.
        self._placed_templates: dict[Template, None] = {}
        self._number = count()
        self._gangs: dict[tuple[int, GangKey], Unit] = {}
        self.pods: list[TracePod] = []
        self.denied: list[str] = []

    def run(self, arrivals: Sequence[Arrival], on_progress: Callable[[int], object] = lambda _: None) -> None:
        """Simulate the pods of `arrivals`, which are in the order of time. `on_progress` gets the number of arrivals.

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
                self._try_waiting(now, self._groups_for(freed))
                self._try_dependent(now)
                self._backlog.end_event(now)
                self._try_new(now, self._taken_restarted())
            first = position
            while position < len(arrivals) and arrivals[position].at_seconds == now:
                position += 1
            if position > first:
                self._arrive(now, arrivals[first:position])
                on_progress(position)
                if position == len(arrivals):
                    recorder.finish(self._cluster.snapshot, self._backlog.count)

    def unplaced(self) -> tuple[Unplaced, ...]:
        """Return why pods have no node on the nodes as they are now, the reasons with the most pods first."""
        incomplete = {pod for unit in self._gangs.values() if len(unit.pods) < unit.least for pod in unit.pods}
        reasons: dict[Template, str] = {}
        found = Counter[str]()
        for pod in self.pods:
            if pod in incomplete:
                found["fewer pods arrive than their gang starts with"] += 1
            elif pod not in self._recorder.waited:
                if pod.template not in reasons:
                    reasons[pod.template] = self._reason(pod.template)
                found[reasons[pod.template]] += 1
        return tuple(Unplaced(pods, reason) for reason, pods in found.most_common(_MOST_REASONS))

    def _reason(self, template: Template) -> str:
        placement = template.scheduler.scheduler.answer_alone(template.signature, self._cluster.snapshot)
        if not placement.feasible or template.gang is None:
            return placement.message
        if template.within is not None:
            return f"no domain of {template.within.key} has room for all pods of their gang"
        return "there is room for single pods of their gang, not for all"

    def _end_pods(self, now: float) -> list[int]:
        """Remove the pods that end at `now`, and return the rows of their nodes."""
        rows = []
        while self._ends and self._ends[0][0] == now:
            _, _, cards, running = heapq.heappop(self._ends)
            if self._cluster.has(running):
                rows.append(self._cluster.remove(running))
                self._running.pop(id(running), None)
                self._recorder.change(-cards)
        if rows and self._preemption:
            self._preemption.changes += 1
            rows += self._preemption.given_up()
        return rows

    def _groups_for(self, freed: Iterable[int]) -> list[Group]:
        """Return the waiting groups that may fit or may evict pods after the rows `freed` have more room."""
        snapshot = self._cluster.snapshot
        nodes = [snapshot.nodes[row] for row in freed]
        return [
            each
            for each in self._groups.waiting
            if each.may_fit(snapshot, nodes) or (self._preemption and can_preempt(each, nodes))
        ]

    def _arrive(self, now: float, arrivals: Iterable[Arrival]) -> None:
        self._try_new(now, [unit for each in arrivals for unit in self._units(each)])

    def _try_new(self, now: float, units: list[Unit]) -> None:
        """Try `units` at `now` by priority, then in order. Also try units that these attempts make possible."""
        while units:
            units.sort(key=lambda unit: -unit.priority)
            for unit in units:
                group = self._groups.of(unit)
                if self._is_known_not_to_fit(group) or not self._try(unit, now):
                    self._groups.wait(group, unit, self._cluster.snapshot)
                    self._backlog.add(unit, now)
            self._try_dependent(now)
            units = self._taken_restarted()

    def _try_dependent(self, now: float) -> None:
        """Try the units that the placed pods can make possible, as long as a pod is placed."""
        while self._placed_templates:
            placed, self._placed_templates = self._placed_templates, {}
            snapshot = self._cluster.snapshot
            waiting = self._groups.waiting
            self._try_waiting(now, [each for each in waiting if any(each.waits_for(pod, snapshot) for pod in placed)])

    def _taken_restarted(self) -> list[Unit]:
        """Return the units of victims that a controller has created again."""
        found, self._restarted = self._restarted, []
        return found

    def _is_known_not_to_fit(self, group: Group) -> bool:
        """Return whether a unit of `group` has already failed on the same nodes or on nodes with more room."""
        if group.reads_pods or not group.units:
            return False
        return self._preemption is None or group.failed_at == self._preemption.changes

    def _units(self, arrival: Arrival) -> Iterable[Unit]:
        """Yield the units that are complete once the pods of `arrival` are created."""
        template = self._templates.of(arrival)
        for _ in range(arrival.replicas):
            if not isinstance(template, Template):
                self.denied.append(template)
                continue
            pod = TracePod(template, arrival.at_seconds, arrival.duration_seconds, arrival.is_restarted)
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

    def _try_waiting(self, now: float, groups: Iterable[Group]) -> None:
        """Try the units of `groups`, which may fit, in queue order."""
        heads: list[tuple[Order, int, Group, list[tuple[Order, Unit]]]] = []
        for number, group in enumerate(groups):
            units = sorted(((self._backlog.order(unit, now), unit) for unit in group.units), key=lambda each: each[0])
            units.reverse()
            heads.append((units[-1][0], number, group, units))
        heapq.heapify(heads)
        while heads:
            _, number, group, units = heapq.heappop(heads)
            unit = units.pop()[1]
            is_placed = self._try(unit, now)
            # If one of them does not fit, the others of its group, which are equal, do not fit either. Nor does one
            # for which pods are evicted, but pods may be evicted for the next one, too.
            if units and (is_placed or (self._preemption and self._preemption.is_nominated(unit))):
                heapq.heappush(heads, (units[-1][0], number, group, units))
        for group in groups:
            self._groups.settle(group, self._cluster.snapshot)

    def _try(self, unit: Unit, now: float) -> bool:
        """Place the pods of `unit`, at least `unit.least` of them or none. Return whether they are placed."""
        placed = self._placed(unit, now)
        if len(placed) < len(unit.pods):
            for _, running in placed:
                self._cluster.remove(running)
            # kube-scheduler evicts pods for single pods only.
            if self._preemption and unit.least == 1:
                self._preempt(self._preemption, unit, now)
            return False
        if unit.is_waiting:
            self._backlog.remove(unit)
        if self._preemption:
            self._preemption.forget(unit)
        for pod, running in placed:
            self._placed_templates[pod.template] = None
            self._recorder.place(pod, now)
            self._running[id(running)] = pod, now
            if pod.duration_seconds is not None:
                self._end(now + pod.duration_seconds, pod.template.cards, running)
        return True

    def _placed(self, unit: Unit, now: float) -> list[tuple[TracePod, RunningPod]]:
        """Place the pods of `unit`, one after the other, until one has no node; return the placed pods."""
        placed: list[tuple[TracePod, RunningPod]] = []
        within, domain = self._domain_for(unit)
        if within is not None and not domain:
            return []
        for pod in unit.pods:
            signature, running = self._asked(unit, pod, now)
            if within is not None:
                signature = in_domain(WaitingPod(signature, running), within, domain).signature
            rows = pod.template.scheduler.best_rows(signature, self._cluster.snapshot)
            if not len(rows):
                break
            placed.append((pod, self._cluster.add(running, self._choose(rows, pod))))
        return placed

    def _domain_for(self, unit: Unit) -> tuple[Within | None, Sequence[str]]:
        """Return the request of `unit` that all of its pods run in one domain, and the values of this domain.

        There is no request if the pods can run apart, and no values if no domain has room. Of several with room, it is
        the one with the least.
        """
        template = unit.pods[0].template
        within, number = template.within, len(unit.pods)
        if within is None or template.gang is None or number == 1:
            return None, ()
        pod, scheduler = WaitingPod(template.signature, template.running), template.scheduler.scheduler
        snapshot = self._cluster.snapshot
        found = domains_together(scheduler, pod, template.gang, within, snapshot, number, number, never).domains
        fitting = [each for each in found if each.fits >= number]
        return within, min(fitting, key=lambda each: each.fits).path if fitting else ()

    def _asked(self, unit: Unit, pod: TracePod, now: float) -> tuple[PodSignature, RunningPod]:
        """Return the signature of `pod`, a pod of `unit`, and the pod as a running pod that starts now."""
        template = pod.template
        if self._preemption is None:
            return template.signature, template.running
        return self._preemption.signature_of(unit), self._preemption.named(template.running, now)

    def _end(self, at: float, cards: int, running: RunningPod) -> None:
        heapq.heappush(self._ends, (at, next(self._number), cards, running))

    def _preempt(self, preemption: Preemption, unit: Unit, now: float) -> None:
        """Evict pods for `unit`, which no node can take, if that helps."""
        for running in preemption.victims_of(unit):
            pod, started = self._running.pop(id(running), (None, self._recorder.start))
            grace = pod.template.grace_seconds if pod else GRACE_SECONDS
            cards = pod.template.cards if pod else self._recorder.cards.of(running.requests)
            self._end(now + grace, cards, self._cluster.evict(running))
            restarts = pod is not None and pod.is_restarted
            self._recorder.evict(running.priority, pod if restarts else None, now, now + grace - started, cards)
            if pod is not None and restarts:
                self._restarted.append(Unit([pod]))
        if not preemption.is_nominated(unit):
            self._groups.of(unit).failed_at = preemption.changes

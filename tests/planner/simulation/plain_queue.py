"""kube-scheduler's queue in virtual time, written plainly: each pod that waits is tried at each event.

Source: k8s.io/kubernetes/pkg/scheduler/backend/queue, as in packages/placement_planner/simulation/backlog.py
"""

import math
from dataclasses import dataclass
from itertools import count

from placement_planner.simulation.arrival import Arrival
from placement_planner.simulation.sweep import Experiment, Run
from placement_planner.simulation.templates import Template
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot


@dataclass(eq=False)
class QueuedPod:
    """A pod in the queue, with the time of its last attempt, or of its creation, and the attempts that failed."""

    number: int
    arrival: Arrival
    template: Template
    timestamp: tuple[float, int]
    failures: int = 0

    def expiry(self) -> float:
        """The end of its backoff, in whole seconds."""
        return math.floor(self.timestamp[0] + min(2 ** (self.failures - 1), 10)) if self.failures else -1


class PlainQueue:
    """Places the pods on the first of the best nodes; `placed` has the time of each by its number."""

    def __init__(self, experiment: Experiment, run: Run) -> None:
        self._templates = experiment.templates(run)
        self._nodes: list[Node] = [info.node for info in experiment.snapshot.nodes]
        self._running: list[tuple[float, str, RunningPod]] = []
        self._waiting: list[QueuedPod] = []
        self._sequence = count()
        self.placed: dict[int, float] = {}
        self._run(experiment.trace)

    def _run(self, trace: tuple[Arrival, ...]) -> None:
        pods = sorted(enumerate(trace), key=lambda each: each[1].at_seconds)
        times = {each.at_seconds for each in trace}
        while times:
            now = min(times)
            times.remove(now)
            ended = [each for each in self._running if each[0] == now]
            self._running = [each for each in self._running if each[0] != now]
            if ended:
                second = math.floor(now)
                active = [pod for pod in self._waiting if pod.expiry() < second]
                active.sort(key=lambda pod: (-pod.template.priority, pod.timestamp))
                backing_off = [pod for pod in self._waiting if pod.expiry() >= second]
                backing_off.sort(key=lambda pod: (pod.expiry(), -pod.template.priority, pod.timestamp))
                self._waiting = []
                self._try([*active, *backing_off], now)
            new = []
            for number, arrival in pods:
                if arrival.at_seconds == now:
                    template = self._templates.of(arrival)
                    assert isinstance(template, Template)
                    new.append(QueuedPod(number, arrival, template, (now, next(self._sequence))))
            self._try(sorted(new, key=lambda pod: -pod.template.priority), now)
            times |= {end for end, _, _ in self._running}

    def _try(self, pods: list[QueuedPod], now: float) -> None:
        for pod in pods:
            snapshot = self._snapshot()
            rows = pod.template.scheduler.scheduler.best_rows(pod.template.signature, snapshot)
            if not len(rows):
                pod.failures += 1
                pod.timestamp = now, next(self._sequence)
                self._waiting.append(pod)
                continue
            node = snapshot.nodes[int(rows[0])].node.name
            duration = pod.arrival.duration_seconds
            end = math.inf if duration is None else now + duration
            self._running.append((end, node, pod.template.running))
            self.placed[pod.number] = now

    def _snapshot(self) -> Snapshot:
        on: dict[str, list[RunningPod]] = {node.name: [] for node in self._nodes}
        for _, node, pod in self._running:
            on[node].append(pod)
        return Snapshot.of(NodeInfo.of(node, on[node.name]) for node in self._nodes)

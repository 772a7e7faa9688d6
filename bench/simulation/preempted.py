"""The real kube-scheduler that preempts, beside the simulation: each eviction is looked up in what is predicted.

Pods start when they are bound, as a kubelet would start them, end after their durations or, if they are evicted, their
grace period, and are created again at once if they are evicted, as a controller would do it.
"""

import heapq
import math
import re
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from bench.simulation.following import Object, simulation_of
from bench.simulation.real import POLL_SECONDS, new_events, watched
from placement_planner.simulation.arrival import Arrival
from placement_planner.simulation.backlog import TracePod, Unit
from placement_planner.simulation.preemption import Choice
from placement_planner.simulation.sweep import Experiment, Run
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.cluster.update import updated
from webhook.placement.scorer import PodSignature

_EVICTED = re.compile(
    r'"Preemptor Pod preempted victim Pod".* preemptor="[^/]+/(?P<preemptor>[^"]+)"'
    r'.* victim="[^/]+/(?P<victim>[^"]+)" node="(?P<node>[^"]+)"'
)
_ALREADY_THERE = 409
GRACE_SECONDS = 1.7
_PART_OF_ENDS = 0.35
_PART_OF_RESTARTS = 0.2


@dataclass
class RealPod:
    """A pod of a real run, with the seconds at which it was created, bound, evicted and gone."""

    number: int
    name: str
    created: float
    node: str = ""
    bound: float | None = None
    evicted: float | None = None
    gone: float | None = None


class Preempting(NamedTuple):
    """The victims of a pod on a node, by their numbers in the trace, and when they were evicted."""

    node: str
    victims: frozenset[int]
    at: float


@dataclass
class RealRun:
    """The pods in the order in which they were created, and the preemptions of each pod of the trace."""

    pods: list[RealPod] = field(default_factory=list)
    preemptions: dict[int, deque[Preempting]] = field(default_factory=lambda: defaultdict(deque))

    @property
    def evictions(self) -> int:
        """Return the number of pods that were evicted."""
        return sum(pod.evicted is not None for pod in self.pods)


def paced(arrivals: Sequence[Arrival], priorities: Sequence[int]) -> list[Arrival]:
    """Return the arrivals with names of their own and the priorities by turns, one a second.

    Arrivals, ends and the ends of victims are in different parts of a second, so that they have the same order in both.
    """
    found = []
    for number, each in enumerate(arrivals):
        spec = each.pod["spec"] | {"priority": priorities[number % len(priorities)]}
        spec["terminationGracePeriodSeconds"] = GRACE_SECONDS
        pod = each.pod | {"metadata": each.pod["metadata"] | {"name": str(number)}, "spec": spec}
        duration = None if each.duration_seconds is None else int(each.duration_seconds) + _PART_OF_ENDS
        found.append(replace(each, at_seconds=number, duration_seconds=duration, pod=pod))
    return found


def with_classes(cluster: Cluster, pods: Sequence[Object]) -> list[Object]:
    """Return `pods` with a grace period, and with a PriorityClass for their priority, which is created."""
    found = []
    for pod in deepcopy([*pods]):
        # It takes whole seconds; what counts is when the pod is deleted.
        pod["spec"]["terminationGracePeriodSeconds"] = math.ceil(GRACE_SECONDS)
        value = pod["spec"].pop("priority")
        pod["spec"].pop("preemptionPolicy", None)
        pod["spec"]["priorityClassName"] = f"simulated-{value}"
        found.append(pod)
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
        try:
            cluster.client.create(body | {"metadata": {"name": f"simulated-{value}"}})
        except ApiError as error:
            if error.code != _ALREADY_THERE:
                raise
    return found


def really(cluster: Cluster, pods: Sequence[Object], arrivals: Sequence[Arrival], seconds: float) -> RealRun:
    """Run `pods` of the `arrivals` for so many seconds, and return when each started and ended.

    Times count from a whole second.
    """
    run, log = RealRun(), cluster.control_plane.scheduler_log
    known: dict[str, RealPod] = {}
    ended: set[str] = set()
    offset = log.end()
    with watched(cluster) as seen:
        time.sleep(1 - time.time() % 1)
        began, first_second = time.monotonic(), round(time.time())
        # When, in which order at one time, the number of the pod, and its name if it ends and is not created.
        actions = [(each.at_seconds, 0.0, number, "") for number, each in enumerate(arrivals)]
        heapq.heapify(actions)
        while (now := time.monotonic() - began) < seconds:
            for event in new_events(seen):
                pod, at = known[event.name], event.at - began
                if event.kind == "DELETED":
                    pod.gone = at
                if event.node and pod.bound is None:
                    pod.node, pod.bound = event.node, at
                    started = datetime.fromtimestamp(first_second + int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                    status = {"status": {"phase": "Running", "startTime": started}}
                    cluster.client.patch("Pod", pod.name, status, namespace=cluster.namespace, subresource="status")
                    duration = arrivals[pod.number].duration_seconds
                    if duration is not None:
                        heapq.heappush(actions, (at + duration, 0.0, pod.number, pod.name))
                if event.is_terminating and pod.name not in ended and pod.evicted is None:
                    pod.evicted = at
                    heapq.heappush(actions, (at + GRACE_SECONDS, 0.0, pod.number, pod.name))
                    # Those that are evicted together come again in the order of their importance.
                    again = math.ceil(at / _PART_OF_RESTARTS) * _PART_OF_RESTARTS
                    importance = arrivals[pod.number].pod["spec"]["priority"] - (pod.bound or 0) / seconds
                    heapq.heappush(actions, (again, -importance, pod.number, ""))
            while actions and actions[0][0] <= now:
                _, _, number, name = heapq.heappop(actions)
                if not name:
                    pod = RealPod(number, f"pod-{number}-{len(run.pods)}", time.monotonic() - began)
                    known[pod.name] = pod
                    run.pods.append(pod)
                    metadata = pods[number]["metadata"] | {"name": pod.name}
                    cluster.client.create(pods[number] | {"metadata": metadata}, namespace=cluster.namespace)
                elif (evicted := known[name].evicted) is None or now >= evicted + GRACE_SECONDS:
                    ended.add(name)
                    cluster.client.delete("Pod", name, namespace=cluster.namespace)
            time.sleep(POLL_SECONDS)
    _read_preemptions(run, known, [*log.lines(offset)])
    return run


def _read_preemptions(run: RealRun, known: dict[str, RealPod], lines: Sequence[str]) -> None:
    victims: dict[tuple[str, str], list[RealPod]] = defaultdict(list)
    for line in lines:
        found = _EVICTED.search(line)
        if found and found["preemptor"] in known:
            victims[found["preemptor"], found["node"]].append(known[found["victim"]])
    for (preemptor, node), pods in victims.items():
        at = min(pod.created if pod.evicted is None else pod.evicted for pod in pods)
        preempting = Preempting(node, frozenset(pod.number for pod in pods), at)
        run.preemptions[known[preemptor].number].append(preempting)


class Compared(NamedTuple):
    """The preemptions that were compared until the first difference, if there is one.

    `exact` ones had one possible outcome. From a difference on, the two clusters are not the same. `allocated` are the
    GPUs in percent, the mean until the last arrival.
    """

    preemptions: int
    exact: int
    difference: str
    allocated: float


def compared(experiment: Experiment, run: Run, arrivals: Sequence[Arrival], real: RealRun) -> Compared:
    """Return where a simulation differs first that takes the nodes and the victims of `real`.

    Pods arrive and end in it when they really did. `arrivals` are named by their numbers, one pod each.
    """
    follower = _Follower(experiment, run, as_it_was(arrivals, real), real)
    return follower.result()


def as_it_was(arrivals: Sequence[Arrival], real: RealRun) -> list[Arrival]:
    """Return the arrivals that were created, with the times as they were on a machine that may be busy."""
    created: dict[int, float] = {}
    durations: dict[int, float] = {}
    for pod in real.pods:
        created.setdefault(pod.number, pod.created)
        if pod.evicted is None and pod.bound is not None and pod.gone is not None:
            durations[pod.number] = pod.gone - pod.bound
    return [
        replace(each, at_seconds=created[number], duration_seconds=durations.get(number, each.duration_seconds))
        for number, each in enumerate(arrivals)
        if number in created
    ]


class _Follower:
    """A simulation that takes the choices of a real run, and notes where it would not have made them."""

    def __init__(self, experiment: Experiment, run: Run, arrivals: Sequence[Arrival], real: RealRun) -> None:
        self._difference = ""
        self._preemptions = self._exact = 0
        self._left = {number: deque(each) for number, each in real.preemptions.items()}
        self._nodes: dict[int, deque[RealPod]] = defaultdict(deque)
        for pod in real.pods:
            if pod.bound is not None:
                self._nodes[pod.number].append(pod)
        self._started: dict[int, float] = {}
        self._rows, self._count, self._is_over = experiment.snapshot.rows, len(arrivals), False
        simulation, self._recorder = simulation_of(experiment, run, arrivals, self._node, self._victims)
        self._last = arrivals[-1].at_seconds
        simulation.run(arrivals, self._progress)

    def _progress(self, arrived: int) -> None:
        # What follows the last arrival may be later than the end of the real run.
        self._is_over = self._is_over or arrived == self._count

    def result(self) -> Compared:
        """Return what was compared."""
        left = [
            f"pod {number} really evicts {each}"
            for number, found in self._left.items()
            for each in found
            if each.at < self._last
        ]
        unbound = [
            f"pod {each.number} really starts on {each.node}"
            for found in self._nodes.values()
            for each in found
            if (each.bound or 0) < self._last
        ]
        difference = self._difference or next(iter([*left, *unbound]), "")
        return Compared(self._preemptions, self._exact, difference, self._recorder.allocated)

    def _differs(self, difference: str) -> None:
        self._difference, self._is_over = difference, True

    def _node(self, rows: Rows, pod: TracePod) -> int:
        number = int(pod.template.running.name)
        if self._is_over:
            return int(rows[0])
        if not self._nodes[number]:
            self._differs(f"pod {number} starts, and really does not")
            return int(rows[0])
        real = self._nodes[number].popleft()
        self._started[number] = real.bound or 0
        row = self._rows[real.node]
        if row not in rows:
            self._differs(f"pod {number} is really on {real.node}")
        return row

    def _victims(self, unit: Unit, signature: PodSignature, snapshot: Snapshot) -> Choice | None:
        template = unit.pods[0].template
        number = _number(template.running)
        if self._is_over:
            return None
        found = template.scheduler.scheduler.preemption(signature, self._as_started(snapshot))
        if found is None or not found.evicts:
            return None
        left, ending = self._left.get(number), [each for each in found.victims if each.is_terminating]
        if len(ending) == len(found.victims) or (ending and not left):
            # kube-scheduler waits for these, and evicts no pod.
            return Choice(ending[0].node_name, ())
        if not left:
            self._differs(f"pod {number} evicts {[*found.names()]}, and really nobody")
            return None
        real = left.popleft()
        possible = {_number(each) for each in found.victims if not each.is_terminating}
        fits = real.victims == possible if found.is_exact else real.victims <= possible
        if real.node not in found.nodes or not fits or not found.least <= len(real.victims) <= found.most:
            self._differs(f"pod {number} evicts {sorted(possible)} on {found.nodes}, and really {real}")
        else:
            self._preemptions += 1
            self._exact += found.is_exact
        victims = [each for each in snapshot.nodes[snapshot.rows[real.node]].pods if _number(each) in real.victims]
        return Choice(real.node, victims)

    def _as_started(self, snapshot: Snapshot) -> Snapshot:
        """Return `snapshot` with the real starts of its pods."""
        infos = []
        for info in snapshot.nodes:
            pods = [each._replace(started_seconds=1 + int(self._started[_number(each)])) for each in info.pods]
            infos.append(NodeInfo.of(info.node, pods))
        return updated(snapshot, infos, snapshot.generation)


def _number(pod: RunningPod) -> int:
    """Return the number in the trace of a pod of the simulation, which has this before the number of its start."""
    return int(pod.name.partition("-")[0])

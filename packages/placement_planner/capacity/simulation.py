"""Place further pods one after the other, as kube-scheduler does."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count
from typing import Any

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.result import Placement
from webhook.placement.pod.preemption import Nomination
from webhook.placement.replicas.replicas import FillingCluster
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

# The largest number of pods that are placed one after the other: more than a cluster of 5,000 nodes takes of most pods.
MOST_PODS = 100_000


@dataclass
class FurtherPods:
    """The pods `pod_at(0)`, `pod_at(1)`, … of one template, at most `most`, which `scheduler` places.

    With several templates, `share` of them are placed in each turn.
    """

    scheduler: Scheduler
    pod_at: Callable[[int], Mapping[str, Any]]
    share: int = 1
    most: int = MOST_PODS
    _read_pod: Mapping[str, Any] | None = field(default=None, init=False)
    _read: tuple[PodSignature, RunningPod] | None = field(default=None, init=False)

    def read(self, index: int) -> tuple[PodSignature, RunningPod]:
        """Return the signature of pod number `index`, and the pod as a running pod.

        A further pod is new, so the nominated node of a stored pod is ignored. Its gates count as removed.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        pod = self.pod_at(index)
        if self._read is None or pod is not self._read_pod:
            signature = PodSignature.of(pod)
            nomination = Nomination(signature.info.nomination.scheduler_name)
            self._read = (
                replace(signature, info=signature.info._replace(nomination=nomination, gates=0)),
                RunningPod.of(pod),
            )
            self._read_pod = pod
        return self._read


OnPlaced = Callable[[int], None]

NOT_SHOWN = "the devices or volumes that the placed pods get are not known, and the next one needs them too"


@dataclass(frozen=True, slots=True)
class Simulation:
    """The number of pods of each template that were placed on each node until one did not fit.

    `stopped` is the placement of the pod that did not fit, and `stopped_at` the number of its template; both are None
    if all requested pods fit. `ended_early` is the reason why the numbers are only lower bounds, or empty if no more
    fit.
    """

    nodes: tuple[Mapping[str, int], ...]
    stopped: Placement | None
    stopped_at: int | None
    ended_early: str = ""

    @property
    def placed(self) -> tuple[int, ...]:
        """Return the number of placed pods of each template."""
        return tuple(sum(nodes.values()) for nodes in self.nodes)


def simulate(pods: Sequence[FurtherPods], snapshot: Snapshot, turns: int | None, on_placed: OnPlaced) -> Simulation:
    """Return the result of placing `turns` turns of `pods`. None means any number of turns.

    Of nodes with equal scores, the first by name is chosen. A turn has `share` pods of each template, in order.

    Raises:
        InvalidInput: a field of a pod that is read is malformed; holds every error.
    """
    cluster = FillingCluster(snapshot)
    nodes: tuple[Counter[str], ...] = tuple(Counter() for _ in pods)
    for number, (which, index) in enumerate(_in_turn(pods, turns)):
        if index >= pods[which].most:
            return Simulation(nodes, None, None, f"no more than {pods[which].most} pods are counted")
        signature, running = pods[which].read(index)
        if not cluster.is_known_for(signature):
            return Simulation(nodes, None, None, NOT_SHOWN)
        placement = pods[which].scheduler.answer(signature, cluster.snapshot)
        if placement.verdict != "Feasible" or placement.node is None:
            ended_early = placement.message if placement.verdict == "Unknown" else ""
            return Simulation(nodes, None if ended_early else placement, which, ended_early)
        nodes[which][placement.node] += 1
        cluster.add(signature, running, placement.node)
        on_placed(number + 1)
    return Simulation(nodes, None, None)


@dataclass(frozen=True, slots=True)
class RandomRun:
    """The number of pods of each template that fit with other choices. `is_forced` is true if there was no choice."""

    placed: tuple[int, ...]
    is_forced: bool


def random_run(pods: Sequence[FurtherPods], snapshot: Snapshot, turns: int | None, seed: int) -> RandomRun:
    """Return the result of placing the same pods with random choices between nodes of equal scores.

    Equal seeds give equal choices.

    Source: k8s.io/kubernetes/pkg/scheduler/schedule_one.go, selectHost
    """
    cluster = FillingCluster(snapshot)
    placed = [0] * len(pods)
    is_forced = True
    for number, (which, index) in enumerate(_in_turn(pods, turns)):
        if index >= pods[which].most:
            break
        signature, running = pods[which].read(index)
        if not cluster.is_known_for(signature):
            break
        rows = pods[which].scheduler.best_rows(signature, cluster.snapshot)
        if not len(rows):
            break
        is_forced &= len(rows) == 1
        digest = blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
        chosen = int(rows[int.from_bytes(digest) % len(rows)])
        cluster.add(signature, running, cluster.snapshot.nodes[chosen].node.name)
        placed[which] += 1
    return RandomRun(tuple(placed), is_forced)


def _in_turn(pods: Sequence[FurtherPods], turns: int | None) -> Iterator[tuple[int, int]]:
    """Yield (number of the template, number of the pod in it) for each pod to place."""
    for turn in count() if turns is None else range(turns):
        for which, each in enumerate(pods):
            for index in range(turn * each.share, (turn + 1) * each.share):
                yield which, index

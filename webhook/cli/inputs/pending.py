"""The pending pods of the cluster, which take their places before the pods of `check` and `capacity`."""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from webhook.cli.output.terminal import Progress, echo
from webhook.cluster.pods.pending_pods import PendingPod, PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.documents.listing import plural, some
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.placement.scorer import PodSignature, Scorer
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import place_pending, read_waiting
from webhook.policy.spec.schedulers import BUILT_IN_SCHEDULERS, SchedulerSettings

Pending: TypeAlias = AssumedPods[PodKey]

# A pod takes about a millisecond on 5,000 nodes. The pods beyond are the last in the queue.
MOST_PENDING = 10_000
# It sorts after every creationTimestamp.
_AFTER_ALL = "~"


class _Place(NamedTuple):
    """The place of a pod in kube-scheduler's queue. `number` orders pods that were created in the same second."""

    minus_priority: int
    created: str
    number: int


def _last(priority: int) -> _Place:
    """Return the place after all pending pods of `priority`."""
    return _Place(-priority, _AFTER_ALL, 0)


@dataclass(frozen=True, slots=True)
class Reserved:
    """The pending pods that come before a pod: their number on each node, and the number of pods without room."""

    nodes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    without_room: int = 0

    def __bool__(self) -> bool:
        return bool(self.nodes) or self.without_room > 0

    @property
    def pods(self) -> int:
        """Return the number of pods with room."""
        return sum(self.nodes.values())

    @property
    def text(self) -> str:
        """Return one line of text about the pods, or an empty string if there are none."""
        parts = []
        if self.nodes:
            nodes = sorted(self.nodes.items(), key=lambda item: (-item[1], item[0]))
            shown = some([f"{node} {count}" for node, count in nodes], noun="nodes")
            verb = "takes its place" if self.pods == 1 else "take their places"
            parts.append(f"{plural(self.pods, 'pending pod')} {verb} first: {shown}")
        if self.without_room:
            pods = str(self.without_room) if parts else plural(self.without_room, "pending pod")
            parts.append(f"{pods} {'fits' if self.without_room == 1 else 'fit'} nowhere")
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return the value of `reserved` in the JSON of `check` and `capacity`."""
        return {"pods": self.pods, "nodes": dict(sorted(self.nodes.items())), "withoutRoom": self.without_room}


NOTHING_RESERVED = Reserved()


@dataclass(frozen=True)
class PendingQueue:
    """The pending pods of the cluster: the placed ones in `assumed`, and the pods `without_room`."""

    assumed: Pending
    without_room: tuple[PodKey, ...] = ()

    def before(self, pod: Mapping[str, Any], assumed: Pending) -> tuple[Pending, Reserved]:
        """Return the part of `assumed` before `pod`, a raw API object, and the count of the pending pods before it.

        A new pod comes after all pending pods of its priority. A pending pod of the cluster keeps its place in the
        queue.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        asked = self._place(pod)
        if asked is None:
            return assumed, self._reserved(_last(self._priority(pod)), assumed)
        after = (key for key, each in assumed.by_key.items() if self._place_of(key, each.priority) >= asked)
        assumed = assumed.without(after)
        return assumed, self._reserved(asked, assumed)

    def reserved_before_new(self, priority: int) -> Reserved:
        """Return the count of the pending pods before a new pod of `priority`."""
        return self._reserved(_last(priority), self.assumed)

    @property
    def reserved(self) -> Reserved:
        """Return the count of all pending pods."""
        nodes = Counter(each.pod.node_name for each in self.assumed.by_key.values())
        return Reserved(nodes, len(self.without_room))

    def _reserved(self, asked: _Place, assumed: Pending) -> Reserved:
        with_room = [each for each in assumed.by_key.values() if -each.priority <= asked.minus_priority]
        without_room = sum(place < asked for place in self._places_without_room.values())
        return Reserved(Counter(each.pod.node_name for each in with_room), without_room)

    def _place(self, pod: Mapping[str, Any]) -> _Place | None:
        identity = PodIdentity.of(pod)
        key = PodKey(identity.namespace, identity.name)
        if key not in self._numbers:
            return None
        has_priority = field(pod, "spec", "priority") is not None
        return self._place_of(key, self._priority(pod) if has_priority else self._pending[key].priority)

    def _priority(self, pod: Mapping[str, Any]) -> int:
        return self.assumed.priority_of(PodSignature.of(pod).info.preemption)

    def _place_of(self, key: PodKey, priority: int) -> _Place:
        return _Place(-priority, self._pending[key].created, self._numbers[key])

    @property
    def _pending(self) -> Mapping[PodKey, PendingPod]:
        return self.assumed.base.pending

    @cached_property
    def _numbers(self) -> Mapping[PodKey, int]:
        is_counted = bool(self.assumed or self.without_room)
        return {key: number for number, key in enumerate(self._pending)} if is_counted else {}

    @cached_property
    def _places_without_room(self) -> Mapping[PodKey, _Place]:
        read = {key: read_waiting(self._pending[key]) for key in self.without_room}
        return {
            key: self._place_of(key, self.assumed.priority_of(pod.preemption))
            for key, pod in read.items()
            if pod is not None
        }


def place_pending_pods(
    snapshot: Snapshot,
    scheduler: Scorer,
    *,
    counts: bool,
    most: int = MOST_PENDING,
    schedulers: Mapping[str, SchedulerSettings] = BUILT_IN_SCHEDULERS,
) -> PendingQueue:
    """Place the pending pods of `snapshot` that wait for a node, or none if `counts` is false.

    Show progress on a terminal.

    At most `most` pods are placed. The numbers of the other pods, of pods that cannot be read, and of pods whose
    scheduler does not run are printed to standard error. `schedulers` are the settings of the policy.
    """
    waiting = [each for each in snapshot.pending.values() if each.is_waiting and each.nominated is None]
    if not counts or not waiting:
        return PendingQueue(AssumedPods(snapshot))
    if (left_out := len(waiting) - most) > 0:
        waiting.sort(key=lambda each: (-each.priority, each.created))
        echo(f"left out: {plural(left_out, 'pending pod')}, the last of {len(waiting)} in the queue", err=True)
    progress = Progress()
    placed = place_pending(scheduler, snapshot, waiting[:most], progress.of("pending pods"), schedulers=schedulers)
    progress.end()
    for name, number in sorted(Counter(placed.abandoned.values()).items()):
        echo(f"left out: {plural(number, 'pending pod')} of scheduler {name}: no sign that it runs", err=True)
    if placed.unread:
        pods, first = plural(len(placed.unread), "pending pod"), placed.unread[0]
        echo(f"left out: {pods} that cannot be read, the first is {first.namespace}/{first.name}", err=True)
    return PendingQueue(placed.assumed, placed.without_room)

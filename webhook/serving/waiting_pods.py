"""The pods that wait, admitted here or seen in the cluster, and the room that is reserved for them.

    admitted here --seen pending--> pending --bound, deleted, gated or unschedulable--> gone
         |                             ^
         +--bound, or not seen         +-- admitted by another replica, or bypassed
            in time--> gone

A pod keeps its room while its node has it. If a pod does not get the node of its room, because kube-scheduler picks one
of equal score at random, the pods after it are placed again, unless the cluster is so large that kube-scheduler scores
only a part of its nodes.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from webhook.cluster.pending_pods import PendingPod, PodKey, pending_changes
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import field
from webhook.kube.pod_identity import PodIdentity
from webhook.placement.assumed_pods import MOST_SCORED_NODES, AssumedPod, AssumedPods
from webhook.placement.cluster_warnings import is_absent
from webhook.placement.scorer import Scorer
from webhook.placement.waiting_pods import assume, place_and_assume
from webhook.serving.admitted_pods import AdmittedPods
from webhook.serving.placing_queue import PlacingQueue, PlacingQueues, QueueOrder
from webhook.serving.rendering import Candidate
from webhook.serving.waiting_entries import MOST_WAITING, Entries, Entry, PodKind, ReadPods
from webhook.serving.work_budget import ends_after

# After so much CPU time no further pod is placed: before one admission, and in the background.
_SLICE_SECONDS = 0.003
_BACKGROUND_SECONDS = 0.01
# In a cluster whose nodes kube-scheduler samples, most pods are bound elsewhere than predicted, each at the cost of
# others. Placing all of these again would take more than the admissions, and tell as little about the node.
_SAMPLED_BACKGROUND_SECONDS = 0.002
# A pod that takes the scorer longer than this gets no room.
_POD_SECONDS = 0.01
# Placing more pods again than these would delay admissions, so that is done in the background.
_MOST_PLACED_AGAIN = 200
# Pods without room are placed again after a change of the cluster, at most this often.
_RETRY_SECONDS = 2.0
_BEFORE_ALL = QueueOrder(-(2**31), "", 0)


class WaitingPods:
    """Keeps the assumed pods on the current snapshot. An instance is for one thread.

    A pod that is known from its admission alone has room for `admitted_seconds()`. The clocks return seconds;
    `cpu_seconds` is the CPU time of the thread. `is_absent` returns whether a snapshot has no sign of a scheduler.
    """

    def __init__(
        self,
        scorer: Scorer,
        admitted_seconds: Callable[[], float],
        monotonic_seconds: Callable[[], float],
        cpu_seconds: Callable[[], float],
        is_absent: Callable[[str, Snapshot], bool] = is_absent,
    ) -> None:
        self._scorer, self._admitted_seconds = scorer, admitted_seconds
        self._monotonic_seconds, self._cpu_seconds = monotonic_seconds, cpu_seconds
        self._is_absent, self._admitted = is_absent, AdmittedPods()
        self.find_admitted, self.reserves = self._admitted.find_same, self._admitted.has_place
        self._entries, self._number_of = Entries(), dict[PodKey, int]()
        self._pending: Mapping[PodKey, PendingPod] = {}
        self._bound: list[tuple[PodIdentity, str]] = []
        self._outdated_after: QueueOrder | None = None
        self._queues = PlacingQueues()
        self._retry_at_seconds = self._abandon_at_seconds = 0.0
        self._assumed: AssumedPods[int] = AssumedPods(Snapshot.of(()))
        self._read_pods = ReadPods()
        # The pods that lose their place with the next change of `_assumed`.
        self._gone: list[int] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def reserved(self) -> int:
        """Return the number of pods with room."""
        return len(self._assumed)

    def on(self, snapshot: Snapshot) -> AssumedPods[int]:
        """Return the assumed pods on `snapshot`, or on a later one that is known already.

        Pods that have not been placed yet are placed first, for a few milliseconds.
        """
        self._follow(snapshot)
        if not self._is_sampled:
            self._place_again(_SLICE_SECONDS, _MOST_PLACED_AGAIN)
            self._place(self._queues.ready, _SLICE_SECONDS)
        return self._assumed

    @property
    def _is_sampled(self) -> bool:
        """Return whether kube-scheduler scores only a part of the nodes."""
        return len(self._assumed.base.nodes) > MOST_SCORED_NODES

    def settle(self, snapshot: Snapshot) -> None:
        """Place pods in the background, so that admissions need not wait for it."""
        self._follow(snapshot)
        self._place_again(_BACKGROUND_SECONDS, MOST_WAITING)
        seconds = _SAMPLED_BACKGROUND_SECONDS if self._is_sampled else _BACKGROUND_SECONDS
        self._place(self._queues.ready or self._queues.retries, seconds)

    def admit(self, identity: PodIdentity, candidate: Candidate) -> None:
        """Reserve room for a pod that has been admitted and is not seen in the cluster yet."""
        if PodKey(identity.namespace, identity.name) in self._number_of:
            return
        # The API server calls again if another webhook changed the pod.
        self._drop((self._admitted.take_same(identity),))
        self._forget_gone()
        pod, placement = candidate.pod, candidate.placement
        priority = self._assumed.priority_of(pod.preemption)
        if not self._admitted.has_place(identity.namespace) or not self._has_place(identity.namespace):
            return
        now_seconds = self._monotonic_seconds()
        number = self._entries.admit(identity.namespace, priority, candidate.content, now_seconds)
        entry = self._entries[number]
        entry.pod = pod
        self._read_pods.keep(entry, pod)
        self._admitted.add(number, identity, now_seconds + self._admitted_seconds(), candidate.size_bytes)
        self._give_up(now_seconds)
        self._forget_gone()
        if number not in self._entries:
            return
        node = placement.node or ""
        if node in self._assumed.base.rows and self._assumed.has_room(node, pod.running):
            self._put(assume(number, pod, placement, self._assumed))
        else:
            self._put((number,))

    def place_all_again(self) -> None:
        """Place the pods again before the next admissions: the scorer has changed."""
        self._outdated_after, self._retry_at_seconds = _BEFORE_ALL, 0.0

    def note_bound(self, pod: Mapping[str, Any]) -> None:
        """Record that `pod`, a raw API object, is bound, so that it does not wait on the next snapshot."""
        if self._entries:
            self._bound.append((PodIdentity.of(pod), str(field(pod, "spec", "nodeName"))))

    def _follow(self, snapshot: Snapshot) -> None:
        """Take over a later state of the cluster."""
        now_seconds = self._monotonic_seconds()
        self._give_up(now_seconds)
        before = self._assumed.base
        if snapshot is before or snapshot.generation < before.generation:
            self._forget_gone()
            return
        self._drop_bound()
        if snapshot.pending is not self._pending:
            self._follow_pending(snapshot.pending)
        gone, self._gone = self._gone, []
        self._put(self._assumed.follow(snapshot, gone))
        self._take(self._assumed.without_room_since(before))
        if now_seconds >= self._retry_at_seconds and self._queues.retry(self._order_of):
            self._retry_at_seconds = now_seconds + _RETRY_SECONDS

    def _is_abandoned(self, number: int, scheduler: str) -> bool:
        """Return whether a pod has waited for long for a scheduler that shows no sign of running.

        If it kept its room, any user could make all other pods wait with a name that no scheduler has.
        """
        until_seconds = self._entries[number].since_seconds + self._admitted_seconds()
        return self._monotonic_seconds() >= until_seconds and self._is_absent(scheduler, self._assumed.base)

    def _drop_bound(self) -> None:
        nodes: dict[int, str] = {}
        for identity, node in self._bound:
            number = self._number_of.pop(PodKey(identity.namespace, identity.name), None)
            if number is None:
                number = self._admitted.take(identity)
            if number is not None:
                nodes[number] = node
        self._bound.clear()
        self._drop(nodes, nodes)

    def _take(self, numbers: Iterable[int]) -> None:
        """Take the room of pods, which are placed again."""
        lost = [*numbers]
        self._assumed.forget(lost)
        self._put(lost)

    def _follow_pending(self, pending: Mapping[PodKey, PendingPod]) -> None:
        changed, gone = pending_changes(self._pending, pending)
        if self._entries.is_incomplete and self._entries.is_half_empty:
            # Pods that were left out have a place now; the others stay as they are.
            self._entries.is_incomplete, changed = False, [*pending.values()]
        self._drop([self._number_of.pop(key, None) for key in gone])
        self._drop([self._see(pod.key, pod) for pod in changed])
        self._pending = pending

    def _see(self, key: PodKey, pod: PendingPod) -> int | None:
        """Take over the state of a pending pod; return its number if it does not wait any more."""
        number = self._number_of.get(key)
        if number is None:
            number = self._admitted.take(pod.identity)
        if not pod.is_waiting or pod.nominated is not None:
            self._number_of.pop(key, None)
            return number
        if number is None:
            if not self._has_place(key.namespace):
                return None
            number = self._entries.see(pod, self._monotonic_seconds())
            self._put((number,))
        elif self._entries[number].see(pod):
            # Another webhook changed the pod after this one, or it was changed while it waits.
            self._gone.append(number)
            self._put((number,))
        self._number_of[key] = number
        return None

    def _has_place(self, namespace: str) -> bool:
        """Return whether a pod of `namespace` can be added, for which one of another can be forgotten."""
        number = self._entries.to_make_room(namespace)
        if number:
            pending = self._entries[number].pending
            if pending is not None:
                self._number_of.pop(pending.key, None)
            self._admitted.discard(number)
            self._drop((number,))
        return number != 0

    def _give_up(self, now_seconds: float) -> None:
        self._drop([*self._admitted.take_given_up(now_seconds)])
        if now_seconds >= self._abandon_at_seconds:
            self._abandon_at_seconds = now_seconds + _RETRY_SECONDS
            self._forget_gone()
            room = self._assumed.by_key.items()
            self._take([number for number, each in room if self._is_abandoned(number, each.pod.scheduler)])

    def _drop(self, numbers: Iterable[int | None], nodes: Mapping[int, str] = MappingProxyType({})) -> None:
        """Forget pods that do not wait any more. `nodes` are those that they are bound to."""
        gone = [number for number in numbers if number is not None]
        for number in gone:
            entry, known = self._entries.pop(number), self._assumed.by_key.get(number)
            if entry is not None and nodes.get(number, "") != (known.pod.node_name if known else ""):
                self._outdated_after = min(self._outdated_after or entry.order, entry.order)
            self._queues.leave(number)
        self._gone += gone

    def _forget_gone(self) -> None:
        if self._gone:
            gone, self._gone = self._gone, []
            self._assumed.forget(gone)

    def _put(self, numbers: Iterable[int]) -> None:
        """Put pods that have lost their room into the queue."""
        for number in numbers:
            if number in self._entries:
                self._queues.ready.put(self._entries[number].order)

    def _order_of(self, number: int) -> QueueOrder:
        return self._entries[number].order

    def _place_again(self, slice_seconds: float, most: int) -> None:
        """Place at most `most` pods after `_outdated_after` again. Those that the slice leaves keep their room."""
        first = self._outdated_after
        if first is None or self._is_sampled:
            self._outdated_after = None
            return
        room = dict(self._assumed.by_key)
        orders = sorted(order for order in (self._entries[number].order for number in room) if order > first)
        if len(orders) > most:
            return
        self._outdated_after = None
        self._assumed.forget([order.number for order in orders])
        is_over = ends_after(slice_seconds, self._monotonic_seconds, self._cpu_seconds)
        for at, (_, _, number) in enumerate(orders, start=1):
            self._place_one(number, self._entries[number])
            if at < len(orders) and is_over():
                self._outdated_after = orders[at - 1]
                self._return_room({order.number: room[order.number] for order in orders[at:]})
                return

    def _return_room(self, room: Mapping[int, AssumedPod]) -> None:
        """Give pods their earlier room again; where the node does not have it any more, they are placed again."""
        for number, each in room.items():
            self._assumed.assume(number, each)
        nodes = {each.pod.node_name for each in room.values()}
        full = {node for node in nodes if not self._assumed.has_room(node)}
        self._take([number for number, each in room.items() if each.pod.node_name in full])

    def _place(self, queue: PlacingQueue, slice_seconds: float) -> None:
        """Place pods of `queue` until `slice_seconds` of CPU time have passed."""
        if not queue:
            return
        is_over = ends_after(slice_seconds, self._monotonic_seconds, self._cpu_seconds)
        # Pods that are equal to one without room get none either. There can be thousands of them.
        without_room: set[PodKind] = set()
        while (number := queue.take()) is not None:
            entry = self._entries[number]
            if entry.kind in without_room:
                self._queues.leave_without_room(number)
                continue
            self._place_one(number, entry)
            if number in self._queues.without_room:
                without_room.add(entry.kind)
            if is_over():
                return

    def _place_one(self, number: int, entry: Entry) -> None:
        # It can be in another queue, too, if it was changed while it waited there.
        self._queues.leave(number)
        pod = self._read_pods.read(entry)
        if pod is None or entry.is_too_expensive:
            return
        if self._is_abandoned(number, pod.running.scheduler):
            self._queues.leave_without_room(number)
            return
        seed = str(entry.pending.key) if entry.pending else str(number)
        placement, displaced = place_and_assume(
            self._scorer,
            number,
            pod,
            self._assumed,
            seed,
            ends_after(_POD_SECONDS, self._monotonic_seconds, self._cpu_seconds),
        )
        self._put(displaced)
        entry.is_too_expensive = not placement.is_final
        if placement.verdict != "Feasible":
            self._queues.leave_without_room(number)

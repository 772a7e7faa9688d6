"""The pods that wait, admitted here or seen in the cluster, and the room that is reserved for them.

    admitted here --seen pending--> pending --bound, deleted, gated or unschedulable--> gone
         |                             ^
         +--bound, or not seen         +-- admitted by another replica, or bypassed
            in time--> gone

A pod keeps its room while its node has it. If a pod does not get the node of its room, because kube-scheduler picks one
of equal score at random, the pods after it are placed again. That is not done after a pod that fits so many nodes that
kube-scheduler scores only a part of them, nor for such a pod.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any

from webhook.backends.references import GangRequest
from webhook.cluster.pods.pending_pods import PendingPod, PodKey, pending_changes
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.gang_key import GANG, GangKey, gangs_of
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.stored_pod import Binding
from webhook.placement.gang.gang import members_on
from webhook.placement.pod.pod_info import has_volumes
from webhook.placement.reasons.cluster_warnings import is_absent
from webhook.placement.scorer import Scorer
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, assume, place_and_assume, read_waiting
from webhook.placement.waiting.pod_table import MOST_WAITING, PodTable, QueueOrder, TableEntry
from webhook.runtime.byte_cache import ByteCache
from webhook.serving.decisions.rendering import Candidate
from webhook.serving.work_budget import ends_after

# After so much time no further pod is placed: before one admission, and in the background.
_SLICE_SECONDS = 0.003
_BACKGROUND_SECONDS = 0.01
# Where kube-scheduler samples nodes, most pods are bound elsewhere, so placing all others again predicts little.
_SAMPLED_BACKGROUND_SECONDS = 0.002
# A pod that takes the scorer longer than this gets no room.
_POD_SECONDS = 0.01
# A pod that is not placed leaves its room to a later one. On a busy machine, a time slice ends before anything is done.
_LEAST_PLACED = 4
# Placing more pods again than these would delay admissions, so that is done in the background.
_MOST_PLACED_AGAIN = 200
# More pods without room than these wait for the retries.
_MOST_WITHOUT_ROOM = 200
# Pods without room are placed again after a change of the cluster, at most this often.
_RETRY_SECONDS = 2.0
_READ_BYTES = 4 * 1024 * 1024
# The content of a pod is decoded for its gang only if it names one.
_GANG = GANG.encode()
_BEFORE_ALL = QueueOrder(-(2**31), "", 0)


class WaitingPods(AssumedPods[int]):
    """The assumed pods by number on the current snapshot, with all pods that wait. Not thread-safe.

    A pod that is known only from its admission has room for `admitted_seconds()`, and for `unseen_seconds` at most.
    The clocks return seconds; `cpu_seconds` is the CPU time of the thread. `is_absent` returns whether a snapshot has
    no sign of a scheduler, `gang_of` the gang that a stored pod asks for.
    """

    def __init__(
        self,
        scorer: Scorer,
        admitted_seconds: Callable[[], float],
        monotonic_seconds: Callable[[], float],
        cpu_seconds: Callable[[], float],
        is_absent: Callable[[str, Snapshot], bool] = is_absent,
        *,
        unseen_seconds: float = math.inf,
        gang_of: Callable[[Mapping[str, Any], Snapshot], GangRequest | None] = lambda *_: None,
    ) -> None:
        super().__init__(Snapshot.of(()))
        self._scorer, self._is_absent, self._gang_of = scorer, is_absent, gang_of
        self._monotonic_seconds, self._cpu_seconds = monotonic_seconds, cpu_seconds
        self._admitted_seconds, self._unseen_seconds = admitted_seconds, unseen_seconds
        self._table = PodTable()
        # The pods to place, those to place again in the background, and those without room until these are placed.
        self._ready, self._retries, self._without_room = set[int](), set[int](), set[int]()
        self.find_admitted, self.reserves = self._table.find_admitted, self._table.has_place
        # The inputs of placing, which the pods of one template share.
        self._read: ByteCache[tuple[str, bytes], WaitingPod] = ByteCache(_READ_BYTES)
        # Schedulers that were not absent a moment ago: asking for each pod would cost each admission.
        self._present: set[str] = set()
        self._pending: Mapping[PodKey, PendingPod] = {}
        self._bound: list[Binding] = []
        # The pods that lose their room with the next change.
        self._gone: list[int] = []
        # The pods after this one in the queue have to be placed again.
        self._outdated_after: QueueOrder | None = None
        # After this one they are too many to be placed again before a review.
        self._too_many_after: QueueOrder | None = None
        self._retry_at_seconds = self._abandon_at_seconds = 0.0

    @property
    def total(self) -> int:
        """Return the number of pods that wait, with room or without."""
        return len(self._table)

    def before_review(self, snapshot: Snapshot) -> None:
        """Show the assumed pods on `snapshot`, or on a later one that is known already.

        Pods that have not been placed yet are placed first, for a few milliseconds.
        """
        self._follow(snapshot)
        if self._outdated_after is not self._too_many_after:
            self._place_again(_SLICE_SECONDS, _MOST_PLACED_AGAIN)
        if self._ready and not self.is_mostly_sampled:
            self._place(self._ready, _SLICE_SECONDS)

    def settle(self, snapshot: Snapshot) -> None:
        """Place pods in the background, so that admissions need not wait for it."""
        self._follow(snapshot)
        self._place_again(_BACKGROUND_SECONDS, MOST_WAITING)
        seconds = _SAMPLED_BACKGROUND_SECONDS if self.is_mostly_sampled else _BACKGROUND_SECONDS
        self._place(self._ready or self._retries, seconds)

    def admit(self, identity: PodIdentity, candidate: Candidate) -> None:
        """Reserve room for a pod that has been admitted, and is not seen yet."""
        table, namespace = self._table, identity.namespace
        if identity[:2] in table.seen:
            return
        # The API server calls again if another webhook changed the pod.
        self._end_wait(table.find_admitted(identity))
        if not table.has_place(namespace) or not self._has_place(namespace):
            return
        pod, placement = candidate.pod, candidate.placement
        now_seconds = self._monotonic_seconds()
        until_seconds = now_seconds + min(self._admitted_seconds(), self._unseen_seconds)
        priority = self.priority_of(pod.preemption)
        number = table.admit(identity, priority, candidate.digest, pod, until_seconds)
        self._keep_read(table[number], pod)
        while table.unseen and (given_up := table.given_up(now_seconds)) is not None:
            self._end_wait(given_up)
        self._forget_gone()
        if number not in table:
            return
        if self._is_abandoned(pod.running.scheduler):
            self._leave_without_room(number)
            return
        gang = pod.running.gangs[0] if candidate.least > 1 and pod.running.gangs else None
        if gang is not None:
            table.join(number, gang, candidate.least)
        if placement.verdict != "Feasible":
            self._hold_gang(number)
        elif self.has_room(placement.node or "", pod.running):
            self._enqueue(assume(number, pod, placement, self))
            if gang in table.held:
                self._resume_gang(gang)
        else:
            self._enqueue((number,))

    def withdraw(self, identity: PodIdentity) -> None:
        """Take back the room of an unseen pod, which is admitted again."""
        self._end_wait(self._table.find_admitted(identity))
        self._forget_gone()

    def bound(self, pod: Binding) -> None:
        """Record that a pod is bound, so that it does not wait on the next snapshot."""
        if self._table:
            self._bound.append(pod)

    def place_all_again(self) -> None:
        """Place the pods again before the next admissions: the scorer has changed."""
        self._outdated_after, self._retry_at_seconds = _BEFORE_ALL, 0.0

    def _follow(self, snapshot: Snapshot) -> None:
        """Take over a later state of the cluster."""
        now_seconds, before, table = self._monotonic_seconds(), self.base, self._table
        while table.unseen and (given_up := table.given_up(now_seconds)) is not None:
            self._end_wait(given_up)
        if now_seconds >= self._abandon_at_seconds:
            self._abandon_at_seconds = now_seconds + _RETRY_SECONDS
            self._take_room_of_abandoned()
        if snapshot is before or snapshot.generation < before.generation:
            self._forget_gone()
            return
        for pod in self._bound:
            self._end_wait(table.find(pod.identity), pod.node)
        self._bound.clear()
        if snapshot.pending is not self._pending:
            self._follow_pending(snapshot)
        gone, self._gone = self._gone, []
        self._enqueue(self.follow(snapshot, gone))
        self._take_room(self.without_room_since(before))
        if now_seconds >= self._retry_at_seconds and self._without_room and not self._retries:
            self._retry_at_seconds = now_seconds + _RETRY_SECONDS
            self._retries, self._without_room = self._without_room, set()

    def _follow_pending(self, snapshot: Snapshot) -> None:
        pending, table = snapshot.pending, self._table
        changed, gone = pending_changes(self._pending, pending)
        if table.is_incomplete and 2 * len(table) < MOST_WAITING:
            # Pods that were left out have a place now; the others stay as they are.
            table.is_incomplete, changed = False, [*pending.values()]
        for key in gone:
            self._end_wait(table.seen.get(key))
        for pod in changed:
            self._see(pod, snapshot)
        self._pending = pending

    def _see(self, pod: PendingPod, snapshot: Snapshot) -> None:
        """Take over the state of a pending pod."""
        number = self._table.find(pod.identity)
        if not pod.is_waiting or pod.nominated is not None:
            self._end_wait(number)
            return
        if number is None and not self._has_place(pod.key.namespace):
            return
        number, is_changed = self._table.see(number, pod)
        if is_changed:
            # It is new, another webhook changed it after this one, or it was changed while it waits.
            self._gone.append(number)
            self._enqueue((number,))
        if _GANG in pod.content and self._table[number].gang is None:
            # It was admitted by another replica or before a restart.
            content = pod.object()
            request, gangs = self._gang_of(content, snapshot), gangs_of(pod.identity.namespace, content["metadata"])
            if request is not None and request.least > 1 and gangs:
                self._table.join(number, gangs[0], request.least)

    def _has_place(self, namespace: str) -> bool:
        """Return whether a pod of `namespace` can be added, for which one of another can be forgotten."""
        number = self._table.to_make_room(namespace)
        if number:
            self._end_wait(number)
        return number != 0

    def _take_room_of_abandoned(self) -> None:
        """Take the room of the pods whose scheduler has gone."""
        self._forget_gone()
        self._present.clear()
        schedulers = {each.pod.scheduler for each in self.by_key.values()}
        if gone := {name for name in schedulers if self._is_abandoned(name)}:
            self._take_room([number for number, each in self.by_key.items() if each.pod.scheduler in gone])

    def _end_wait(self, number: int | None, node: str = "") -> None:
        """Forget a pod that does not wait any more, if there is one; `node` is that which it is bound to."""
        if number is None or (entry := self._table.remove(number)) is None:
            return
        known = self.by_key.get(number)
        predicted = known.pod.node_name if known else ""
        if node != predicted and not (known and known.is_sampled):
            self._outdated_after = min(self._outdated_after or entry.order, entry.order)
        self._leave(number)
        self._gone.append(number)

    def _forget_gone(self) -> None:
        if self._gone:
            gone, self._gone = self._gone, []
            self.forget(gone)

    def _is_abandoned(self, scheduler: str) -> bool:
        """Return whether nothing shows that `scheduler` runs, so that its pods get no room.

        Otherwise any user could make all other pods wait with a name that no scheduler has.
        """
        if scheduler not in self._present and not self._is_absent(scheduler, self.base):
            self._present.add(scheduler)
        return scheduler not in self._present

    def _take_room(self, numbers: Collection[int]) -> None:
        """Take the room of pods, which are placed again."""
        self.forget(numbers)
        self._enqueue(numbers)

    def _enqueue(self, numbers: Iterable[int]) -> None:
        """Put pods that have lost their room into the queue."""
        for number in numbers:
            if number in self._table:
                self._leave(number)
                self._ready.add(number)

    def _leave(self, number: int) -> None:
        """Remove a pod from the queue, wherever it is."""
        for numbers in (self._ready, self._retries, self._without_room):
            numbers.discard(number)

    def _leave_without_room(self, number: int) -> None:
        """Remove a pod from the queue until the next retries: it has no room."""
        self._leave(number)
        self._without_room.add(number)

    def _hold_gang(self, number: int) -> None:
        """Take the room of the gang of a pod that has none, unless enough of its pods have room to start.

        They are placed again with the next retries.
        """
        self._leave_without_room(number)
        entry = self._table[number]
        if entry.gang is None or self._can_start(entry, entry.gang, self.by_key):
            return
        self._table.held.add(entry.gang)
        placed = [each for each in self._table.members(entry.gang) if each in self.by_key]
        self.forget(placed)
        for each in placed:
            self._leave_without_room(each)

    def _resume_gang(self, gang: GangKey) -> None:
        """Place the pods of a held gang that can start now."""
        self._table.held.discard(gang)
        self._enqueue(self._without_room.intersection(self._table.members(gang)))

    def _can_start(self, entry: TableEntry, gang: GangKey, among: Collection[int]) -> bool:
        """Return whether as many pods of `gang` as start together run, or are `among` those that wait."""
        waiting = sum(each in among for each in self._table.members(gang))
        return waiting + members_on(self.base, gang) >= entry.least

    def _is_held(self, entry: TableEntry) -> bool:
        """Return whether the gang of a pod does not start: too few of its pods are known, or one has no room."""
        if entry.gang is None or entry.gang not in self._table.held:
            return False
        members = self._table.members(entry.gang)
        has_no_room = not self._without_room.isdisjoint(members)
        return has_no_room or not self._can_start(entry, entry.gang, members)

    def _place_again(self, slice_seconds: float, most: int) -> None:
        """Place at most `most` pods after `_outdated_after` again. Those that the slice leaves keep their room.

        So do those whose node cannot be predicted. A pod without room can get some.
        """
        first = self._outdated_after
        if first is None:
            return
        room = {number: each for number, each in self.by_key.items() if not each.is_sampled}
        others = self._without_room if len(self._without_room) <= _MOST_WITHOUT_ROOM else ()
        orders = [order for order in self._in_order((*room, *others)) if order > first]
        if len(orders) > most:
            self._too_many_after = first
            return
        self._outdated_after = None
        self.forget([order.number for order in orders])
        ends_seconds = self._monotonic_seconds() + slice_seconds
        without_room: set[Hashable] = set()
        for at, (_, _, number) in enumerate(orders, start=1):
            # Pods that come between it and an equal one can make room for it, as those that it wants to be near.
            self._place_one(number, set() if number in room else without_room)
            if at < len(orders) and self._monotonic_seconds() >= ends_seconds:
                self._outdated_after = orders[at - 1]
                self._return_room({each.number: room[each.number] for each in orders[at:] if each.number in room})
                return

    def _return_room(self, room: Mapping[int, AssumedPod]) -> None:
        """Give pods their earlier room again; where the node does not have it any more, they are placed again."""
        for number, each in room.items():
            self.assume(number, each)
        full = {node for node in {each.pod.node_name for each in room.values()} if not self.has_room(node)}
        self._take_room([number for number, each in room.items() if each.pod.node_name in full])

    def _place(self, numbers: set[int], slice_seconds: float) -> None:
        """Place the pods of `numbers` in their order until `slice_seconds` have passed, but a few in any case."""
        ends_seconds = self._monotonic_seconds() + slice_seconds
        placed, without_room = 0, set[Hashable]()
        for order in self._in_order(numbers):
            # One that was placed before it can have taken its gang's room.
            placed += order.number in numbers and self._place_one(order.number, without_room)
            if placed >= _LEAST_PLACED and self._monotonic_seconds() >= ends_seconds:
                return

    def _in_order(self, numbers: Iterable[int]) -> list[QueueOrder]:
        return sorted([self._table[number].order for number in numbers])

    def _place_one(self, number: int, without_room: set[Hashable]) -> bool:
        """Place a pod, unless it is equal to one `without_room`; return whether that was tried.

        If no node has room for it, its kind is added to `without_room`. There can be thousands of equal pods.
        """
        entry = self._table[number]
        if entry.kind in without_room:
            self._leave_without_room(number)
            return False
        # It can be in the queue, too, if it was changed while it waits.
        self._leave(number)
        pod = self._read_pod(entry)
        if pod is None or entry.is_too_expensive:
            return True
        if self._is_abandoned(pod.running.scheduler) or self._is_held(entry):
            self._leave_without_room(number)
            return True
        seed = str(entry.pending.key) if entry.pending else str(number)
        expired = ends_after(_POD_SECONDS, self._monotonic_seconds, self._cpu_seconds)
        placement, displaced = place_and_assume(self._scorer, number, pod, self, seed, expired)
        self._enqueue(displaced)
        entry.is_too_expensive = not placement.is_final
        if placement.verdict != "Feasible":
            self._hold_gang(number)
            without_room.add(entry.kind)
        return True

    def _read_pod(self, entry: TableEntry) -> WaitingPod | None:
        """Return what placing the pod of `entry` needs, or None if it cannot be read."""
        pod = entry.pod or self._read.get((entry.namespace, entry.digest))
        if pod is None and entry.pending is not None and (pod := read_waiting(entry.pending)) is not None:
            self._keep_read(entry, pod)
        return pod

    def _keep_read(self, entry: TableEntry, pod: WaitingPod) -> None:
        key = entry.namespace, entry.digest
        # The claims of a pod's own volumes have its name; all else is the same for pods with equal content.
        if self._read.get(key) is not pod and not has_volumes(pod.signature.info):
            self._read.put(key, pod, 2 * pod.signature.size_bytes)

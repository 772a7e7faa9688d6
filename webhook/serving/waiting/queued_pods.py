"""The queue of the waiting pods, and their room. Each pod is placed after the pods before it in the queue.

A pod keeps its room while its node has room for it. If kube-scheduler binds a pod to another node, because it picks one
of equal score at random, the pods after it are placed again. A pod that fits so many nodes that kube-scheduler only
scores a part of them is never placed again, and pods after it are not placed again because of it.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.gang.domains import members_on
from webhook.placement.pod.pod_info import has_volumes
from webhook.placement.scorer import Scorer
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, place_and_assume, read_waiting
from webhook.placement.waiting.pod_table import PodTable, QueueOrder, TableEntry
from webhook.runtime.byte_cache import ByteCache
from webhook.serving.work_budget import ends_after

# A pod that takes the scorer longer than this gets no room.
_POD_SECONDS = 0.01
# A pod that is not placed leaves its room to a later one. On a busy machine, a time slice ends before anything is done.
_LEAST_PLACED = 4
# More pods without room than these wait for the retries.
_MOST_WITHOUT_ROOM = 200
_READ_BYTES = 4 * 1024 * 1024


class QueuedPods(AssumedPods[int]):
    """The assumed pods by number, and the queue of pods to place. Not thread-safe.

    The clocks return seconds; `cpu_seconds` is the CPU time of the thread. `is_absent` returns whether a snapshot has
    no evidence of a scheduler.
    """

    def __init__(
        self,
        scorer: Scorer,
        monotonic_seconds: Callable[[], float],
        cpu_seconds: Callable[[], float],
        is_absent: Callable[[str, Snapshot], bool],
    ) -> None:
        super().__init__(Snapshot.of(()))
        self._scorer, self._is_absent = scorer, is_absent
        self._monotonic_seconds, self._cpu_seconds = monotonic_seconds, cpu_seconds
        self._table = PodTable()
        # The pods to place, those to place again in the background, and those without room until these are placed.
        self._ready, self._retries, self._without_room = set[int](), set[int](), set[int]()
        # The inputs of placing, which the pods of one template share.
        self._read: ByteCache[tuple[str, bytes], WaitingPod] = ByteCache(_READ_BYTES)
        # Schedulers that were not absent a moment ago: asking for each pod would cost each admission.
        self._present: set[str] = set()
        # The pods after this one in the queue have to be placed again.
        self._outdated_after: QueueOrder | None = None
        # After this one they are too many to be placed again before a review.
        self._too_many_after: QueueOrder | None = None

    def _is_abandoned(self, scheduler: str) -> bool:
        """Return whether there is no evidence that `scheduler` runs. Its pods then get no room.

        Otherwise, a user could block room for all other pods with the name of a scheduler that does not exist.
        """
        if scheduler not in self._present and not self._is_absent(scheduler, self.base):
            self._present.add(scheduler)
        return scheduler not in self._present

    def _take_room(self, numbers: Collection[int]) -> None:
        """Release the room of pods, and put them into the queue to be placed again."""
        self.forget(numbers)
        self._enqueue(numbers)

    def _enqueue(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._table:
                self._leave(number)
                self._ready.add(number)

    def _leave(self, number: int) -> None:
        for numbers in (self._ready, self._retries, self._without_room):
            numbers.discard(number)

    def _leave_without_room(self, number: int) -> None:
        """Remove a pod that finds no room from the queue until the next retries."""
        self._leave(number)
        self._without_room.add(number)

    def _hold_gang(self, number: int) -> None:
        """Release the room of the gang of a pod without room, unless enough pods of the gang have room to start."""
        self._leave_without_room(number)
        entry = self._table[number]
        if entry.gang is None:
            return
        if self._can_start(entry, entry.gang, self.by_key):
            self._table.held.discard(entry.gang)
            return
        self._table.held.add(entry.gang)
        placed = [each for each in self._table.members(entry.gang) if each in self.by_key]
        self.forget(placed)
        for each in placed:
            self._leave_without_room(each)

    def _resume_gang(self, gang: GangKey) -> None:
        self._table.held.discard(gang)
        self._enqueue(self._without_room.intersection(self._table.members(gang)))

    def _can_start(self, entry: TableEntry, gang: GangKey, among: Collection[int]) -> bool:
        """Return whether enough pods of `gang` to start it are running or are in `among`, the waiting pods."""
        waiting = sum(each in among for each in self._table.members(gang))
        return waiting + members_on(self.base, gang) >= entry.least

    def _is_held(self, entry: TableEntry) -> bool:
        """Return whether the gang of a pod cannot start, because too few of its pods are known or a pod has no room."""
        if entry.gang is None or entry.gang not in self._table.held:
            return False
        members = self._table.members(entry.gang)
        has_no_room = not self._without_room.isdisjoint(members)
        return has_no_room or not self._can_start(entry, entry.gang, members)

    def _place_again(self, slice_seconds: float, most: int) -> None:
        """Place at most `most` pods after `_outdated_after` again. Pods that are not reached keep their room."""
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
        """Give pods their earlier room again. If the node no longer has this room, place its pods again."""
        for number, each in room.items():
            self.assume(number, each)
        full = {node for node in {each.pod.node_name for each in room.values()} if not self.has_room(node)}
        self._take_room([number for number, each in room.items() if each.pod.node_name in full])

    def _place(self, numbers: set[int], slice_seconds: float) -> None:
        """Place the pods of `numbers` in queue order until `slice_seconds` have passed, but always at least a few."""
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
        """Place a pod, unless it is equal to a pod in `without_room`. Return whether the placement was tried."""
        entry = self._table[number]
        if entry.kind in without_room:
            self._leave_without_room(number)
            return False
        # It can be in the queue, too, if it was changed while it waits.
        self._leave(number)
        pod = self._read_pod(entry)
        if pod is None or entry.is_too_expensive:
            return True
        if self._is_abandoned(pod.running.rare.scheduler) or self._is_held(entry):
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
        elif entry.gang in self._table.held and self._can_start(entry, entry.gang, self.by_key):
            self._resume_gang(entry.gang)
        return True

    def _read_pod(self, entry: TableEntry) -> WaitingPod | None:
        pod = entry.pod or self._read.get((entry.namespace, entry.digest))
        if pod is None and entry.pending is not None and (pod := read_waiting(entry.pending)) is not None:
            self._keep_read(entry, pod)
        return pod

    def _keep_read(self, entry: TableEntry, pod: WaitingPod) -> None:
        key = entry.namespace, entry.digest
        # The claims of a pod's own volumes have its name; all else is the same for pods with equal content.
        if self._read.get(key) is not pod and not has_volumes(pod.signature.info):
            self._read.put(key, pod, 2 * pod.signature.size_bytes)

"""Places the pods that wait, before admissions or in the background."""

from collections.abc import Callable, Collection, Iterable, Mapping

from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.gang.gang import members_on
from webhook.placement.scorer import Scorer
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.placement.waiting.pending_placement import place_and_assume
from webhook.serving.waiting.placing_queue import PlacingQueue, PlacingQueues, QueueOrder
from webhook.serving.waiting.waiting_entries import Entries, Entry, PodKind, ReadPods
from webhook.serving.work_budget import ends_after

# A pod that takes the scorer longer than this gets no room.
_POD_SECONDS = 0.01
# A pod that is not placed leaves its room to a later one. On a busy machine, a time slice ends before anything is done.
_LEAST_PLACED = 4
# More pods without room than these wait for the retries.
_MOST_WITHOUT_ROOM = 200


class Placing:
    """Places pods of `entries` and assumes them on their nodes. Not thread-safe.

    The pods after `outdated_after` in the queue have to be placed again. The arguments are those of `WaitingPods`.
    """

    def __init__(
        self,
        entries: Entries,
        scorer: Scorer,
        monotonic_seconds: Callable[[], float],
        cpu_seconds: Callable[[], float],
        is_absent: Callable[[str, Snapshot], bool],
    ) -> None:
        self._entries, self._scorer = entries, scorer
        self._monotonic_seconds, self._cpu_seconds, self._is_absent = monotonic_seconds, cpu_seconds, is_absent
        self.read_pods, self.queues = ReadPods(), PlacingQueues()
        # Schedulers that were not absent a moment ago: asking for each pod would cost each admission.
        self.present: set[str] = set()
        self.outdated_after: QueueOrder | None = None
        self.assumed: AssumedPods[int] = AssumedPods(Snapshot.of(()))

    def is_abandoned(self, scheduler: str) -> bool:
        """Return whether nothing shows that `scheduler` runs, so that its pods get no room.

        Otherwise any user could make all other pods wait with a name that no scheduler has.
        """
        if scheduler in self.present:
            return False
        if self._is_absent(scheduler, self.assumed.base):
            return True
        self.present.add(scheduler)
        return False

    def take_room_of_abandoned(self) -> None:
        """Take the room of the pods whose scheduler has gone."""
        self.present.clear()
        room = self.assumed.by_key.items()
        gone = {name for name in {each.pod.scheduler for _, each in room} if self.is_abandoned(name)}
        if gone:
            self.take_room([number for number, each in room if each.pod.scheduler in gone])

    def take_room(self, numbers: Iterable[int]) -> None:
        """Take the room of pods, which are placed again."""
        lost = [*numbers]
        self.assumed.forget(lost)
        self.put(lost)

    def put(self, numbers: Iterable[int]) -> None:
        """Put pods that have lost their room into the queue."""
        for number in numbers:
            if number in self._entries:
                self.queues.ready.put(self._entries[number].order)

    def hold_gang(self, number: int) -> None:
        """Take the room of the gang of a pod that has none, unless enough of its pods have room to start.

        They are placed again with the next retries.
        """
        self.queues.leave_without_room(number)
        entry = self._entries[number]
        if entry.gang is None or self._can_start(entry, entry.gang, self.assumed.by_key):
            return
        self._entries.held.add(entry.gang)
        placed = [each for each in self._entries.members(entry.gang) if each in self.assumed.by_key]
        self.assumed.forget(placed)
        for each in placed:
            self.queues.leave_without_room(each)

    def resume_gang(self, gang: GangKey) -> None:
        """Place the pods of a held gang that can start now."""
        self._entries.held.discard(gang)
        waiting = [each for each in self._entries.members(gang) if each in self.queues.without_room]
        for each in waiting:
            self.queues.leave(each)
        self.put(waiting)

    def _can_start(self, entry: Entry, gang: GangKey, among: Collection[int]) -> bool:
        """Return whether as many pods of `gang` as start together run, or are `among` those that wait."""
        waiting = sum(each in among for each in self._entries.members(gang))
        return waiting + members_on(self.assumed.base, gang) >= entry.least

    def _is_held(self, entry: Entry) -> bool:
        """Return whether the gang of a pod does not start: too few of its pods are known, or one has no room."""
        if entry.gang is None or entry.gang not in self._entries.held:
            return False
        members = self._entries.members(entry.gang)
        has_no_room = not self.queues.without_room.isdisjoint(members)
        return has_no_room or not self._can_start(entry, entry.gang, members)

    def order_of(self, number: int) -> QueueOrder:
        """Return the place of a pod in the queue."""
        return self._entries[number].order

    def place_again(self, slice_seconds: float, most: int) -> None:
        """Place at most `most` pods after `outdated_after` again. Those that the slice leaves keep their room.

        So do those whose node cannot be predicted. A pod without room can get some.
        """
        first = self.outdated_after
        if first is None:
            return
        room = {number: each for number, each in self.assumed.by_key.items() if not each.is_sampled}
        others = self.queues.without_room if len(self.queues.without_room) <= _MOST_WITHOUT_ROOM else ()
        orders = sorted(order for order in map(self.order_of, (*room, *others)) if order > first)
        if len(orders) > most:
            return
        self.outdated_after = None
        self.assumed.forget([order.number for order in orders])
        ends_seconds = self._monotonic_seconds() + slice_seconds
        without_room: set[PodKind] = set()
        for at, (_, _, number) in enumerate(orders, start=1):
            if number in room:
                # Pods that come between it and an equal one can make room for it, as those that it wants to be near.
                self._place_one(number, self._entries[number])
            else:
                self._place_unless_equal(number, without_room)
            if at < len(orders) and self._monotonic_seconds() >= ends_seconds:
                self.outdated_after = orders[at - 1]
                left = [order.number for order in orders[at:] if order.number in room]
                self._return_room({number: room[number] for number in left})
                return

    def _return_room(self, room: Mapping[int, AssumedPod]) -> None:
        """Give pods their earlier room again; where the node does not have it any more, they are placed again."""
        for number, each in room.items():
            self.assumed.assume(number, each)
        nodes = {each.pod.node_name for each in room.values()}
        full = {node for node in nodes if not self.assumed.has_room(node)}
        self.take_room([number for number, each in room.items() if each.pod.node_name in full])

    def place(self, queue: PlacingQueue, slice_seconds: float) -> None:
        """Place pods of `queue` until `slice_seconds` have passed, but a few in any case."""
        if not queue:
            return
        ends_seconds = self._monotonic_seconds() + slice_seconds
        placed, without_room = 0, set[PodKind]()
        while (number := queue.take()) is not None:
            placed += self._place_unless_equal(number, without_room)
            if placed >= _LEAST_PLACED and self._monotonic_seconds() >= ends_seconds:
                return

    def _place_unless_equal(self, number: int, without_room: set[PodKind]) -> bool:
        """Place a pod unless it is equal to one `without_room`; return whether that was tried.

        Equal pods get no room either. There can be thousands of them.
        """
        entry = self._entries[number]
        if entry.kind in without_room:
            self.queues.leave_without_room(number)
            return False
        if self._place_one(number, entry):
            without_room.add(entry.kind)
        return True

    def _place_one(self, number: int, entry: Entry) -> bool:
        """Place a pod; return whether no node has room for it."""
        # It can be in another queue, too, if it was changed while it waited there.
        self.queues.leave(number)
        pod = self.read_pods.read(entry)
        if pod is None or entry.is_too_expensive:
            return False
        if self.is_abandoned(pod.running.scheduler):
            self.queues.leave_without_room(number)
            return False
        if self._is_held(entry):
            self.queues.leave_without_room(number)
            return False
        seed = str(entry.pending.key) if entry.pending else str(number)
        expired = ends_after(_POD_SECONDS, self._monotonic_seconds, self._cpu_seconds)
        placement, displaced = place_and_assume(self._scorer, number, pod, self.assumed, seed, expired)
        self.put(displaced)
        entry.is_too_expensive = not placement.is_final
        if placement.verdict == "Feasible":
            return False
        self.hold_gang(number)
        return True

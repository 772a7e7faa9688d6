"""The pods that are to be placed, in the order of kube-scheduler's queue."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple


class QueueOrder(NamedTuple):
    """The place of a pod in the queue: the highest priority first, then the earliest.

    `created` is a creationTimestamp, which has whole seconds; `number` counts the pods in the order of their arrival.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort/priority_sort.go
    """

    minus_priority: int
    created: str
    number: int


class PlacingQueue:
    """A queue of pods by number."""

    def __init__(self) -> None:
        self._heap: list[QueueOrder] = []
        self._waiting: dict[int, QueueOrder] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, order: QueueOrder) -> None:
        """Add the pod `order.number`, or move it to another place."""
        if self._waiting.get(order.number) != order:
            self._waiting[order.number] = order
            heappush(self._heap, order)

    def take(self) -> int | None:
        """Remove and return the first pod, or None if there is none."""
        while self._heap:
            order = heappop(self._heap)
            if self._waiting.get(order.number) == order:
                del self._waiting[order.number]
                return order.number
        return None

    def discard(self, number: int) -> None:
        """Remove a pod if it is in the queue."""
        self._waiting.pop(number, None)
        if len(self._heap) > 2 * len(self._waiting) + 64:
            self._heap = sorted(self._waiting.values())


class PlacingQueues:
    """The pods that are `ready` to be placed, those of the `retries`, and those `without_room` until these begin."""

    def __init__(self) -> None:
        self.ready, self.retries = PlacingQueue(), PlacingQueue()
        self.without_room: set[int] = set()

    def leave(self, number: int) -> None:
        """Remove a pod."""
        self.ready.discard(number)
        self.retries.discard(number)
        self.without_room.discard(number)

    def leave_without_room(self, number: int) -> None:
        """Remove a pod until the next retries: it has no room."""
        self.leave(number)
        self.without_room.add(number)

    def retry(self, order_of: Callable[[int], QueueOrder]) -> bool:
        """Begin the next retries, unless earlier ones last or there is none; return whether they begin."""
        if not self.without_room or self.retries:
            return False
        for number in self.without_room:
            self.retries.put(order_of(number))
        self.without_room.clear()
        return True

"""Admitted pods of clients that may be no API server: only reviews of the same address find their room taken."""

from collections.abc import Callable, Mapping

from webhook.placement.framework.result import Placement
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.placement.waiting.waiting_pods import WaitingPod, assumed_pod

# API servers, and those that forward for them. Each has rankings of its own.
_MOST_VIEWS = 4
# A view keeps the rankings of an address from one of its pods to the next, and an old snapshot in memory.
_IDLE_SECONDS = 2.0
# Placing a pod takes about half a millisecond, and a review waits for it.
_MOST_PLACED_AGAIN = 8


class UnconfirmedPods:
    """Pods by number, each with the room that it has for the reviews of its address alone. Not thread-safe.

    So a client that makes reviews up changes no verdict but its own, and the burst of an API server whose pods have not
    been seen yet is predicted like any other. `confirmed` are the pods that have room for all. `place` returns the pod
    of a number on a node beside the pods that are assumed; its node is empty if none has room.
    """

    def __init__(self, confirmed: AssumedPods[int], place: Callable[[int, AssumedPods[int]], AssumedPod]) -> None:
        self.by_address: dict[str, dict[int, AssumedPod]] = {}
        self._confirmed, self._place = confirmed, place
        self._address_of: dict[int, str] = {}
        # Of the addresses that have asked last, the last one at the end.
        self._views: dict[str, _View] = {}

    def put(self, number: int, address: str, pod: WaitingPod, placement: Placement) -> None:
        """Add the pod `number`, which was admitted with `placement` for the client at `address`."""
        self._address_of[number] = address
        self.by_address.setdefault(address, {})[number] = assumed_pod(pod, placement, self._confirmed)
        if address in self._views:
            self._views[address].changed.add(number)

    def take(self, number: int) -> AssumedPod | None:
        """Remove and return the pod `number`; None if it is not there."""
        address = self._address_of.pop(number, None)
        if address is None:
            return None
        pods = self.by_address[address]
        pod = pods.pop(number)
        if not pods:
            del self.by_address[address]
        if address in self._views:
            self._views[address].changed.add(number)
        return pod

    def among(self, address: str, now_seconds: float) -> AssumedPods[int]:
        """Return the pods that the reviews of `address` find; the next call for it changes them in place.

        Pods of it whose node has no room any more, because another pod was bound there, are placed again.
        """
        own = self.by_address.get(address, {})
        view = self._views.pop(address, None)
        if view is None:
            if not own:
                return self._confirmed
            if len(self._views) >= _MOST_VIEWS:
                self._drop_view(next(iter(self._views)))
            view = _View(self._confirmed, own)
            self._confirmed.followers[address] = view.changed
        self._views[address] = view
        view.used_seconds = now_seconds
        view.follow(self._confirmed, own)
        if view.touched:
            view.place_again(own, self._place)
        return view.pods

    def drop_idle(self, now_seconds: float) -> None:
        """Drop the views of the addresses that have not asked for some time."""
        for address in [*self._views]:
            if now_seconds - self._views[address].used_seconds > _IDLE_SECONDS:
                self._drop_view(address)

    def _drop_view(self, address: str) -> None:
        del self._views[address], self._confirmed.followers[address]


class _View:
    """The pods of an address among those that are confirmed; the pods in `changed` can be others by now."""

    def __init__(self, confirmed: AssumedPods[int], own: Mapping[int, AssumedPod]) -> None:
        self.pods: AssumedPods[int] = AssumedPods(confirmed.base)
        self.changed = {*confirmed.by_key, *own}
        self.used_seconds = 0.0
        # Nodes whose pods may have no room.
        self.touched: set[str] = set()
        # An admission can take the room of a pod that it repeats from the view.
        self.pods.followers[""] = self.changed

    def follow(self, confirmed: AssumedPods[int], own: Mapping[int, AssumedPod]) -> None:
        """Take over the state of `confirmed` and of the pods of the address, `own`."""
        pods, base, before = self.pods, confirmed.base, self.pods.base
        if base.rows is not pods.base.rows:
            self.changed.update(own)
        gone, new = [], {}
        for number in self.changed:
            known, pod = pods.by_key.get(number), confirmed.by_key.get(number) or own.get(number)
            if pod is not None and pod.pod.node_name not in base.rows:
                pod = None
            if pod is not known:
                gone.append(number)
                if pod is not None:
                    new[number] = pod
        pods.follow(base, gone)
        for number, pod in new.items():
            pods.assume(number, pod)
        self.changed.clear()
        self.touched.update(each.pod.node_name for each in new.values())
        if base is not before:
            self.touched.update(pods.by_key[number].pod.node_name for number in pods.without_room_since(before))

    def place_again(self, own: dict[int, AssumedPod], place: Callable[[int, AssumedPods[int]], AssumedPod]) -> None:
        """Place pods of the address, `own`, again where a node has no room for all: a few for each review."""
        for _ in range(_MOST_PLACED_AGAIN):
            number = self._without_room(own)
            if number is None:
                return
            self.pods.forget((number,))
            placed = own[number] = place(number, self.pods)
            if placed.pod.node_name:
                self.pods.assume(number, placed)

    def _without_room(self, own: Mapping[int, AssumedPod]) -> int | None:
        """Return the last of the pods of the address on a node without room for all of its pods; None if all have."""
        while self.touched:
            node = next(iter(self.touched))
            here = [number for number in self.pods.keys_on(node) if number in own]
            if here and not self.pods.has_room(node):
                return min(here, key=lambda number: (own[number].priority, -number))
            self.touched.discard(node)
        return None

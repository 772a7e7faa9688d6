"""Admitted pods of clients that may be no API server: only reviews of the same address find their room taken."""

from collections.abc import Mapping

from webhook.placement.framework.result import Placement
from webhook.placement.waiting.assumed_pods import MOST_SCORED_NODES, AssumedPod, AssumedPods, tied_nodes
from webhook.placement.waiting.waiting_pods import WaitingPod

# API servers, and those that forward for them. Each has rankings of its own.
_MOST_VIEWS = 4
# A view keeps the rankings of an address from one of its pods to the next, and an old snapshot in memory.
_IDLE_SECONDS = 2.0


class UnconfirmedPods:
    """Pods by number, each with the room that it has for the reviews of its address alone. Not thread-safe.

    So a client that makes reviews up changes no verdict but its own, and the burst of an API server whose pods have not
    been seen yet is predicted like any other. `confirmed` are the pods that have room for all.
    """

    def __init__(self, confirmed: AssumedPods[int]) -> None:
        self.by_address: dict[str, dict[int, AssumedPod]] = {}
        self._confirmed = confirmed
        self._address_of: dict[int, str] = {}
        # Of the addresses that have asked last, the last one at the end.
        self._views: dict[str, _View] = {}

    def put(self, number: int, address: str, pod: WaitingPod, placement: Placement) -> None:
        """Add the pod `number`, which was admitted with `placement` for the client at `address`."""
        confirmed = self._confirmed
        priority = confirmed.priority_of(pod.preemption)
        running = pod.running.assumed_on(placement.node or "", priority)
        is_sampled = placement.feasible > MOST_SCORED_NODES
        self._address_of[number] = address
        self.by_address.setdefault(address, {})[number] = AssumedPod(
            running, priority, tied_nodes(placement, confirmed.base), is_sampled
        )
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
        """Return the pods that the reviews of `address` find; the next call for it changes them in place."""
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
        # An admission can take the room of a pod that it repeats from the view.
        self.pods.followers[""] = self.changed

    def follow(self, confirmed: AssumedPods[int], own: Mapping[int, AssumedPod]) -> None:
        """Take over the state of `confirmed` and of the pods of the address, `own`."""
        pods, base = self.pods, confirmed.base
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

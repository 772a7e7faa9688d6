"""Admitted pods of clients that may be no API server: only reviews of the same address find their room taken."""

from webhook.placement.framework.result import Placement
from webhook.placement.waiting.assumed_pods import MOST_SCORED_NODES, AssumedPod, AssumedPods, tied_nodes
from webhook.placement.waiting.waiting_pods import WaitingPod

# API servers, and those that forward for them. Each has rankings of its own.
_MOST_VIEWS = 4


class UnconfirmedPods:
    """Pods by number, each with the room that it has for the reviews of its address alone. Not thread-safe.

    So a client that makes reviews up changes no verdict but its own, and the burst of an API server whose pods have not
    been seen yet is predicted like any other.
    """

    def __init__(self) -> None:
        self.by_address: dict[str, dict[int, AssumedPod]] = {}
        self._address_of: dict[int, str] = {}
        # Of the addresses that have asked last, the last one at the end.
        self._views: dict[str, AssumedPods[int]] = {}

    def put(self, number: int, address: str, pod: WaitingPod, placement: Placement, assumed: AssumedPods[int]) -> None:
        """Add the pod `number`, which was admitted with `placement` for the client at `address`."""
        priority = assumed.priority_of(pod.preemption)
        running = pod.running.assumed_on(placement.node or "", priority)
        is_sampled = placement.feasible > MOST_SCORED_NODES
        self._address_of[number] = address
        self.by_address.setdefault(address, {})[number] = AssumedPod(
            running, priority, tied_nodes(placement, assumed.base), is_sampled
        )

    def take(self, number: int) -> AssumedPod | None:
        """Remove and return the pod `number`; None if it is not there."""
        address = self._address_of.pop(number, None)
        if address is None:
            return None
        pods = self.by_address[address]
        pod = pods.pop(number)
        if not pods:
            # Its view would keep an old snapshot in memory.
            del self.by_address[address]
            self._views.pop(address, None)
        return pod

    def drop(self, number: int, *, is_bound: bool) -> AssumedPod | None:
        """Remove the pod `number`. Return it if it is bound: before, it had room for its own address alone."""
        pod = self.take(number)
        return pod if is_bound else None

    def among(self, assumed: AssumedPods[int], address: str) -> AssumedPods[int]:
        """Return the pods of `assumed` and those of `address`; the next call for `address` changes them in place."""
        own = self.by_address.get(address, {})
        wanted = assumed.by_key | {key: each for key, each in own.items() if each.pod.node_name in assumed.base.rows}
        view = self._views.pop(address, None)
        if view is None:
            view = AssumedPods(assumed.base)
            if len(self._views) >= _MOST_VIEWS:
                del self._views[next(iter(self._views))]
        self._views[address] = view
        view.follow(assumed.base, [key for key, each in view.by_key.items() if wanted.get(key) is not each])
        for key, each in wanted.items():
            if key not in view.by_key:
                view.assume(key, each)
        return view


def fits(pod: AssumedPod, assumed: AssumedPods[int]) -> bool:
    """Return whether the node of `pod` has room for it beside the pods of `assumed`."""
    node = pod.pod.node_name
    return node in assumed.base.rows and assumed.has_room(node, pod.pod)

"""Admitted pods of clients that may be no API server: only reviews of the same address find their room taken."""

from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods


class UnconfirmedPods:
    """Pods by number, each with the room that it has for the reviews of its address alone. Not thread-safe.

    So a client that makes reviews up changes no verdict but its own, and the burst of an API server whose pods have not
    been seen yet is predicted like any other.
    """

    def __init__(self) -> None:
        self.address_of: dict[int, str] = {}
        self.by_address: dict[str, dict[int, AssumedPod]] = {}

    def __contains__(self, number: int) -> bool:
        return number in self.address_of

    def put(self, number: int, address: str, pod: AssumedPod) -> None:
        """Add the pod `number`, which was admitted for the client at `address`."""
        self.address_of[number] = address
        self.by_address.setdefault(address, {})[number] = pod

    def discard(self, number: int) -> None:
        """Remove the pod `number` if it is there."""
        address = self.address_of.pop(number, None)
        if address is not None:
            pods = self.by_address[address]
            del pods[number]
            if not pods:
                del self.by_address[address]

    def among(self, assumed: AssumedPods[int], address: str) -> AssumedPods[int]:
        """Return a copy of `assumed` with the pods of `address`."""
        own = self.by_address.get(address, {})
        shown = {number: each for number, each in own.items() if each.pod.node_name in assumed.base.rows}
        return AssumedPods(assumed.base, {**assumed.by_key, **shown})

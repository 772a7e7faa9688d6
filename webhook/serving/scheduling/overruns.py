"""Work beyond one time slice of the event loop: whose reviews go to the worker thread at once, the small ones, too."""

from webhook.serving.scheduling.fair_queue import UsageTracker, flows

TIME_SLICE_SECONDS = 0.01
"""The time of a review in the event loop. A cold placement takes 0.3 to 3 ms at 5,000 to 15,000 nodes."""

# That of an address with recent overruns. Most cold placements still end in it.
_SHORT_SLICE_SECONDS = 0.003
_FEW_OVERRUNS_SECONDS = 2 * TIME_SLICE_SECONDS

# Flows, and addresses, with more recent overruns than this go to the worker.
_MOST_OF_FLOWS_SECONDS = 0.05
_MOST_OF_AN_ADDRESS_SECONDS = 0.1
# What an address regains with a review: one overrun in ten reviews is no reason to suspect it.
_REGAINED_SECONDS = 0.1 * TIME_SLICE_SECONDS


class Overruns(UsageTracker):
    """The recent overruns by flow, and by address. Normal reviews cause none.

    A client that is no API server can send each costly review under another name, so that its flows never exceed their
    share. Then its address does. An API server has reviews of many users: a user who causes overruns soon exceeds the
    share of the user's own flows, and small reviews of other users offset the first overruns.
    """

    def exceeding(self, body: bytes, address: str, *, regains: bool) -> tuple[bytes, ...]:
        """Return the flows of the review in `body` if they exceed their share; with the address if that does.

        If the review `regains`, it takes a part of the overruns from its address.
        """
        if not self.used:
            return ()
        own, of_address = flows(body), (_flow_of(address),)
        if self.used_seconds(own) > _MOST_OF_FLOWS_SECONDS:
            return own
        used_seconds = self.used_seconds(of_address)
        if used_seconds > _MOST_OF_AN_ADDRESS_SECONDS:
            return own + of_address
        if used_seconds and regains:
            self.charge(of_address, -min(used_seconds, _REGAINED_SECONDS))
        return ()

    def slice_seconds(self, address: str) -> float:
        """Return the time of the next review of `address` in the event loop."""
        if self.used_seconds((_flow_of(address),)) > _FEW_OVERRUNS_SECONDS:
            return _SHORT_SLICE_SECONDS
        return TIME_SLICE_SECONDS

    def add_slice(self, body: bytes, address: str) -> None:
        """Record that a review of `address` was not decided within a time slice of the event loop."""
        self.charge((*flows(body), _flow_of(address)), TIME_SLICE_SECONDS)

    def add_work(self, charged: tuple[bytes, ...], seconds: float) -> None:
        """Record that the worker worked for `seconds` for `charged`."""
        if seconds > TIME_SLICE_SECONDS:
            self.charge(charged, seconds - TIME_SLICE_SECONDS)


def _flow_of(address: str) -> bytes:
    return b"address " + address.encode()

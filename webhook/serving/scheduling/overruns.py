"""Track work beyond one time slice of the event loop, to send all reviews of its clients to the worker thread."""

from webhook.serving.scheduling.fair_queue import UsageTracker, flows

TIME_SLICE_SECONDS = 0.01
"""The time of a review in the event loop. A cold placement takes 0.3 to 3 ms at 5,000 to 15,000 nodes."""

# That of an address with recent overruns. Most cold placements still end in it.
_SHORT_SLICE_SECONDS = 0.003
_FEW_OVERRUNS_SECONDS = 2 * TIME_SLICE_SECONDS

# Flows, and addresses, with more recent overruns than this go to the worker.
_MOST_OF_FLOWS_SECONDS = 0.05
_MOST_OF_AN_ADDRESS_SECONDS = 0.1
# An address regains it with each review: one overrun in ten reviews is no reason to suspect it.
_REGAINED_SECONDS = 0.1 * TIME_SLICE_SECONDS


class Overruns(UsageTracker):
    """The recent overruns by flow, and by address. Normal reviews cause none.

    A client other than an API server can send each expensive review under another name, so that its flows never exceed
    their share. Then its address exceeds its share. An API server sends reviews of many users. A user who causes
    overruns soon exceeds the share of the user's own flows, and small reviews of other users offset the first overruns
    of the address.
    """

    def exceeding(self, body: bytes, address: str, *, regains: bool) -> tuple[bytes, ...]:
        """Return the flows of the review in `body` if they exceed their share, with the address if it exceeds its own.

        With `regains`, a review that exceeds no share reduces the overruns of its address.
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
        """Return the time slice in the event loop for the next review of `address`."""
        if self.used_seconds((_flow_of(address),)) > _FEW_OVERRUNS_SECONDS:
            return _SHORT_SLICE_SECONDS
        return TIME_SLICE_SECONDS

    def add_slice(self, body: bytes, address: str) -> None:
        """Record that a review of `address` was not decided within a time slice of the event loop."""
        self.charge((*flows(body), _flow_of(address)), TIME_SLICE_SECONDS)

    def add_work(self, charged: tuple[bytes, ...], seconds: float) -> None:
        """Charge the flows `charged` with `seconds` of work in the worker."""
        if seconds > TIME_SLICE_SECONDS:
            self.charge(charged, seconds - TIME_SLICE_SECONDS)


def _flow_of(address: str) -> bytes:
    return b"address " + address.encode()

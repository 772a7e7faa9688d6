"""What is kept of a pod that waits."""

from dataclasses import dataclass
from hashlib import blake2b

from webhook.cluster.pending_pods import PendingPod
from webhook.placement.waiting_pods import WaitingPod
from webhook.serving.placing_queue import QueueOrder


@dataclass(slots=True)
class WaitingEntry:
    """A pod that waits: known from its admission (`pod`) or seen in the cluster (`pending`).

    `is_too_expensive`: the scorer did not place it in time.
    """

    order: QueueOrder
    digest: bytes
    pod: WaitingPod | None
    pending: PendingPod | None = None
    is_too_expensive: bool = False


def digest_of(content: bytes) -> bytes:
    """Return a short value that is equal for equal contents."""
    return blake2b(content, digest_size=16).digest()

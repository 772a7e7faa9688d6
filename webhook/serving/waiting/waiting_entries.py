"""The table of the pods that wait, which is bounded and shared fairly by namespaces."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from webhook.cluster.pods.pending_pods import PendingPod, content_digest
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.pod.pod_info import has_volumes
from webhook.placement.waiting.pending_placement import WaitingPod, read_waiting
from webhook.runtime.byte_cache import ByteCache
from webhook.serving.waiting.placing_queue import QueueOrder

# The number of pods that can have room. Each takes a few KiB and a millisecond to place.
MOST_WAITING = 5_000

_READ_BYTES = 4 * 1024 * 1024

# It sorts after every creationTimestamp.
_NOT_CREATED_YET = "~"


class PodKind(NamedTuple):
    """All that the placement of a pod depends on, but for its name."""

    namespace: str
    minus_priority: int
    digest: bytes


@dataclass(slots=True)
class Entry:
    """A pod that waits: known from its admission (`pod`), or seen in the cluster (`pending`).

    `is_too_expensive`: the scorer did not place it in time. `gang` is set if its scheduler starts `least` pods of
    the gang together.
    """

    namespace: str
    order: QueueOrder
    digest: bytes
    pod: WaitingPod | None = None
    pending: PendingPod | None = None
    is_too_expensive: bool = False
    gang: GangKey | None = None
    least: int = 1

    @property
    def kind(self) -> PodKind:
        """Return what is equal for pods that get the same answer on the same nodes."""
        return PodKind(self.namespace, self.order.minus_priority, self.digest)

    def see(self, pending: PendingPod) -> bool:
        """Take over the state of the pod in the cluster. Return whether a scheduler would see another pod."""
        before, self.digest = self.digest, content_digest(pending.content)
        self.pod, self.pending = None, pending
        self.order = QueueOrder(-pending.priority, pending.created, self.order.number)
        self.is_too_expensive = self.is_too_expensive and self.digest == before
        return self.digest != before


class Entries:
    """The entries by number. `is_incomplete`: pods in the cluster were left out because the table was full.

    `held` are the gangs that do not start, so that none of their pods has room.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.is_incomplete = False
        self.held: set[GangKey] = set()
        self._most = most
        self._last = 0
        self._entries: dict[int, Entry] = {}
        self._numbers_of: dict[str, dict[int, None]] = {}
        self._members: dict[GangKey, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, number: int) -> bool:
        return number in self._entries

    def __getitem__(self, number: int) -> Entry:
        return self._entries[number]

    @property
    def is_half_empty(self) -> bool:
        """Return whether there is much room for pods that were left out."""
        return 2 * len(self._entries) < self._most

    def admit(self, namespace: str, priority: int, digest: bytes, pod: WaitingPod) -> Entry:
        """Add and return `pod`, which is known from its admission."""
        return self._add(Entry(namespace, QueueOrder(-priority, _NOT_CREATED_YET, self._last + 1), digest, pod))

    def see(self, pending: PendingPod) -> int:
        """Add a pod that is seen in the cluster; return its number."""
        order = QueueOrder(-pending.priority, pending.created, self._last + 1)
        self._add(Entry(pending.identity.namespace, order, content_digest(pending.content), pending=pending))
        return order.number

    def to_make_room(self, namespace: str) -> int | None:
        """Return the pod to forget for one of `namespace`: the latest of the namespace with the most pods.

        None if there is room. It is 0, no pod, if `namespace` has the most itself: the new pod is then left out.
        """
        if len(self._entries) < self._most:
            return None
        self.is_incomplete = True
        largest = max(self._numbers_of.values(), key=len)
        return next(reversed(largest)) if len(largest) > len(self._numbers_of.get(namespace, ())) + 1 else 0

    def join(self, number: int, gang: GangKey, least: int) -> None:
        """Record that the scheduler of the pod `number` starts `least` pods of its `gang` together."""
        self._entries[number].gang, self._entries[number].least = gang, least
        self._members.setdefault(gang, {})[number] = None

    def members(self, gang: GangKey) -> Collection[int]:
        """Return the pods of `gang`."""
        return self._members.get(gang, {}).keys()

    def pop(self, number: int) -> Entry | None:
        """Remove and return the pod `number`, or None if it is not there."""
        entry = self._entries.pop(number, None)
        if entry is not None and entry.gang is not None:
            members = self._members[entry.gang]
            del members[number]
            if not members:
                del self._members[entry.gang]
                self.held.discard(entry.gang)
        if entry is not None:
            numbers = self._numbers_of[entry.namespace]
            del numbers[number]
            if not numbers:
                del self._numbers_of[entry.namespace]
        return entry

    def _add(self, entry: Entry) -> Entry:
        number = self._last = entry.order.number
        self._entries[number] = entry
        self._numbers_of.setdefault(entry.namespace, {})[number] = None
        return entry


class ReadPods:
    """The inputs of placing, which the pods of one template share. Not thread-safe."""

    def __init__(self, cache_bytes: int = _READ_BYTES) -> None:
        self._cache: ByteCache[tuple[str, bytes], WaitingPod] = ByteCache(cache_bytes)

    def read(self, entry: Entry) -> WaitingPod | None:
        """Return what placing the pod of `entry` needs, or None if it cannot be read."""
        pod = entry.pod or self._cache.get((entry.namespace, entry.digest))
        if pod is None and entry.pending is not None and (pod := read_waiting(entry.pending)) is not None:
            self.keep(entry, pod)
        return pod

    def keep(self, entry: Entry, pod: WaitingPod) -> None:
        """Keep what placing the pod of `entry` needs."""
        key = entry.namespace, entry.digest
        # The claims of a pod's own volumes have its name; all else is the same for pods with equal content.
        if self._cache.get(key) is not pod and not has_volumes(pod.signature.info):
            self._cache.put(key, pod, 2 * pod.signature.size_bytes)

"""The table of the waiting pods. It is bounded and shared fairly by namespaces.

At admission, a pod has no UID, and often no name because the API server generates it later. The volume of its service
account token has a random name, which identifies the pod. Without this volume, pods of one controller are matched in
their order.

A client other than an API server can send reviews of invented pods, and this cannot be detected unless client
certificates are required. So pods that are not seen in the cluster expire soon, and are the first to be removed if the
table is full.
"""

from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from webhook.cluster.pods.pending_pods import PendingPod, content_digest
from webhook.kube.pod.gang_key import GangKey
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.placement.waiting.pending_placement import WaitingPod

H = TypeVar("H", bound=Hashable)

# The number of pods that can have room. Each takes a few KiB and a millisecond to place.
MOST_WAITING = 5_000
# The memory of the pods that are not seen, 3,072 at most. A pod is seen within milliseconds, so there are few of them
# unless none is ever created.
BUDGET_BYTES = 24 * 1024 * 1024
# With a live view, a pod that is not seen after this time was refused after the webhook, or was made up. The watch
# shows a pod within milliseconds.
UNSEEN_SECONDS = 5.0
# A second's pods of a fast client. More of a namespace are seen late, never created, or refused by a quota: a namespace
# must not take the room of others with pods that do not exist.
MOST_OF_A_NAMESPACE = 250

# It sorts after every creationTimestamp.
_NOT_CREATED_YET = "~"
# The fixed memory of a pod that is not seen, and that of a label key that no other pod has.
_POD_BYTES = 8192
_LABEL_BYTES = 1024


class QueueOrder(NamedTuple):
    """The place of a pod in kube-scheduler's queue: the highest priority first, then the earliest.

    `created` is a creationTimestamp, which has whole seconds; `number` counts the pods in the order of their arrival.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort/priority_sort.go
    """

    minus_priority: int
    created: str
    number: int


@dataclass(slots=True)
class TableEntry:
    """A waiting pod: only known from its admission (`pod`), or seen in the cluster (`pending`).

    Until the pod is seen, it is found by `key`, expires at `until_seconds`, and takes `size_bytes` in addition to the
    signature of `pod`. `is_too_expensive` is true if the scorer did not place it in time. `gang` is set if its
    scheduler starts `least` pods of the gang together.
    """

    namespace: str
    order: QueueOrder
    digest: bytes
    pod: WaitingPod | None = None
    pending: PendingPod | None = None
    key: Hashable = None
    until_seconds: float = 0.0
    size_bytes: int = 0
    is_too_expensive: bool = False
    gang: GangKey | None = None
    least: int = 1

    @property
    def kind(self) -> Hashable:
        """Return everything that the placement of the pod depends on, except its name."""
        return self.namespace, self.order.minus_priority, self.digest


class PodTable(dict[int, TableEntry]):
    """The waiting pods by number. `seen` are the numbers of pods seen in the cluster, by namespace and name.

    `is_incomplete` is true if pods in the cluster were left out because the table was full. `held` are the gangs that
    cannot start, so that none of their pods has room. Not thread-safe.
    """

    def __init__(self, most: int = MOST_WAITING, budget_bytes: int = BUDGET_BYTES) -> None:
        super().__init__()
        self.is_incomplete = False
        self.held: set[GangKey] = set()
        self._most, self._budget_bytes = most, budget_bytes
        self._last = self._unseen_bytes = 0
        self._numbers_of: dict[str, dict[int, None]] = {}
        self._members: dict[GangKey, dict[int, None]] = {}
        self.seen: dict[tuple[str, str], int] = {}
        # The others, in the order in which they are given up.
        self.unseen: OrderedDict[int, TableEntry] = OrderedDict()
        self._unseen_by_key: dict[Hashable, list[int]] = {}
        self._unseen_of: Counter[str] = Counter()
        # By the identity of what placing them needs, which the unseen pods of one template share.
        self._sharing: Counter[int] = Counter()

    def has_place(self, namespace: str) -> bool:
        """Return whether another pod of `namespace` may be admitted before it is seen."""
        return self._unseen_of[namespace] < MOST_OF_A_NAMESPACE

    def admit(self, identity: PodIdentity, priority: int, digest: bytes, pod: WaitingPod, until_seconds: float) -> int:
        """Add `pod`, known by its admission, and return its number. `until_seconds` must not decrease."""
        namespace, key = identity.namespace, identity.keys[0]
        size_bytes = _POD_BYTES + _LABEL_BYTES * len(pod.running.labels)
        order = QueueOrder(-priority, _NOT_CREATED_YET, self._last + 1)
        entry = TableEntry(namespace, order, digest, pod, None, key, until_seconds, size_bytes)
        number = self._add(entry)
        self.unseen[number] = entry
        self._unseen_by_key.setdefault(key, []).append(number)
        self._unseen_of[namespace] += 1
        self._sharing[id(pod)] = sharing = self._sharing[id(pod)] + 1
        self._unseen_bytes += size_bytes + (pod.signature.size_bytes if sharing == 1 else 0)
        return number

    def see(self, number: int | None, pending: PendingPod) -> tuple[int, bool]:
        """Store the state in the cluster, `pending`, of the pod `number`. If `number` is None, add a new pod.

        Return the number of the pod, and whether the fields that a scheduler reads have changed.
        """
        digest, is_changed = content_digest(pending.content), number is None
        if number is None:
            number = self._add(TableEntry(pending.identity.namespace, QueueOrder(0, "", self._last + 1), digest))
        entry = self[number]
        is_changed = is_changed or entry.digest != digest
        self._end_unseen(number, entry)
        entry.order = QueueOrder(-pending.priority, pending.created, number)
        entry.digest, entry.pod, entry.pending = digest, None, pending
        entry.is_too_expensive = entry.is_too_expensive and not is_changed
        self.seen[pending.key] = number
        return number, is_changed

    def find(self, identity: PodIdentity) -> int | None:
        """Return the number of the pod with `identity`, the first of several unseen ones, or None."""
        number = self.seen.get(identity[:2])
        if number is not None:
            return number
        return next((found[0] for key in identity.keys if (found := self._unseen_by_key.get(key))), None)

    def find_admitted(self, identity: PodIdentity) -> int | None:
        """Return the number of the unseen pod that certainly has `identity`, or None. Thread-safe."""
        if not identity.name and not identity.token_volume:
            return None
        return next(iter(self._unseen_by_key.get(identity.keys[0], ())), None)

    def given_up(self, now_seconds: float) -> int | None:
        """Return the oldest unseen pod if it has expired, or if all unseen pods exceed the memory budget, or None."""
        number, oldest = next(iter(self.unseen.items()))
        return number if oldest.until_seconds <= now_seconds or self._unseen_bytes > self._budget_bytes else None

    def to_make_room(self, namespace: str) -> int | None:
        """Return the pod to remove for a new pod of `namespace`: the latest pod of the namespace with the most pods.

        The result is None if there is room. It is 0 if `namespace` itself has the most pods; the new pod is then left
        out.
        """
        if len(self) < self._most:
            return None
        self.is_incomplete = True
        largest = max(self._numbers_of.values(), key=len)
        return next(reversed(largest)) if len(largest) > len(self._numbers_of.get(namespace, ())) + 1 else 0

    def join(self, number: int, gang: GangKey, least: int) -> None:
        """Record that the scheduler of the pod `number` starts `least` pods of its `gang` together."""
        self[number].gang, self[number].least = gang, least
        self._members.setdefault(gang, {})[number] = None

    def members(self, gang: GangKey) -> Collection[int]:
        """Return the pods of `gang`."""
        return self._members.get(gang, {}).keys()

    def remove(self, number: int) -> TableEntry | None:
        """Remove and return the pod `number`, or None if it is not there."""
        entry = self.get(number)
        if entry is None:
            return None
        del self[number]
        self._end_unseen(number, entry)
        _discard(self._numbers_of, entry.namespace, number)
        if entry.pending is not None:
            self.seen.pop(entry.pending.key, None)
        if entry.gang is not None and _discard(self._members, entry.gang, number):
            self.held.discard(entry.gang)
        return entry

    def _add(self, entry: TableEntry) -> int:
        number = self._last = entry.order.number
        self[number] = entry
        self._numbers_of.setdefault(entry.namespace, {})[number] = None
        return number

    def _end_unseen(self, number: int, entry: TableEntry) -> None:
        if self.unseen.pop(number, None) is not None and entry.pod is not None:
            self._unseen_by_key[entry.key].remove(number)
            if not self._unseen_by_key[entry.key]:
                del self._unseen_by_key[entry.key]
            self._unseen_of[entry.namespace] -= 1
            if not self._unseen_of[entry.namespace]:
                del self._unseen_of[entry.namespace]
            self._sharing[id(entry.pod)] -= 1
            self._unseen_bytes -= entry.size_bytes
            if not self._sharing[id(entry.pod)]:
                del self._sharing[id(entry.pod)]
                self._unseen_bytes -= entry.pod.signature.size_bytes


def _discard(numbers: dict[H, dict[int, None]], key: H, number: int) -> bool:
    """Remove `number` from the numbers of `key`. Return whether it was the last one."""
    of_key = numbers[key]
    del of_key[number]
    if not of_key:
        del numbers[key]
    return not of_key

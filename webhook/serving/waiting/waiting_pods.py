"""The pods that wait, admitted here or seen in the cluster, and the room that is reserved for them.

    admitted here --seen pending--> pending --bound, deleted, gated or unschedulable--> gone
         |                             ^
         +--bound, or not seen         +-- admitted by another replica, or bypassed
            in time--> gone

A pod keeps its room while its node has it. If a pod does not get the node of its room, because kube-scheduler picks one
of equal score at random, the pods after it are placed again. That is not done after a pod that fits so many nodes that
kube-scheduler scores only a part of them, nor for such a pod.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from webhook.backends.references import GangRequest
from webhook.cluster.pods.pending_pods import PendingPod, PodKey, pending_changes
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.gang_key import GANG, gangs_of
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.stored_pod import Binding
from webhook.placement.reasons.cluster_warnings import is_absent
from webhook.placement.scorer import Scorer
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import assume
from webhook.serving.decisions.rendering import Candidate
from webhook.serving.waiting.admitted_pods import AdmittedPods
from webhook.serving.waiting.placing import Placing
from webhook.serving.waiting.placing_queue import QueueOrder
from webhook.serving.waiting.waiting_entries import MOST_WAITING, Entries

# After so much time no further pod is placed: before one admission, and in the background.
_SLICE_SECONDS = 0.003
_BACKGROUND_SECONDS = 0.01
# Where kube-scheduler samples nodes, most pods are bound elsewhere, so placing all others again predicts little.
_SAMPLED_BACKGROUND_SECONDS = 0.002
# Placing more pods again than these would delay admissions, so that is done in the background.
_MOST_PLACED_AGAIN = 200
# Pods without room are placed again after a change of the cluster, at most this often.
_RETRY_SECONDS = 2.0
# The content of a pod is decoded for its gang only if it names one.
_GANG = GANG.encode()
_BEFORE_ALL = QueueOrder(-(2**31), "", 0)


class WaitingPods:
    """Keeps the assumed pods on the current snapshot. Not thread-safe.

    A pod that is known only from its admission has room for `admitted_seconds()`, and for `unseen_seconds` at most.
    The clocks return seconds; `cpu_seconds` is the CPU time of the thread. `is_absent` returns whether a snapshot has
    no sign of a scheduler, `gang_of` the gang that a stored pod asks for.
    """

    def __init__(
        self,
        scorer: Scorer,
        admitted_seconds: Callable[[], float],
        monotonic_seconds: Callable[[], float],
        cpu_seconds: Callable[[], float],
        is_absent: Callable[[str, Snapshot], bool] = is_absent,
        *,
        unseen_seconds: float = math.inf,
        gang_of: Callable[[Mapping[str, Any], Snapshot], GangRequest | None] = lambda *_: None,
    ) -> None:
        self._admitted_seconds, self._monotonic_seconds = admitted_seconds, monotonic_seconds
        self._unseen_seconds, self._gang_of = unseen_seconds, gang_of
        self._admitted = AdmittedPods()
        self.find_admitted, self.reserves = self._admitted.find_same, self._admitted.has_place
        self._entries, self._number_of = Entries(), dict[PodKey, int]()
        self._pending: Mapping[PodKey, PendingPod] = {}
        self._bound: list[Binding] = []
        self._placing = Placing(self._entries, scorer, monotonic_seconds, cpu_seconds, is_absent)
        self._queues = self._placing.queues
        self._retry_at_seconds = self._abandon_at_seconds = 0.0
        self._assumed = self._placing.assumed
        # The pods that lose their place with the next change of `_assumed`.
        self._gone: list[int] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def reserved(self) -> int:
        """Return the number of pods with room."""
        return len(self._assumed)

    def on(self, snapshot: Snapshot) -> AssumedPods[int]:
        """Return the assumed pods on `snapshot`, or on a later one that is known already.

        Pods that have not been placed yet are placed first, for a few milliseconds.
        """
        self._follow(snapshot)
        if self._placing.outdated_after is not None:
            self._placing.place_again(_SLICE_SECONDS, _MOST_PLACED_AGAIN)
        if self._queues.ready and not self._assumed.is_mostly_sampled:
            self._placing.place(self._queues.ready, _SLICE_SECONDS)
        return self._assumed

    def settle(self, snapshot: Snapshot) -> None:
        """Place pods in the background, so that admissions need not wait for it."""
        self._follow(snapshot)
        self._placing.place_again(_BACKGROUND_SECONDS, MOST_WAITING)
        seconds = _SAMPLED_BACKGROUND_SECONDS if self._assumed.is_mostly_sampled else _BACKGROUND_SECONDS
        self._placing.place(self._queues.ready or self._queues.retries, seconds)

    def admit(self, identity: PodIdentity, candidate: Candidate) -> None:
        """Reserve room for a pod that has been admitted, and is not seen yet."""
        if PodKey(identity.namespace, identity.name) in self._number_of:
            return
        # The API server calls again if another webhook changed the pod.
        self._drop((self._admitted.take_same(identity),))
        pod, placement = candidate.pod, candidate.placement
        priority = self._assumed.priority_of(pod.preemption)
        if not self._admitted.has_place(identity.namespace) or not self._has_place(identity.namespace):
            return
        now_seconds = self._monotonic_seconds()
        entry = self._entries.admit(identity.namespace, priority, candidate.digest, pod)
        number = entry.order.number
        self._placing.read_pods.keep(entry, pod)
        until_seconds = now_seconds + min(self._admitted_seconds(), self._unseen_seconds)
        self._admitted.add(number, identity, until_seconds, candidate.size_bytes)
        self._give_up(now_seconds)
        self._forget_gone()
        if number not in self._entries:
            return
        if (name := pod.running.scheduler) not in self._placing.present and self._placing.is_abandoned(name):
            self._queues.leave_without_room(number)
            return
        gang = pod.running.gangs[0] if candidate.least > 1 and pod.running.gangs else None
        if gang is not None:
            self._entries.join(number, gang, candidate.least)
        if placement.verdict != "Feasible":
            self._placing.hold_gang(number)
        elif self._assumed.has_room(placement.node or "", pod.running):
            self._placing.put(assume(number, pod, placement, self._assumed))
            if gang in self._entries.held:
                self._placing.resume_gang(gang)
        else:
            self._placing.put((number,))

    def withdraw(self, identity: PodIdentity, assumed: AssumedPods[int]) -> bool:
        """Take back the room of a pod that is admitted again, unless `assumed` is a copy; return whether it is not."""
        if assumed is not self._assumed:
            return False
        self._drop((self._admitted.take_same(identity),))
        self._forget_gone()
        return True

    def place_all_again(self) -> None:
        """Place the pods again before the next admissions: the scorer has changed."""
        self._placing.outdated_after, self._retry_at_seconds = _BEFORE_ALL, 0.0

    def note_bound(self, pod: Binding) -> None:
        """Record that a pod is bound, so that it does not wait on the next snapshot."""
        if self._entries:
            self._bound.append(pod)

    def _follow(self, snapshot: Snapshot) -> None:
        """Take over a later state of the cluster."""
        now_seconds = self._monotonic_seconds()
        self._give_up(now_seconds)
        before = self._assumed.base
        if snapshot is before or snapshot.generation < before.generation:
            self._forget_gone()
            return
        self._drop_bound()
        if snapshot.pending is not self._pending:
            self._follow_pending(snapshot)
        gone, self._gone = self._gone, []
        self._placing.put(self._assumed.follow(snapshot, gone))
        self._placing.take_room(self._assumed.without_room_since(before))
        if now_seconds >= self._retry_at_seconds and self._queues.retry(self._placing.order_of):
            self._retry_at_seconds = now_seconds + _RETRY_SECONDS

    def _drop_bound(self) -> None:
        nodes: dict[int, str] = {}
        for identity, node, _ in self._bound:
            number = self._number_of.pop(PodKey(identity.namespace, identity.name), None)
            if number is None:
                number = self._admitted.take(identity)
            if number is not None:
                nodes[number] = node
        self._bound.clear()
        self._drop(nodes, nodes)

    def _follow_pending(self, snapshot: Snapshot) -> None:
        pending = snapshot.pending
        changed, gone = pending_changes(self._pending, pending)
        if self._entries.is_incomplete and self._entries.is_half_empty:
            # Pods that were left out have a place now; the others stay as they are.
            self._entries.is_incomplete, changed = False, [*pending.values()]
        self._drop([self._number_of.pop(key, None) for key in gone])
        self._drop([self._see(pod.key, pod, snapshot) for pod in changed])
        self._pending = pending

    def _see(self, key: PodKey, pod: PendingPod, snapshot: Snapshot) -> int | None:
        """Take over the state of a pending pod; return its number if it does not wait any more."""
        number = self._number_of.get(key)
        if number is None:
            number = self._admitted.take(pod.identity)
        if not pod.is_waiting or pod.nominated is not None:
            self._number_of.pop(key, None)
            return number
        if number is None:
            if not self._has_place(key.namespace):
                return None
            number = self._entries.see(pod)
            self._placing.put((number,))
        elif self._entries[number].see(pod):
            # Another webhook changed the pod after this one, or it was changed while it waits.
            self._gone.append(number)
            self._placing.put((number,))
        if _GANG in pod.content and self._entries[number].gang is None:
            self._join(number, pod, snapshot)
        self._number_of[key] = number
        return None

    def _join(self, number: int, pod: PendingPod, snapshot: Snapshot) -> None:
        """Record the gang of a pod that was admitted by another replica or before a restart."""
        content = pod.object()
        request, gangs = self._gang_of(content, snapshot), gangs_of(pod.identity.namespace, content["metadata"])
        if request is not None and request.least > 1 and gangs:
            self._entries.join(number, gangs[0], request.least)

    def _has_place(self, namespace: str) -> bool:
        """Return whether a pod of `namespace` can be added, for which one of another can be forgotten."""
        number = self._entries.to_make_room(namespace)
        if number:
            pending = self._entries[number].pending
            if pending is not None:
                self._number_of.pop(pending.key, None)
            self._admitted.discard(number)
            self._drop((number,))
        return number != 0

    def _give_up(self, now_seconds: float) -> None:
        if given_up := self._admitted.take_given_up(now_seconds):
            self._drop(given_up)
        if now_seconds >= self._abandon_at_seconds:
            self._abandon_at_seconds = now_seconds + _RETRY_SECONDS
            self._forget_gone()
            self._placing.take_room_of_abandoned()

    def _drop(self, numbers: Iterable[int | None], nodes: Mapping[int, str] = MappingProxyType({})) -> None:
        """Forget pods that do not wait any more. `nodes` are those that they are bound to."""
        for number in (gone := [number for number in numbers if number is not None]):
            entry = self._entries.pop(number)
            known = self._assumed.by_key.get(number)
            predicted = known.pod.node_name if known else ""
            if entry is not None and nodes.get(number, "") != predicted and not (known and known.is_sampled):
                self._placing.outdated_after = min(self._placing.outdated_after or entry.order, entry.order)
            self._queues.leave(number)
        self._gone += gone

    def _forget_gone(self) -> None:
        if self._gone:
            gone, self._gone = self._gone, []
            self._assumed.forget(gone)

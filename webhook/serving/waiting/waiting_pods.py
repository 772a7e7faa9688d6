"""The waiting pods, admitted here or seen in the cluster, and the room that is reserved for them.

    admitted here --seen pending--> pending --bound, deleted, gated or unschedulable--> gone
         |                             ^
         +--bound, or not seen         +-- admitted by another replica, or bypassed
            in time--> gone

`queued_pods.py` assigns the room.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from webhook.admission.cluster_view import ClusterView
from webhook.backends.references import GangRequest
from webhook.cluster.pods.pending_pods import PendingPod, PodKey, pending_changes
from webhook.cluster.snapshot import Snapshot
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.pod.gang_key import GANG, gangs_of
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.stored_pod import Binding
from webhook.placement.reasons.cluster_warnings import is_absent
from webhook.placement.scorer import Scorer
from webhook.placement.waiting.pending_placement import assume
from webhook.placement.waiting.pod_table import MOST_WAITING, QueueOrder
from webhook.serving.decisions.rendering import Candidate
from webhook.serving.waiting.queued_pods import QueuedPods

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


class WaitingPods(QueuedPods):
    """The assumed pods by number on the current snapshot, and all waiting pods. Not thread-safe.

    A pod that is only known from its admission keeps its room for `admitted_seconds()`, but at most for
    `unseen_seconds`. The clocks return seconds; `cpu_seconds` is the CPU time of the thread. `is_absent` returns
    whether a snapshot has no evidence of a scheduler. `gang_of` returns the gang that a stored pod requests.
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
        super().__init__(scorer, monotonic_seconds, cpu_seconds, is_absent)
        self._gang_of, self._admitted_seconds, self._unseen_seconds = gang_of, admitted_seconds, unseen_seconds
        self.find_admitted, self.reserves = self._table.find_admitted, self._table.has_place
        self._pending: Mapping[PodKey, PendingPod] = {}
        self._bound: list[Binding] = []
        # The pods that lose their room with the next change.
        self._gone: list[int] = []
        self._retry_at_seconds = self._abandon_at_seconds = 0.0
        self._shown_in: ClusterView | None = None

    @property
    def total(self) -> int:
        """Return the number of waiting pods, with and without room."""
        return len(self._table)

    def shown_in(self, cluster: ClusterView) -> ClusterView:
        """Return `cluster` with the assumed pods, on its snapshot or a later one, after placing new pods for a few ms.

        The same view is returned until something changes.
        """
        if cluster.stale_reason or not cluster.snapshot.nodes:
            return cluster
        self._follow(cluster.snapshot)
        if self._outdated_after is not self._too_many_after:
            self._place_again(_SLICE_SECONDS, _MOST_PLACED_AGAIN)
        if self._ready and not self.is_mostly_sampled:
            self._place(self._ready, _SLICE_SECONDS)
        shown = self._shown_in
        is_known = shown is not None and shown.snapshot is self.base and shown.minute == cluster.minute
        if shown is None or not is_known or shown.scorer is not cluster.scorer:
            self._shown_in = shown = replace(cluster, snapshot=self.base, assumed=self, reserves=self.reserves)
        return shown

    def without_earlier(self, request: AdmissionRequest, cluster: ClusterView) -> ClusterView:
        """Return `cluster` without the room that an earlier admission of the same pod reserved."""
        if not cluster.assumed:
            return cluster
        number = self.find_admitted(request.identity)
        if number is None:
            return cluster
        if request.dry_run:
            return replace(cluster, assumed=cluster.assumed.without((number,)))
        if cluster.assumed is self:
            self._end_wait(number)
            self._forget_gone()
        else:
            # The worker thread has a copy of its own.
            cluster.assumed.forget((number,))
        return cluster

    def settle(self, snapshot: Snapshot) -> None:
        """Place pods in the background, so that admissions need not wait for their placement."""
        self._follow(snapshot)
        self._place_again(_BACKGROUND_SECONDS, MOST_WAITING)
        seconds = _SAMPLED_BACKGROUND_SECONDS if self.is_mostly_sampled else _BACKGROUND_SECONDS
        self._place(self._ready or self._retries, seconds)

    def admit(self, identity: PodIdentity, candidate: Candidate) -> None:
        """Reserve room for a pod that was just admitted and is not seen in the cluster yet."""
        table, namespace = self._table, identity.namespace
        if identity[:2] in table.seen:
            return
        # The API server calls again if another webhook changed the pod.
        self._end_wait(table.find_admitted(identity))
        if not table.has_place(namespace) or not self._has_place(namespace):
            return
        pod, placement = candidate.pod, candidate.placement
        now_seconds = self._monotonic_seconds()
        until_seconds = now_seconds + min(self._admitted_seconds(), self._unseen_seconds)
        priority = self.priority_of(pod.preemption)
        number = table.admit(identity, priority, candidate.digest, pod, until_seconds)
        self._keep_read(table[number], pod)
        while table.unseen and (given_up := table.given_up(now_seconds)) is not None:
            self._end_wait(given_up)
        self._forget_gone()
        if number not in table:
            return
        if self._is_abandoned(pod.running.rare.scheduler):
            self._leave_without_room(number)
            return
        gang = pod.running.gangs[0] if candidate.least > 1 and pod.running.gangs else None
        if gang is not None:
            table.join(number, gang, candidate.least)
        if placement.verdict != "Feasible":
            self._hold_gang(number)
        elif self.has_room(placement.node or "", pod.running):
            self._enqueue(assume(number, pod, placement, self))
            if gang in table.held:
                self._resume_gang(gang)
        else:
            self._enqueue((number,))

    def bound(self, pod: Binding) -> None:
        """Record that a pod is bound, so that it does not wait on the next snapshot."""
        if self._table:
            self._bound.append(pod)

    def place_all_again(self) -> None:
        """Mark all pods to be placed again before the next admissions, because the scorer has changed."""
        self._outdated_after = _BEFORE_ALL

    def _follow(self, snapshot: Snapshot) -> None:
        now_seconds, before, table = self._monotonic_seconds(), self.base, self._table
        while table.unseen and (given_up := table.given_up(now_seconds)) is not None:
            self._end_wait(given_up)
        if now_seconds >= self._abandon_at_seconds:
            self._abandon_at_seconds = now_seconds + _RETRY_SECONDS
            self._take_room_of_abandoned()
        if snapshot is before or snapshot.generation < before.generation:
            self._forget_gone()
            return
        for pod in self._bound:
            self._end_wait(table.find(pod.identity), pod.node)
        self._bound.clear()
        if snapshot.pending is not self._pending:
            self._follow_pending(snapshot)
        gone, self._gone = self._gone, []
        self._enqueue(self.follow(snapshot, gone))
        self._take_room(self.without_room_since(before))
        if now_seconds >= self._retry_at_seconds and self._without_room and not self._retries:
            self._retry_at_seconds = now_seconds + _RETRY_SECONDS
            self._retries, self._without_room = self._without_room, set()

    def _follow_pending(self, snapshot: Snapshot) -> None:
        pending, table = snapshot.pending, self._table
        changed, gone = pending_changes(self._pending, pending)
        if table.is_incomplete and 2 * len(table) < MOST_WAITING:
            # Pods that were left out have a place now; the others stay as they are.
            table.is_incomplete, changed = False, [*pending.values()]
        for key in gone:
            self._end_wait(table.seen.get(key))
        for pod in changed:
            self._see(pod, snapshot)
        self._pending = pending

    def _see(self, pod: PendingPod, snapshot: Snapshot) -> None:
        number = self._table.find(pod.identity)
        if not pod.is_waiting or pod.nominated is not None:
            self._end_wait(number)
            return
        if number is None and not self._has_place(pod.key.namespace):
            return
        number, is_changed = self._table.see(number, pod)
        if is_changed:
            # It is new, another webhook changed it after this one, or it was changed while it waits.
            self._gone.append(number)
            self._enqueue((number,))
        if _GANG in pod.content and self._table[number].gang is None:
            # It was admitted by another replica or before a restart.
            content = pod.object()
            request, gangs = self._gang_of(content, snapshot), gangs_of(pod.identity.namespace, content["metadata"])
            if request is not None and request.least > 1 and gangs:
                self._table.join(number, gangs[0], request.least)

    def _has_place(self, namespace: str) -> bool:
        """Return whether a pod of `namespace` can be added."""
        number = self._table.to_make_room(namespace)
        if number:
            self._end_wait(number)
        return number != 0

    def _take_room_of_abandoned(self) -> None:
        self._forget_gone()
        self._present.clear()
        schedulers = {each.pod.rare.scheduler for each in self.by_key.values()}
        if gone := {name for name in schedulers if self._is_abandoned(name)}:
            self._take_room([number for number, each in self.by_key.items() if each.pod.rare.scheduler in gone])

    def _end_wait(self, number: int | None, node: str = "") -> None:
        """Forget the pod `number`, if it is known, because it no longer waits."""
        if number is None or (entry := self._table.remove(number)) is None:
            return
        known = self.by_key.get(number)
        predicted = known.pod.node_name if known else ""
        if node != predicted and not (known and known.is_sampled):
            self._outdated_after = min(self._outdated_after or entry.order, entry.order)
        self._leave(number)
        self._gone.append(number)

    def _forget_gone(self) -> None:
        if self._gone:
            gone, self._gone = self._gone, []
            self.forget(gone)

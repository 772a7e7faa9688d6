"""Place waiting pods in the order of kube-scheduler's queue, and reserve their room."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.pending_pods import PendingPod, PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput
from webhook.kube.deadline import DeadlineNearError, Expired, never
from webhook.kube.names import DEFAULT_SCHEDULER, KUEUE_POD_SET
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.kube.pod.gang_key import gangs_of, workload_of
from webhook.kube.pod.rare_facts import RareFacts, usual_of
from webhook.placement.framework.result import Placement
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.pod.preemption import Preemption
from webhook.placement.reasons.cluster_warnings import is_absent
from webhook.placement.scorer import PodSignature, Scorer
from webhook.placement.waiting.assumed_pods import (
    MOST_SCORED_NODES,
    AssumedPod,
    AssumedPods,
    K,
    chosen_node,
    tied_nodes,
    with_ties,
)
from webhook.policy.spec.schedulers import BUILT_IN_SCHEDULERS, SchedulerSettings

# The reason of a pod that waits for others, by their number.
ONE_WAITS = "1 pod that waits before it needs"
MANY_WAIT = "{} pods that wait before it need"


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """The inputs to place a pod: its signature, and its facts as a running pod."""

    signature: PodSignature
    running: RunningPod

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "WaitingPod":
        """Return the facts of `pod`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        return cls(PodSignature.of(pod), RunningPod.of(pod))

    def with_info(self, info: PodInfo) -> "WaitingPod":
        """Return the pod with another `info`, such as one that requests less."""
        running, own = running_pod(info, {}), self.running
        running = running._replace(name=own.name, gangs=own.gangs, rare=own.rare)
        return WaitingPod(replace(self.signature, info=info), running)

    @property
    def preemption(self) -> Preemption:
        """Return the priority, or the class from which it follows."""
        return self.signature.info.preemption


def running_pod(info: PodInfo, metadata: Mapping[str, Any]) -> RunningPod:
    """Return the facts of a new pod with `info` and `metadata` as a running pod, without its node."""
    scoring = dict(info.scoring_requests)
    if info.container_requests is not None:
        # Those of a running pod include the pod-level resources.
        scoring |= {name: amount for name, amount in info.requests if name in (CPU, MEMORY)}
    scheduler, inter_pod = info.nomination.scheduler_name, info.inter_pod
    scheduler = "" if scheduler == DEFAULT_SCHEDULER else scheduler
    labels = dict(inter_pod.labels)
    workload = workload_of(metadata) if KUEUE_POD_SET in labels else ""
    rare = usual_of(scheduler)
    if info.host_ports or workload:
        rare = RareFacts(host_ports=info.host_ports, scheduler=scheduler, workload=workload)
    return RunningPod(
        namespace=inter_pod.namespace,
        name=metadata.get("name") or "",
        labels=labels,
        is_terminating=metadata.get("deletionTimestamp") is not None,
        node_name="",
        requests=dict(info.requests),
        non_zero=(scoring.get(CPU, 0), scoring.get(MEMORY, 0)),
        terms=inter_pod.terms,
        priority=info.preemption.priority or 0,
        volumes=info.volumes,
        gangs=gangs_of(inter_pod.namespace, metadata),
        rare=rare,
    )


def predict_placement(
    scorer: Scorer, asked: PodSignature, assumed: AssumedPods[Any], seed: str | None, expired: Expired
) -> Placement:
    """Return the placement of a new pod with the signature `asked` after the pods that wait before it.

    If it has no room only because of these pods, the verdict is Waiting and the message has their number. `seed`
    selects one of the nodes with equal scores; None selects the first by name.
    """
    priority = assumed.priority_of(asked.info.preemption)
    snapshot = assumed.before(priority)
    placement = scorer.answer(asked, snapshot, expired)
    if placement.verdict != "Feasible":
        return predict_after_waiting(scorer, asked, placement, assumed, expired)
    node = placement.node if seed is None else chosen_node(placement, snapshot, seed)
    if reserved := assumed.count_before(priority):
        return placement.on(node, reserved, _possible_nodes(scorer, asked, placement, assumed, expired))
    return placement if node == placement.node else placement.on(node)


def predict_after_waiting(
    scorer: Scorer, asked: PodSignature, placement: Placement, assumed: AssumedPods[Any], expired: Expired
) -> Placement:
    """Return `placement` with the number of waiting pods before it; Waiting if it would fit without."""
    priority = assumed.priority_of(asked.info.preemption)
    reserved = assumed.count_before(priority)
    if not reserved or placement.verdict == "Unknown":
        return placement
    if placement.verdict == "Feasible":
        return placement.on(placement.node, reserved, _possible_nodes(scorer, asked, placement, assumed, expired))
    placement = replace(placement, reserved_pods=reserved)
    try:
        rows = scorer.feasible_rows(asked, assumed.base, expired)
    except DeadlineNearError:
        return replace(placement, is_final=False)
    if not len(rows):
        return placement
    # Pods on other nodes are the reason if they exclude whole domains, such as a zone, or use a claim.
    waiting = assumed.count_on(rows.tolist(), priority) or reserved
    pods = ONE_WAITS if waiting == 1 else MANY_WAIT.format(waiting)
    message = f"{placement.message.removesuffix('.')}. It would fit, but {pods} the room."
    return replace(placement, verdict="Waiting", message=message, waiting_before=waiting)


def _possible_nodes(
    scorer: Scorer, asked: PodSignature, placement: Placement, assumed: AssumedPods[Any], expired: Expired
) -> frozenset[str]:
    """Return the nodes other than the best ones that can have the best score, by the nodes of earlier pods."""
    if placement.feasible > MOST_SCORED_NODES:
        return frozenset()
    best = tied_nodes(placement, assumed.base) or frozenset((placement.node or "",))
    more = with_ties(best, assumed) - best
    if not more:
        return frozenset()
    base = assumed.base
    try:
        rows = scorer.feasible_rows(asked, base, expired)
    except DeadlineNearError:
        return frozenset()
    is_feasible = np.zeros(len(base.nodes), dtype=np.bool_)
    is_feasible[rows] = True
    return frozenset([name for name in more if name in base.rows and is_feasible.item(base.rows[name])])


def place_and_assume(
    scorer: Scorer, key: K, pod: WaitingPod, assumed: AssumedPods[K], seed: str, expired: Expired = never
) -> tuple[Placement, tuple[K, ...]]:
    """Place and assume `pod` after those before it. Return the placement and the pods that lose room."""
    placement = predict_placement(scorer, pod.signature, assumed, seed, expired)
    if placement.verdict != "Feasible" or placement.node is None:
        return placement, ()
    return placement, assume(key, pod, placement, assumed)


def assume(key: K, pod: WaitingPod, placement: Placement, assumed: AssumedPods[K]) -> tuple[K, ...]:
    """Assume `pod` where it is Feasible. Return the later pods of lower priority that lose their room there."""
    node, priority = placement.node, assumed.priority_of(pod.preemption)
    assert node is not None  # noqa: S101 - Feasible
    displaced = assumed.after_on_node(node, priority)
    if displaced:
        assumed.forget(displaced)
    tied, is_sampled = tied_nodes(placement, assumed.base), placement.feasible > MOST_SCORED_NODES
    assumed.assume(key, AssumedPod(pod.running.assumed_on(node, priority), priority, tied, is_sampled))
    return displaced


class PlacedPods(NamedTuple):
    """The placed pending pods (`assumed`), and the pods without room in the order of the queue.

    `unread` are the waiting pods that cannot be read. `abandoned` are the pods of schedulers that do not run, with the
    name of the scheduler. They take no room; otherwise a user could block all other pods with the name of a scheduler
    that does not exist.
    """

    assumed: AssumedPods[PodKey]
    without_room: tuple[PodKey, ...]
    unread: tuple[PodKey, ...]
    abandoned: Mapping[PodKey, str]


def place_pending(
    scorer: Scorer,
    snapshot: Snapshot,
    pending: Sequence[PendingPod],
    on_placed: Callable[[int], None] = lambda _: None,
    *,
    schedulers: Mapping[str, SchedulerSettings] = BUILT_IN_SCHEDULERS,
) -> PlacedPods:
    """Place the waiting pods in `pending`, each after those before it. `on_placed` gets the number of placed pods.

    Left out are pods that cannot be read, pods of a scheduler without evidence in `snapshot`, and nominated pods, whose
    room the filters already consider. `schedulers` are the settings of the policy.
    """
    read = [(pod, read_waiting(pod)) for pod in pending if pod.is_waiting and pod.nominated is None]
    names = {waiting.running.rare.scheduler for _, waiting in read if waiting is not None}
    absent = {name for name in names if is_absent(name, snapshot, schedulers)}
    found = [
        (pod, waiting) for pod, waiting in read if waiting is not None and waiting.running.rare.scheduler not in absent
    ]
    abandoned = {
        pod.key: each.running.rare.scheduler for pod, each in read if each and each.running.rare.scheduler in absent
    }
    # The sort is stable, so pods of one second stay in the order of their arrival.
    assumed: AssumedPods[PodKey] = AssumedPods(snapshot)
    without_room = []
    found.sort(key=lambda each: (-assumed.priority_of(each[1].preemption), each[0].created))
    for number, (pod, waiting) in enumerate(found, start=1):
        placement, _ = place_and_assume(scorer, pod.key, waiting, assumed, str(pod.key), never)
        if placement.verdict != "Feasible":
            without_room.append(pod.key)
        on_placed(number)
    unread = tuple(pod.key for pod, waiting in read if waiting is None)
    return PlacedPods(assumed, tuple(without_room), unread, abandoned)


def read_waiting(pod: PendingPod) -> WaitingPod | None:
    """Return the WaitingPod of `pod`, or None if it cannot be read."""
    if not pod.content:
        return None
    try:
        return WaitingPod.of(pod.object())
    except InvalidInput:
        return None

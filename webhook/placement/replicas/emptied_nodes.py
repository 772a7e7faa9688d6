"""The nodes that could take a pod if no pods were running, or once pods are gone that should have ended."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.documents.listing import plural, some
from webhook.kube.deadline import Expired, never
from webhook.placement.packing.held_cards import is_overdue
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.reasons.evictions import CARDS, time_text
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.scorer import Scorer

_MOST_NODES, _MOST_NAMED = 3, 3
_RESERVES = (
    "{} can reserve such a node for the pod until another one has room; a gang with such a node keeps free cards of "
    "other nodes from later pods of its queue"
)
_RESERVING = {"volcano": _RESERVES.format("Volcano"), "kai": _RESERVES.format("KAI before 0.15")}


def nodes_without_pods(scheduler: Scheduler, signature: PodSignature, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the nodes of `snapshot` that could take the pod if no pods were running or nominated, in order.

    Pods for which room is only reserved are kept. Pod affinity to a pod on the same node is not satisfied, because that
    pod is also gone.
    """
    empty, info = snapshot.with_reserved_pods(), signature.info.normalized_for(snapshot)
    found = scheduler.feasible_rows(signature, empty)
    affinity = next((each for each in scheduler.profile.filters if isinstance(each, InterPodAffinity)), None)
    terms = info.inter_pod.terms.required
    if affinity is not None and terms and not affinity.selects_itself(info, snapshot):
        selected = (affinity.selected_by_all(terms, each) for each in (snapshot, empty))
        running, staying = (np.bincount(each, minlength=len(snapshot.nodes)) for each in selected)
        found = found[affinity.nodes_near_others(info, snapshot, running - staying)[found]]
    return tuple(snapshot.nodes[row].node.name for row in found)


def overdue_lines(
    scorer: Scorer,
    signature: PodSignature,
    snapshot: Snapshot,
    backend: str,
    now_seconds: float,
    *,
    reader: str | None = None,
    most_nodes: int = _MOST_NODES,
    expired: Expired = never,
) -> tuple[str, ...]:
    """Return which nodes take the pod once pods are gone that should have ended, and a note on its scheduler.

    `backend` is the kind of its scheduler. `reader` is the only namespace whose pods are named; None means all.
    """
    if not snapshot.pods.is_any_terminating:
        return ()
    overdue: dict[str, list[RunningPod]] = {}
    emptied, now = [], int(now_seconds)
    for row in np.unique(snapshot.pods.rows_of(snapshot.pods.terminating())).tolist():
        info = snapshot.nodes[row]
        if pods := [pod for pod in info.pods if is_overdue(pod, now)]:
            overdue[info.node.name] = pods
            emptied.append(NodeInfo.of(info.node, [pod for pod in info.pods if not is_overdue(pod, now)]))
    if not emptied:
        return ()
    without = updated(snapshot, emptied, snapshot.generation + 1)
    rows = scorer.feasible_rows(signature, without, expired).tolist()
    names = [name for row in rows if (name := without.nodes[row].node.name) in overdue]
    shown = names[:most_nodes]
    lines = [_line(without.nodes[without.rows[name]], overdue[name], now_seconds, reader) for name in shown]
    if more := len(names) - len(lines):
        lines.append(f"and {plural(more, 'more node')} with pods that should have ended")
    return (*lines, _RESERVING[backend]) if lines and backend in _RESERVING else tuple(lines)


def _line(info: NodeInfo, pods: Sequence[RunningPod], now_seconds: float, reader: str | None) -> str:
    cards = sum(info.node.allocatable.get(name, 0) - info.requested.get(name, 0) for name in CARDS)
    free = f"{cards} cards are free" if cards > 1 else "1 card is free" if cards == 1 else "there is room"
    ago = time_text(now_seconds - max(pod.deletion_seconds for pod in pods))
    named = [f"{pod.namespace}/{pod.name}" for pod in pods if reader in (None, pod.namespace)]
    if others := len(pods) - len(named):
        named.append(f"{plural(others, 'pod')} outside this namespace")
    names = some(named, _MOST_NAMED)
    are, they = ("is", "it") if len(pods) == 1 else ("are", "they")
    return f"node {info.node.name}: {free} when {names} {are} gone: {they} should have ended {ago} ago"

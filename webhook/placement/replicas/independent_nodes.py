"""Count the pods that fit on each node, for pods that only use resources of their own node.

For such pods, the number that fits on a node does not depend on pods on other nodes, so the order in which
kube-scheduler fills the nodes does not matter.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.nominated_pods import NO_NOMINATED_PODS
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Load, Snapshot
from webhook.cluster.update import updated
from webhook.kube.deadline import Expired, never
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.placement.framework.nominated_nodes import NodesWithNominatedPods, nodes_with_nominated_pods
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE
from webhook.placement.replicas.replicas import needs_devices
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

# The largest number of pods that are counted on one node: more than a kubelet can run.
MOST_ON_A_NODE = 2**20

_READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class Filled(NamedTuple):
    """The number of added pods on each row, and the snapshot with these pods.

    `snapshot` shows the first added pod of a node as running, and only counts the others in the load. Nodes with
    nominated pods show all added pods. `is_complete` is false if a node reached the maximum that is counted.
    """

    copies: Column
    snapshot: Snapshot
    is_complete: bool


def are_nodes_independent(scheduler: Scheduler, signature: PodSignature, snapshot: Snapshot) -> bool:
    """Return whether a pod with `signature` on one node never affects whether such a pod fits on another node."""
    info = signature.info
    if needs_devices(signature, snapshot) or not _are_claims_shared_freely(signature, snapshot):
        return False
    if info.inter_pod.terms.required:
        return False
    if not all(_is_on_node(term.topology_key, snapshot) for term in info.inter_pod.terms.anti_required):
        return False
    constraints = info.inter_pod.spread or scheduler.profile.args.default_constraints
    if any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in constraints):
        return False
    # Terms of running pods exclude the same nodes beside any number of further pods. Terms of nominated pods count on
    # one node at a time.
    return not any(each.terms for nominated in snapshot.nominated.by_node.values() for each in nominated)


def _is_on_node(topology_key: str, snapshot: Snapshot) -> bool:
    codes = snapshot.labels.domains(topology_key).codes
    labelled = codes[codes >= 0]
    return len(np.unique(labelled)) == len(labelled)


def _are_claims_shared_freely(signature: PodSignature, snapshot: Snapshot) -> bool:
    """Return whether further pods can use the claims of the first pod on any node that can access the volumes."""
    volumes, claims = signature.info.volumes, snapshot.storage.claims or {}
    found = [claims.get((volumes.namespace, use.name)) for use in volumes.claims]
    return all(each is not None and each.is_bound and _READ_WRITE_ONCE_POD not in each.access_modes for each in found)


def fill(
    scheduler: Scheduler,
    signature: PodSignature,
    pod: RunningPod,
    snapshot: Snapshot,
    *,
    most: int = MOST_ON_A_NODE,
    among: Mask | None = None,
    expired: Expired = never,
) -> Filled:
    """Return the number of copies of `pod`, which has `signature`, that fit on each node of `snapshot`, up to `most`.

    `among` is a mask of the nodes to fill, or None for all. The filters run a few times for each doubling of the
    largest number. `are_nodes_independent` must be true.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, RunFilterPluginsWithNominatedPods: a node
    must pass with its nominated pods and without them
    """
    with_nominated = nodes_with_nominated_pods(signature.info, snapshot, scheduler.profile.scheduler_names, expired)
    bases = [snapshot, with_nominated.snapshot] if with_nominated else [snapshot]
    bases = [replace(base, nominated=NO_NOMINATED_PODS) for base in bases]
    fitting_one = [scheduler.feasible(signature, base, expired) for base in bases]
    one_fits = np.logical_and.reduce(fitting_one if among is None else [*fitting_one, among])
    bases = [_with_one_running(base, pod, one_fits) for base in bases]
    # One more fits beside `fitting` copies in the load, and not beside `full`.
    most -= 1
    fitting = np.full(len(snapshot.nodes), -1, dtype=np.int64)
    full = np.where(one_fits, most, 0)
    while (is_open := (full - fitting > 1) & (fitting < most - 1)).any():
        is_bounded = full < most
        probe = np.where(is_bounded, (fitting + full) // 2, np.minimum(2 * fitting + 1, most - 1))
        probe = np.where(is_open, np.maximum(probe, 0), full)
        copies = (with_copies(base, pod, probe) for base in bases)
        passes = np.logical_and.reduce([scheduler.feasible(signature, each, expired) for each in copies])
        fitting = np.where(is_open & passes, probe, fitting)
        full = np.where(is_open & ~passes, probe, full)
    filled = with_copies(_with_one_running(snapshot, pod, one_fits), pod, full)
    filled = _with_running_copies(filled, pod, full, with_nominated)
    return Filled(full + one_fits, filled, is_complete=bool((full < most).all()))


def _with_one_running(snapshot: Snapshot, pod: RunningPod, nodes: Mask) -> Snapshot:
    """Return `snapshot` with one `pod` running on each of `nodes`."""
    infos = (snapshot.nodes[row] for row in np.flatnonzero(nodes).tolist())
    added = [info.with_pods((pod._replace(node_name=info.node.name),)) for info in infos]
    return updated(snapshot, added, snapshot.generation + 1)


def with_copies(snapshot: Snapshot, pod: RunningPod, copies: Column) -> Snapshot:
    """Return `snapshot` with `copies[row]` more of `pod` in the load of each node, which already runs one copy."""
    load = snapshot.load
    requested = dict(load.requested)
    for resource, amount in pod.requests.items():
        requested[resource] = _sum(snapshot.requested(resource), copies, amount)
    non_zero = {
        CPU: _sum(load.non_zero_requested[CPU], copies, pod.non_zero[0]),
        MEMORY: _sum(load.non_zero_requested[MEMORY], copies, pod.non_zero[1]),
    }
    return replace(snapshot, load=Load(requested, non_zero, load.pods + copies, load.host_ports))


def _sum(column: Column, copies: Column, amount: int) -> Column:
    """Return `column` with `copies` times `amount`, at most LARGEST_AMOUNT."""
    amount = min(amount, LARGEST_AMOUNT)
    added = np.minimum(copies, LARGEST_AMOUNT // max(amount, 1)) * amount
    total: Column = np.minimum(column + added, LARGEST_AMOUNT)
    return total


def _with_running_copies(
    snapshot: Snapshot, pod: RunningPod, copies: Column, with_nominated: NodesWithNominatedPods | None
) -> Snapshot:
    """Return `snapshot` in which the nodes with nominated pods also show the copies as running pods."""
    if with_nominated is None:
        return snapshot
    nodes = list(snapshot.nodes)
    for row in np.flatnonzero(with_nominated.rows).tolist():
        nodes[row] = nodes[row].with_pods((pod,) * int(copies[row]))
    return replace(snapshot, nodes=tuple(nodes))

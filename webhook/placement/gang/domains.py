"""Count the room for a gang in each topology domain, such as a rack."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from webhook.backends.references import Within
from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.pods.nominated_pods import NO_NOMINATED_PODS
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.framework.nominated_nodes import nodes_with_nominated_pods
from webhook.placement.framework.together import Domain, Together
from webhook.placement.gang.assigned_pods import assigned_to_own
from webhook.placement.gang.empty_cluster import MOST_COUNTED, most_in_each_domain
from webhook.placement.gang.further_pods import further_pods
from webhook.placement.gang.gang_bound import by_domain, selecting_itself
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE
from webhook.placement.pod.network_limit import with_hyper_nodes
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.replicas.independent_nodes import are_nodes_independent
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.pending_placement import WaitingPod


def is_countable(scheduler: Scheduler, info: PodInfo, *, counts_all: bool) -> bool:
    """Return whether the room of one domain can be counted for pods with `info`.

    With a DoNotSchedule constraint, it can only be counted if the scheduler `counts_all` nodes for the skew, not only
    those of the domain.

    Source: k8s.io/kubernetes/pkg/scheduler/backend/cache/snapshot.go, AssumePlacement
    """
    constraints = info.inter_pod.spread or scheduler.profile.args.default_constraints
    return counts_all or all(each.when_unsatisfiable != DO_NOT_SCHEDULE for each in constraints)


def domains_together(
    scheduler: Scheduler,
    pod: WaitingPod,
    gang: GangKey,
    within: Within,
    snapshot: Snapshot,
    size: int,
    left: int,
    expired: Expired,
) -> Together:
    """Return the domains on `snapshot` for `left` more pods like `pod` of a gang of `size` that runs `within` one.

    `gang` is the gang of the pod. More than `left` pods are not always counted. A node without one of the labels is in
    no domain; an empty value is a domain.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/topologyaware/topology_placement.go, GeneratePlacements
    """
    snapshot = with_hyper_nodes(snapshot, within.key)
    codes, values = snapshot.labels.paths(within.path, within.below)
    present = np.unique(codes[codes >= 0]).tolist()
    free = _with_info(pod, without_own_affinity(pod.signature.info, within.key, snapshot))
    if are_nodes_independent(scheduler, free.signature, snapshot):
        fits = by_domain(codes, len(values), room_on_nodes(scheduler, free.signature, snapshot, expired))
    else:
        fits = np.zeros(len(values), dtype=np.int64)
        for code in in_time(present, expired):
            fits[code] = _fitting(scheduler, in_domain(free, within, values[code]), snapshot, left, expired)
    members = np.array([info.gangs.count(gang) if info.gangs else 0 for info in snapshot.nodes], dtype=np.int64)
    placed = by_domain(codes, len(values), members)
    placed = np.maximum(placed, by_domain(codes, len(values), assigned_to_own(pod, snapshot)))
    most = most_in_each_domain([(scheduler, free.signature, MOST_COUNTED)], snapshot, within, expired)
    domains = tuple(
        Domain(value, int(fits[code]), None if most is None else most[value], int(placed[code]))
        for value, code in sorted((values[code], code) for code in present)
    )
    return Together(within, size, left, domains, int((codes < 0).sum()), int(members[codes < 0].sum()))


def members_on(snapshot: Snapshot, gang: GangKey) -> int:
    """Return the number of pods of `gang` that `snapshot` shows on nodes."""
    return sum([info.gangs.count(gang) for info in snapshot.nodes if info.gangs])


def nodes_of(snapshot: Snapshot, within: Within, values: Sequence[str]) -> list[NodeInfo]:
    """Return the nodes of the domain of `within` with `values`."""
    codes, paths = snapshot.labels.paths(within.path, within.below)
    return [snapshot.nodes[row] for row in (codes == paths.index(tuple(values))).nonzero()[0].tolist()]


def in_domain(pod: WaitingPod, within: Within, values: Sequence[str]) -> WaitingPod:
    """Return `pod`, restricted to the nodes of the domain of `within` with `values`."""
    domain = *zip(within.path, values, strict=True), *((key, None) for key in within.below)
    return _with_info(pod, pod.signature.info._replace(domain=domain))


def with_first(together: Together, rows: Rows, snapshot: Snapshot) -> tuple[Together, list[int]]:
    """Return `together` for pods that follow the first of them, and the room of each domain that it can choose.

    `rows` are the nodes that kube-scheduler finds equally good for it, among which it chooses one at random.
    """
    codes, paths = snapshot.labels.paths(together.within.path, together.within.below)
    chosen = {paths[code] for code in codes[rows].tolist() if code >= 0}
    possible = [each for each in together.domains if each.path in chosen]
    room = [each.fits for each in possible]
    if min(room, default=together.missing) >= together.missing or together.occupied:
        return together, room
    return replace(together, first=tuple(each.path for each in possible)), room


def without_own_affinity(info: PodInfo, topology_key: str, snapshot: Snapshot) -> PodInfo:
    """Return `info` without the required affinity of such pods to each other over `topology_key`.

    It holds in each domain. Without such affinity, the result is `info` itself.
    """
    terms = info.inter_pod.terms
    own = [each for each in selecting_itself(terms.required, info, snapshot) if each.topology_key == topology_key]
    if not own:
        return info
    others = tuple(each for each in terms.required if each not in own)
    return info._replace(inter_pod=info.inter_pod._replace(terms=replace(terms, required=others)))


def follows_itself(info: PodInfo, topology_key: str, snapshot: Snapshot) -> bool:
    """Return whether pods with `info` must run in the domain of `topology_key` that the first of them chooses."""
    return without_own_affinity(info, topology_key, snapshot) is not info


def room_on_nodes(scheduler: Scheduler, signature: PodSignature, snapshot: Snapshot, expired: Expired) -> Column:
    """Return the pods that each node can take, as `fill` by division; `are_nodes_independent` must be true."""
    info = signature.info
    is_alone = bool(info.host_ports or next(selecting_itself(info.inter_pod.terms.anti_required, info, snapshot), None))
    with_nominated = nodes_with_nominated_pods(info, snapshot, scheduler.profile.scheduler_names, expired)
    rooms, requests = [], scheduler.profile.counted_requests(info)
    for base in [snapshot, with_nominated.snapshot] if with_nominated else [snapshot]:
        shown = replace(base, nominated=NO_NOMINATED_PODS)
        rooms.append(_room(requests, shown, scheduler.feasible(signature, shown, expired), is_alone=is_alone))
    least: Column = np.minimum.reduce(rooms)
    return least


def _room(requests: Iterable[tuple[str, int]], snapshot: Snapshot, fits_one: Mask, *, is_alone: bool) -> Column:
    room = snapshot.allowed_pods - snapshot.load.pods
    for resource, amount in requests:
        room = np.minimum(room, (snapshot.allocatable(resource) - snapshot.requested(resource)) // amount)
    # The filters have the last word on one pod: a profile can ignore resources.
    counted: Column = np.where(fits_one, room.clip(min=1, max=1 if is_alone else None), 0)
    return counted


def _with_info(pod: WaitingPod, info: PodInfo) -> WaitingPod:
    return replace(pod, signature=replace(pod.signature, info=info))


def _fitting(scheduler: Scheduler, pod: WaitingPod, snapshot: Snapshot, left: int, expired: Expired) -> int:
    first = scheduler.answer_alone(pod.signature, snapshot, expired)
    return further_pods(scheduler, pod, first, snapshot, left, expired).number

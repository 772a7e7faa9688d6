"""Place the replicas of an object one after the other, as kube-scheduler does."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.deadline import Expired, never
from webhook.kube.release import Change
from webhook.placement.framework.result import Placement
from webhook.placement.framework.volume_claims import chosen_volumes
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.scheduler import PodSignature
from webhook.placement.scorer import Scorer

# The number of replicas that are placed by default: more than a cluster has room for, on most of them.
MOST_REPLICAS = 1000


@dataclass(frozen=True, slots=True)
class Replicas:
    """The number of `asked` replicas that fit now, counted one after the other.

    `nodes` counts the replicas by node. `first` is the placement of the first replica. `stopped` is that of the first
    replica that does not fit, or None if there is none. If `is_complete` is false, the count ended early, and `placed`
    is a lower bound. `snapshot` shows the placed replicas as running. `last` is the signature of the last replica that
    was read.
    """

    asked: int
    placed: int
    nodes: Mapping[str, int]
    first: Placement
    stopped: Placement | None
    is_complete: bool
    snapshot: Snapshot = field(compare=False, repr=False)
    last: PodSignature | None = field(default=None, compare=False, repr=False)

    @property
    def placement(self) -> Placement:
        """Return the placement of the first replica that does not fit, else of the first; Unknown if cut short."""
        if self.stopped is not None or self.is_complete:
            return self.stopped or self.first
        return replace(self.first, verdict="Unknown", node=None, message=self.text)

    @property
    def text(self) -> str:
        """Return the count as text: `5 of 8 replicas fit now`."""
        noun = "replica" if self.asked == 1 else "replicas"
        least = "" if self.is_complete else "at least "
        verb = "fits" if 1 in (self.placed, self.asked) else "fit"
        return f"{least}{self.placed} of {self.asked} {noun} {verb} now"


class FillingCluster:
    """A cluster to which pods are added one after the other. `snapshot` shows them as running."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._has_given_devices = False
        self._to_provision: frozenset[str] = frozenset()

    def is_known_for(self, signature: PodSignature) -> bool:
        """Return whether `snapshot` shows everything that the placement of a pod with `signature` depends on.

        It shows neither the devices that are allocated to an added pod, nor the volume of a shared claim that must
        still be provisioned for an added pod.
        """
        if self._has_given_devices and needs_devices(signature, self.snapshot):
            return False
        return self._to_provision.isdisjoint(use.name for use in signature.info.volumes.claims)

    def add(self, signature: PodSignature, pod: RunningPod, node: str) -> None:
        """Add `pod` to `node` as a reservation, whose room does not count as free on emptied nodes."""
        snapshot = self.snapshot
        info = snapshot.nodes[snapshot.rows[node]].with_pods((pod._replace(node_name=node, is_reserved=True),))
        snapshot = updated(snapshot, (info,), snapshot.generation + 1)
        self.snapshot, provisioned = with_chosen_volumes(snapshot, signature.info, node)
        self._to_provision |= provisioned
        self._has_given_devices |= needs_devices(signature, snapshot)


def needs_devices(signature: PodSignature, snapshot: Snapshot) -> bool:
    """Return true if the pod needs devices, whose allocation to the pod a snapshot does not show."""
    has_devices = snapshot.release.has(Change.DEVICES_BACK_EXTENDED_RESOURCES)
    return bool(signature.info.device_claims) or (has_devices and snapshot.devices.back_any(signature.info.requests))


def place_replicas(
    scheduler: Scorer,
    snapshot: Snapshot,
    pods: Iterable[Mapping[str, Any]],
    asked: int,
    *,
    limit: int = MOST_REPLICAS,
    expired: Expired = never,
    read: Callable[[Mapping[str, Any]], PodSignature] = PodSignature.of,
) -> Replicas:
    """Return the number of `asked` replicas that fit, each placed after the earlier ones.

    `pods` yields at least one replica, and `read` returns the signature of one. Replicas may only differ in their
    names. The count ends at the first replica that does not fit, after `limit` replicas, or once `expired()` returns
    true. It also ends after the first replica if a snapshot cannot show its devices, or its shared volume that must
    still be provisioned. Claims that are not created yet must be in `snapshot`. `scheduler` drops its cached answers
    for other snapshots.

    Raises:
        InvalidInput: a field of a pod that is read is malformed; holds every error.
    """
    cluster = FillingCluster(snapshot)
    first: Placement | None = None
    nodes: Counter[str] = Counter()
    pod_read: Mapping[str, Any] | None = None
    known: tuple[PodSignature, RunningPod] | None = None
    stopped, is_complete = None, True
    for pod in islice(pods, max(1, min(asked, limit))):
        if known is None or pod != pod_read:
            pod_read, known = pod, (read(pod), RunningPod.of(pod))
        signature, running = known
        if not cluster.is_known_for(signature):
            break
        placement = scheduler.answer(signature, cluster.snapshot, expired)
        first = first or placement
        if placement.verdict != "Feasible" or placement.node is None:
            stopped, is_complete = placement, placement.verdict != "Unknown"
            break
        if not asked:
            # The answer is for a pod that the template could make. It takes no room from others.
            break
        nodes[placement.node] += 1
        cluster.add(signature, running, placement.node)
    if first is None:
        raise ValueError("no pod to place")
    placed = min(nodes.total(), asked)
    is_complete = is_complete and (stopped is not None or placed >= asked)
    return Replicas(asked, placed, dict(nodes), first, stopped, is_complete, cluster.snapshot, known and known[0])


def with_chosen_volumes(snapshot: Snapshot, pod: PodInfo, node: str) -> tuple[Snapshot, frozenset[str]]:
    """Return `snapshot` with the claims bound as on `node`, and the claims that stay to be provisioned."""
    if not pod.volumes.claims:
        return snapshot, frozenset()
    found = chosen_volumes(pod, snapshot, snapshot.rows[node])
    storage = snapshot.storage
    claims, volumes = dict(storage.claims or {}), dict(storage.volumes or {})
    by_class = dict(storage.volumes_by_class)
    for claim, volume in found.items():
        if volume is None:
            continue
        name = (claim.namespace, claim.name)
        claims[name] = replace(claim, volume_name=volume.name, is_bound=True)
        taken = replace(volume, claim=name, claim_uid=claim.uid, is_available=False)
        volumes[volume.name] = taken
        others = by_class[volume.storage_class]
        by_class[volume.storage_class] = tuple(taken if each.name == taken.name else each for each in others)
    if any(found.values()):
        changed = replace(storage, claims=claims, volumes=volumes, volumes_by_class=by_class)
        snapshot = replace(snapshot, storage=changed)
    return snapshot, frozenset(claim.name for claim, volume in found.items() if volume is None)

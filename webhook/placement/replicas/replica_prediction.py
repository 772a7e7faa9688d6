"""Place the replicas of an object after the pods that wait before them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic

from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.deadline import Expired, never
from webhook.placement.replicas.replicas import MOST_REPLICAS, Replicas, place_replicas
from webhook.placement.scorer import PodSignature, Scorer
from webhook.placement.waiting.assumed_pods import AssumedPods, K
from webhook.placement.waiting.pending_placement import predict_after_waiting

Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplicaPrediction(Generic[K]):
    """The replicas that fit after the snapshot `before`, and the cluster with them running (`assumed`)."""

    found: Replicas
    before: Snapshot
    assumed: AssumedPods[K]


def predict_replicas(
    scheduler: Scorer,
    assumed: AssumedPods[K],
    pods: Iterable[Pod],
    asked: int,
    *,
    limit: int = MOST_REPLICAS,
    expired: Expired = never,
    read: Callable[[Pod], PodSignature] = PodSignature.of,
) -> ReplicaPrediction[K]:
    """Return the number of `asked` replicas that fit after the pods in `assumed` that come before them.

    See `place_replicas`. If a replica has no room only because of these pods, its placement is Waiting and states their
    number.

    Raises:
        InvalidInput: a field of a pod that is read is malformed; holds every error.
    """
    left = iter(pods)
    first = next(left)
    signature = read(first)
    before = assumed.before_pod(signature.info.preemption)
    found = place_replicas(scheduler, before, chain((first,), left), asked, limit=limit, expired=expired, read=read)
    if not assumed.count_before(assumed.priority_of(signature.info.preemption)):
        return ReplicaPrediction(found, before, assumed.on(found.snapshot))
    after = assumed.on(with_replicas(assumed.base, found))
    first_placement = predict_after_waiting(scheduler, signature, found.first, assumed, expired)
    stopped = found.stopped
    if stopped is found.first:
        stopped = first_placement
    elif stopped is not None:
        stopped = predict_after_waiting(scheduler, found.last or signature, stopped, after, expired)
    return ReplicaPrediction(replace(found, first=first_placement, stopped=stopped), before, after)


def with_replicas(snapshot: Snapshot, found: Replicas) -> Snapshot:
    """Return `snapshot` with the replicas of `found` and their volumes."""
    infos = []
    for node, count in found.nodes.items():
        # The replicas were added last.
        replicas = found.snapshot.nodes[found.snapshot.rows[node]].pods[-count:]
        infos.append(snapshot.nodes[snapshot.rows[node]].with_pods(replicas))
    generation = found.snapshot.generation
    return replace(updated(snapshot, infos, generation), storage=found.snapshot.storage)

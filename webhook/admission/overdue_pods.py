"""The warnings of a pod that waits about pods that should have ended."""

from dataclasses import replace
from typing import Any

from webhook.admission.cluster_view import ClusterView
from webhook.backends.registry import backend_of
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.placement.replicas.emptied_nodes import overdue_lines
from webhook.placement.scheduler import Placement, PodSignature
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.policy.policy import Policy


def with_overdue_pods(
    placement: Placement,
    signature: PodSignature,
    policy: Policy,
    cluster: ClusterView,
    assumed: AssumedPods[Any],
    expired: Expired,
) -> Placement:
    """Return a Waiting placement with the first node that takes the pod once pods are gone that should have ended."""
    if placement.verdict != "Waiting" or cluster.scorer is None or not cluster.minute:
        return placement
    info = signature.info
    try:
        lines = overdue_lines(
            cluster.scorer,
            signature,
            assumed.before_pod(info.preemption),
            backend_of(policy.spec, info.nomination.scheduler_name).name,
            cluster.minute * 60,
            reader=info.inter_pod.namespace,
            most_nodes=1,
            expired=expired,
        )
    except DeadlineNearError:
        return replace(placement, is_final=False)
    return replace(placement, overdue=lines) if lines else placement

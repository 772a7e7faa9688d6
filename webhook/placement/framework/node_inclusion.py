"""Node affinity and taint checks that several plugins share."""

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import any_matches
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.pod.taints import NO_EXECUTE, NO_SCHEDULE, any_tolerates
from webhook.placement.pod.pod_info import PodInfo

_HARD = (NO_SCHEDULE, NO_EXECUTE)


def required_affinity_matches(pod: PodInfo, nodes: Snapshot, expired: Expired) -> Mask:
    """Return the nodes that match both the nodeSelector and the required node affinity of `pod`.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, RequiredNodeAffinity.Match
    """
    if pod.required is not None and not pod.node_selector:
        return any_matches(pod.required, nodes.labels, nodes.rows, expired)
    matching = np.ones(len(nodes.nodes), dtype=np.bool_)
    for key, value in in_time(pod.node_selector, expired):
        matching &= nodes.labels.matches(key, "In", (value,))
    if pod.required is not None:
        matching &= any_matches(pod.required, nodes.labels, nodes.rows, expired)
    return matching


def untolerated(pod: PodInfo, nodes: Snapshot) -> Mask:
    """Return the nodes with a NoSchedule or NoExecute taint that `pod` does not tolerate.

    Source: k8s.io/component-helpers/scheduling/corev1/helpers.go, FindMatchingUntoleratedTaint
    """
    rejected = nodes.taints.classes_with(
        taint for taint in nodes.taints.distinct if taint.effect in _HARD and not any_tolerates(pod.tolerations, taint)
    )
    return np.array(rejected, dtype=np.bool_).take(nodes.taints.class_of)

"""TaintToleration: a pod must tolerate the taints of its node; prefer few untolerated PreferNoSchedule taints."""

from collections.abc import Iterator

import numpy as np

from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, never
from webhook.kube.pod.taints import PREFER_NO_SCHEDULE, any_tolerates
from webhook.placement.framework.interface import MAX_NODE_SCORE, Failure, Scope, default_normalize
from webhook.placement.framework.node_inclusion import untolerated
from webhook.placement.pod.pod_info import PodInfo

ERR_REASON = "node(s) had untolerated taint(s)"


class TaintToleration:
    """Evaluate each distinct set of taints once. A cluster has few distinct sets.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go
    """

    name = "TaintToleration"
    scope = Scope.FACTS

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Iterator[Failure]:
        """Yield the nodes with a NoSchedule or NoExecute taint that `pod` does not tolerate."""
        rejected = untolerated(pod, nodes)
        if rejected.any():
            yield Failure(ERR_REASON, rejected)

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column:
        """Return a higher score for fewer PreferNoSchedule taints that `pod` does not tolerate."""
        taints = nodes.taints
        unwanted = {
            taint
            for taint in taints.distinct
            if taint.effect == PREFER_NO_SCHEDULE and not any_tolerates(pod.tolerations, taint)
        }
        if not unwanted:
            return np.full(len(rows), MAX_NODE_SCORE, dtype=np.int64)
        counts = np.array([sum(taint in unwanted for taint in each) for each in taints.classes], dtype=np.int64)
        return default_normalize(counts[taints.class_of[rows]], reverse=True)

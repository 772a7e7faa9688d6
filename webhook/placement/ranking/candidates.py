"""Filter and prioritize the candidate nodes of kube-scheduler, for the scheduler extender."""

from collections.abc import Mapping

import numpy as np

from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired
from webhook.placement.framework.scoring import run_scores
from webhook.placement.pod.preemption import Nomination
from webhook.placement.profiles.profile import Profile
from webhook.placement.reasons.diagnosis import rejections
from webhook.placement.scorer import PodSignature

MAX_PRIORITY = 10
"""The priority of the best node. Source: k8s.io/kube-scheduler/extender/v1/types.go, MaxExtenderPriority"""


def permanent_rejections(
    profile: Profile, pod: PodSignature, nodes: Snapshot, rows: Rows, expired: Expired
) -> Mapping[int, str]:
    """Return the reason of each of `rows` that could not take `pod` even if no pods were running there.

    Running pods do not count, because kube-scheduler has a newer view of them and has already filtered the nodes by it.
    If a node were rejected because of a pod that has just ended, the pending pod could not use the node for minutes.
    """
    empty = nodes.without_pods()
    info = pod.info._replace(nomination=Nomination()).normalized_for(empty)
    left = np.zeros(len(nodes.nodes), dtype=np.bool_)
    left[rows] = True
    found: dict[int, str] = {}
    for rejection in rejections(profile, info, empty, expired, ignore_transient=True):
        newly_rejected = np.flatnonzero(rejection.rejected & left)
        if len(newly_rejected):
            found.update(dict.fromkeys(newly_rejected.tolist(), rejection.reason))
            left[newly_rejected] = False
    return found


def priorities(profile: Profile, pod: PodSignature, nodes: Snapshot, rows: Rows, expired: Expired) -> Column:
    """Return the priority of each of `rows`, which are in order and not empty, by the scores of `profile`.

    Exactly one node has `MAX_PRIORITY`: the node with the best score, or the first by name of several. So the node that
    kube-scheduler will pick is known, and its room is taken for the next pod before the cluster shows this. The other
    nodes have up to `MAX_PRIORITY` - 1, in proportion to their scores.
    """
    totals = run_scores(profile.scores, pod.info.normalized_for(nodes), nodes, rows, expired).totals
    least = totals.min()
    span = max(int(totals.max() - least), 1)
    found: Column = (MAX_PRIORITY - 1) * (totals - least) // span
    found[np.argmax(totals)] = MAX_PRIORITY
    return found

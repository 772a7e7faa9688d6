"""An upper bound of the number of equal pods that a cluster without other pods can hold.

It counts what each node offers, and what the pods forbid each other: it never searches, so a cluster can hold fewer. A
gang that is larger can never start.
"""

from collections.abc import Iterator

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.pod_term import PodTerm
from webhook.cluster.snapshot import Column, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.selectors import selector_matches
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE
from webhook.placement.pod.pod_info import PodInfo


def most_on_empty_nodes(info: PodInfo, snapshot: Snapshot, feasible: Mask, expired: Expired) -> int:
    """Return a number of pods with `info` that `snapshot` cannot exceed, even without its running pods.

    `feasible` is a mask of the nodes that can take one of them without other pods. The pods must have no claims, and no
    devices but extended resources that nodes offer.

    Raises:
        DeadlineNearError: `expired()` holds.
    """
    room = _on_each_node(info, snapshot, feasible)
    bounds: list[int] = []
    for term in in_time(_selecting_itself(info.inter_pod.terms.anti_required, info, snapshot), expired):
        codes = snapshot.labels.domains(term.topology_key).codes
        has_domain = codes >= 0
        room = np.where(has_domain, room.clip(max=1), room)
        bounds.append(len(np.unique(codes[has_domain & (room > 0)])) + int(room[~has_domain].sum()))
    together = in_time(_selecting_itself(info.inter_pod.terms.required, info, snapshot), expired)
    bounds += [int(_by_domain(term.topology_key, room, snapshot).max(initial=0)) for term in together]
    for constraint in in_time(info.inter_pod.spread, expired):
        # An empty selector selects no running pods.
        # Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector
        counts = constraint.selector and selector_matches(constraint.selector, dict(info.inter_pod.labels))
        if constraint.when_unsatisfiable == DO_NOT_SCHEDULE and counts:
            domains = _by_domain(constraint.topology_key, room, snapshot)
            least = int(domains.min()) if len(domains) else 0
            bounds.append(int(domains.clip(max=least + constraint.max_skew).sum()))
    return min([int(room.sum()), *bounds])


def _on_each_node(info: PodInfo, snapshot: Snapshot, feasible: Mask) -> Column:
    """Return how many of the pods each node can hold by its resources, its number of pods and its ports."""
    room = snapshot.allowed_pods.clip(max=1) if info.host_ports else snapshot.allowed_pods
    for resource, amount in info.requests:
        room = np.minimum(room, snapshot.allocatable(resource) // max(amount, 1))
    bounded: Column = np.where(feasible, room, 0)
    return bounded


def _selecting_itself(terms: tuple[PodTerm, ...], info: PodInfo, snapshot: Snapshot) -> Iterator[PodTerm]:
    """Yield those of `terms` that select the pod itself, and so all pods like it."""
    namespace, labels = info.inter_pod.namespace, dict(info.inter_pod.labels)
    for term in terms:
        if term.matches(namespace, snapshot.namespace_labels(namespace), labels):
            yield term


def _by_domain(topology_key: str, room: Column, snapshot: Snapshot) -> Column:
    """Return the sum of `room` in each domain of `topology_key` that has any."""
    codes, size = snapshot.labels.domains(topology_key)
    labelled = codes >= 0
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, codes[labelled], room[labelled])
    return sums[sums > 0]

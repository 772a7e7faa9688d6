"""An upper bound of the number of equal pods that a cluster without other pods can hold.

The bound considers the resources of each node and the anti-affinity of the pods, without a search. So a cluster may
hold fewer pods, but a gang that exceeds the bound can never start.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from webhook.backends.references import Within
from webhook.cluster.index.labels import DomainCodes, Mask
from webhook.cluster.index.pod_term import PodTerm
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.selectors import selector_matches
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE
from webhook.placement.pod.network_limit import with_hyper_nodes
from webhook.placement.pod.pod_info import PodInfo


class Role(NamedTuple):
    """The pods of one template of an object: `asked` pods with `info`.

    `nodes` is a mask of the nodes of `snapshot` that could take one of the pods if no other pods were running.
    """

    info: PodInfo
    asked: int
    nodes: Mask
    snapshot: Snapshot


def most_on_empty_nodes(info: PodInfo, snapshot: Snapshot, feasible: Mask, expired: Expired) -> int:
    """Return an upper bound of the pods with `info` that `snapshot` can hold, even without its running pods.

    `feasible` is a mask of the nodes that can take one of the pods without other pods. The pods must have no claims,
    and no devices except extended resources that nodes offer.
    """
    room = _on_each_node(info, snapshot, feasible)
    bounds: list[int] = []
    for term in in_time(selecting_itself(info.inter_pod.terms.anti_required, info, snapshot), expired):
        codes = snapshot.labels.domains(term.topology_key).codes
        has_domain = codes >= 0
        room = np.where(has_domain, room.clip(max=1), room)
        bounds.append(len(np.unique(codes[has_domain & (room > 0)])) + int(room[~has_domain].sum()))
    together = in_time(selecting_itself(info.inter_pod.terms.required, info, snapshot), expired)
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


def most_in_domains(
    roles: Sequence[Role], snapshot: Snapshot, within: Within, expired: Expired
) -> Mapping[tuple[str, ...], int]:
    """Return the bound of `most_together` for each domain of `snapshot`, by its values of the labels of `within`.

    `()` stands for the nodes without one of the labels, if there are any.
    """
    codes, values = with_hyper_nodes(snapshot, within.key).labels.paths(within.path, within.below)
    present, named = np.unique(codes).tolist(), [*values, ()]
    (info, asked, nodes, empty), inter_pod = roles[0], roles[0].info.inter_pod
    if len(roles) == 1 and not (inter_pod.terms.anti_required or inter_pod.terms.required or inter_pod.spread):
        room = _on_each_node(info, empty, nodes)
        sums = [*by_domain(codes, len(values), room), room[codes < 0].sum()]
        return {named[code]: min(asked, int(sums[code])) for code in present}
    return {
        named[code]: most_together([each._replace(nodes=each.nodes & (codes == code)) for each in roles], expired)
        for code in in_time(present, expired)
    }


def most_together(roles: Sequence[Role], expired: Expired) -> int:
    """Return an upper bound of the pods of all `roles` together that their nodes can hold, even without running pods.

    For each resource, the pods with the largest requests of it compete for the nodes. A node holds no more of them than
    of the pods with the smallest of these requests, and all of them together request no more than the nodes offer.
    """
    most = [min(each.asked, most_on_empty_nodes(each.info, each.snapshot, each.nodes, expired)) for each in roles]
    bounds = [sum(most)]
    if len(roles) == 1:
        return bounds[0]
    requests = [dict(each.info.requests) for each in roles]
    for resource in in_time(sorted({name for each in requests for name in each}), expired):
        amounts = [each.get(resource, 0) for each in requests]
        for least in in_time(sorted({*amounts} - {0}), expired):
            sharing = [
                (amounts[place], most[place], each) for place, each in enumerate(roles) if amounts[place] >= least
            ]
            others = sum(number for amount, number in zip(amounts, most, strict=True) if amount < least)
            bounds.append(others + _most_sharing(resource, sharing))
    return min(bounds)


def _most_sharing(resource: str, sharing: Sequence[tuple[int, int, Role]]) -> int:
    """Return the bound for roles that share `resource`. `sharing` are (requested amount, bound of its pods, role)."""
    fits_one = np.maximum.reduce([_on_each_node(role.info, role.snapshot, role.nodes) for _, _, role in sharing]) > 0
    amounts = [amount for amount, _, _ in sharing]
    offered = np.maximum.reduce([role.snapshot.allocatable(resource) for _, _, role in sharing])[fits_one]
    allowed = np.maximum.reduce([role.snapshot.allowed_pods for _, _, role in sharing])[fits_one]
    # Roles can be short of different other resources, so a node can hold more of them together than of each role.
    room = np.minimum(allowed, offered // min(amounts))
    unit = math.gcd(*amounts)
    left, number = int((offered // unit * unit).sum()), 0
    for amount, most, _ in sorted(sharing, key=lambda each: each[0]):
        taken = min(most, left // amount)
        left, number = left - taken * amount, number + taken
    return min(number, int(room.sum()))


def _on_each_node(info: PodInfo, snapshot: Snapshot, feasible: Mask) -> Column:
    """Return the number of pods that each node can hold, by its resources, its maximum number of pods and its ports."""
    room = snapshot.allowed_pods.clip(max=1) if info.host_ports else snapshot.allowed_pods
    for resource, amount in info.requests:
        room = np.minimum(room, snapshot.allocatable(resource) // max(1, min(amount, LARGEST_AMOUNT)))
    bounded: Column = np.where(feasible, room, 0)
    return bounded


def selecting_itself(terms: tuple[PodTerm, ...], info: PodInfo, snapshot: Snapshot) -> Iterator[PodTerm]:
    """Yield the terms among `terms` that select the pod itself, and so all pods like it."""
    namespace, labels = info.inter_pod.namespace, dict(info.inter_pod.labels)
    for term in terms:
        if term.matches(namespace, snapshot.namespace_labels(namespace), labels):
            yield term


def _by_domain(topology_key: str, room: Column, snapshot: Snapshot) -> Column:
    """Return the sum of `room` in each domain of `topology_key` that has room."""
    codes, size = snapshot.labels.domains(topology_key)
    sums = by_domain(codes, size, room)
    return sums[sums > 0]


def by_domain(codes: DomainCodes, size: int, column: Column) -> Column:
    """Return the sum of `column` in each of `size` domains; `codes[row]` is the domain of a node, or -1."""
    labelled = codes >= 0
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, codes[labelled], column[labelled])
    return sums

"""The pods that Kueue has assigned to nodes by its topology-aware scheduling; some are not there yet."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from webhook.backends.kueue import GROUP
from webhook.cluster.batch.kueue import TopologyAssignment, Workload
from webhook.cluster.index.pod_term import NO_TERMS
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Column, Snapshot
from webhook.cluster.update import updated
from webhook.documents.text import cut
from webhook.kube.deadline import Expired, in_time
from webhook.kube.names import KUEUE_POD_SET, KUEUE_TOPOLOGY
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.kube.pod.rare_facts import RareFacts
from webhook.kube.pod.volumes import NO_VOLUMES
from webhook.placement.waiting.pending_placement import WaitingPod

_KIND = "Workload.kueue.x-k8s.io"
_LONGEST_SHOWN = 63


class Assigned(NamedTuple):
    """A snapshot that shows the assigned pods of other Workloads, and the reason why their room is not known, or ""."""

    snapshot: Snapshot
    doubt: str = ""


def with_assigned(pod: WaitingPod, snapshot: Snapshot, expired: Expired) -> Assigned:
    """Return `snapshot` for the gang of `pod` with the pods that Kueue has assigned to nodes and that are not there.

    They are not of the pod set of `pod`. Nothing is added for a gang that Kueue does not place in one domain.

    Source: sigs.k8s.io/kueue/pkg/cache/scheduler/tas_flavor.go, snapshot
    """
    workloads = snapshot.kueue.workloads
    if not workloads or KUEUE_TOPOLOGY not in pod.signature.info.topologies:
        return Assigned(snapshot)
    added, doubt = dict[int, list[RunningPod]](), ""
    if snapshot.left_out.names and snapshot.left_out.has_any(_KIND):
        doubt = "a Workload of Kueue is too large to be read"
    own = _own(pod, snapshot)
    parts = [
        (each, part)
        for each in workloads.values()
        for part in each.assigned
        if all(part is not of_own for of_own in own)
    ]
    # Most Workloads have the same levels.
    by_levels = {levels: _rows(levels, snapshot) for levels in {part.levels for _, part in parts}}
    running = Counter(
        (row, pod.namespace, pod.rare.workload, pod.labels.get(KUEUE_POD_SET))
        for row, info in in_time([*enumerate(snapshot.nodes)], expired)
        for pod in info.pods
        if pod.rare.workload
    )
    for workload, part in in_time(parts, expired):
        assigned = _running(workload, part)
        for values, number in part.domains:
            rows = by_levels[part.levels].get(values, [])
            missing = number - sum(running[row, workload.namespace, workload.name, part.pod_set] for row in rows)
            if missing > 0 and len(rows) > 1:
                doubt = doubt or f"pods of Workload {cut(workload.name, _LONGEST_SHOWN)} of Kueue have no node yet"
            elif missing > 0 and rows:
                node = snapshot.nodes[rows[0]].node
                pods = [assigned._replace(node_name=node.name)] * min(missing, node.allowed_pods)
                added.setdefault(rows[0], []).extend(pods)
    infos = [snapshot.nodes[row].with_pods(pods) for row, pods in added.items()]
    return Assigned(updated(snapshot, infos, snapshot.generation + 1) if infos else snapshot, doubt)


def assigned_to_own(pod: WaitingPod, snapshot: Snapshot) -> Column:
    """Return the number of pods that Kueue has assigned of the gang of `pod`: on the first node of each domain."""
    found = np.zeros(len(snapshot.nodes), dtype=np.int64)
    for part in _own(pod, snapshot):
        rows = _rows(part.levels, snapshot)
        for values, number in part.domains:
            found[rows.get(values, [])[:1]] += number
    return found


def _own(pod: WaitingPod, snapshot: Snapshot) -> list[TopologyAssignment]:
    """Return the assignments of the pod set of `pod`. The Workload of a group of pods has the name of the group."""
    running = pod.running
    key = running.namespace, running.rare.workload or running.labels.get(GROUP, "")
    workload = (snapshot.kueue.workloads or {}).get(key)
    pod_set = running.labels.get(KUEUE_POD_SET)
    return [each for each in workload.assigned if pod_set in (None, each.pod_set)] if workload else []


def _rows(levels: Sequence[str], snapshot: Snapshot) -> Mapping[tuple[str, ...], list[int]]:
    """Return the rows of the nodes of each domain, by its values of `levels`."""
    codes, paths = snapshot.labels.paths(levels)
    found = defaultdict[tuple[str, ...], list[int]](list)
    for row, code in enumerate(codes.tolist()):
        if code >= 0:
            found[paths[code]].append(row)
    return found


def _running(workload: Workload, part: TopologyAssignment) -> RunningPod:
    return RunningPod(
        namespace=workload.namespace,
        name="",
        labels={KUEUE_POD_SET: part.pod_set},
        is_terminating=False,
        node_name="",
        requests=part.requests,
        non_zero=(part.requests.get(CPU, 0), part.requests.get(MEMORY, 0)),
        terms=NO_TERMS,
        priority=0,
        volumes=NO_VOLUMES,
        is_reserved=True,
        rare=RareFacts(workload=workload.name),
    )

"""Measure the GPUs allocated on a real trace, by scheduler profile, with and without the packing hint.

Needs the openb trace (`openb_node_list_gpu_node.csv` and a pod list) in the folder given. The scorer of this project
places the pods, not kube-scheduler: `python -m bench.scorer.packing FOLDER`. Nodes are every 8th node of the trace,
each third of them hybrid, the others in the training pool. Pods are shuffled with a seed and arrive one by one until
they have requested as many GPUs as there are; none leaves. A fraction of a GPU is rounded up to one.
"""

import csv
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from webhook.admission.pipeline import admit
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.kube.api.admission import pod_request
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.profiles.profile import BINPACK, DEFAULT, Enabled, Profile
from webhook.placement.scheduler import Scheduler
from webhook.policy.loader import built_in_policy

Object = dict[str, Any]

_GPU = "nvidia.com/gpu"
_USAGE = "maip.mxsf.io/node.usage"
_EVERY = 8
_POLICY = built_in_policy()


class Figures(NamedTuple):
    """GPUs allocated in percent; pods placed on a hybrid node while a training node could take them; pods placed."""

    allocated: float
    drawn_away: int
    placed: int


def nodes_of(folder: Path) -> list[NodeInfo]:
    """Return every 8th node of the trace."""
    rows = list(csv.DictReader((folder / "openb_node_list_gpu_node.csv").open()))[::_EVERY]
    return [NodeInfo.of(Node.of(_node(row, number))) for number, row in enumerate(rows)]


def _node(row: dict[str, str], number: int) -> Object:
    usage = "hybrid" if number % 3 == 2 else "training"
    labels = {_USAGE: usage, "kubernetes.io/hostname": row["sn"]}
    taint = {"key": _USAGE, "value": usage, "effect": "NoSchedule"}
    amounts = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "110", _GPU: row["gpu"]}
    metadata = {"name": row["sn"], "labels": labels}
    return {"metadata": metadata, "spec": {"taints": [taint]}, "status": {"allocatable": amounts}}


def pods_of(path: Path, seed: int, hint: bool) -> Iterator[tuple[Object, int]]:
    """Yield the GPU pods of the trace in random order, as admitted, each with its number of GPUs."""
    rows = [row for row in csv.DictReader(path.open()) if int(row["num_gpu"])]
    random.Random(seed).shuffle(rows)
    for row in rows:
        gpus = int(row["num_gpu"])
        yield _admitted(row, gpus, hint), gpus


def _admitted(row: dict[str, str], gpus: int, hint: bool) -> Object:
    amounts = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", _GPU: str(gpus)}
    domain = "maip.mxsf.io"
    annotations = {
        f"{domain}/workload-type": "training",
        f"{domain}/bin-packing": "true" if hint else "false",
        f"{domain}/placement-check": "off",
    }
    container = {"name": "main", "image": "train", "resources": {"requests": amounts, "limits": amounts}}
    return admitted(
        {"metadata": {"name": row["name"], "annotations": annotations}, "spec": {"containers": [container]}}
    )


def admitted(pod: Object) -> Object:
    """Return the pod as the built-in policy patches it."""
    request = pod_request(pod, "default", name=pod["metadata"]["name"])
    verdict = admit(request, _POLICY, None)
    assert verdict.outcome == "Patched"
    return verdict.pod


class _Cluster:
    """The trace's nodes and what a scheduler has placed on them."""

    def __init__(self, folder: Path, profile: Profile) -> None:
        self.snapshot = Snapshot.of(nodes_of(folder))
        self.total = int(self.snapshot.allocatable(_GPU).sum())
        self.drawn_away = self.placed = 0
        self._scheduler = Scheduler(profile)

    @property
    def allocated(self) -> int:
        return int(self.snapshot.requested(_GPU).sum())

    def fill(self, pods: Iterator[tuple[Object, int]]) -> None:
        """Place pods until all GPUs have been requested."""
        requested = self.allocated
        while requested < self.total:
            pod, gpus = next(pods)
            requested += gpus
            self._place(pod)

    def end_half(self, seed: int) -> None:
        """Remove each running pod with a probability of one half."""
        dice = random.Random(seed)
        left = [
            NodeInfo.of(info.node, [pod for pod in info.pods if dice.random() < 0.5]) for info in self.snapshot.nodes
        ]
        self.snapshot = self.snapshot.with_nodes(left, self.snapshot.generation + 1)

    def _place(self, pod: Object) -> None:
        snapshot = self.snapshot
        placement = self._scheduler.place(pod, snapshot)
        if placement.node is None:
            return
        row = snapshot.rows[placement.node]
        if _usage(snapshot, row) == "hybrid":
            feasible = (snapshot.rows[name] for name in placement.scores)
            self.drawn_away += any(_usage(snapshot, each) == "training" for each in feasible)
        self.placed += 1
        running = RunningPod.of({**pod, "spec": {**pod["spec"], "nodeName": placement.node}})
        self.snapshot = updated(snapshot, [snapshot.nodes[row].with_pods([running])], snapshot.generation + 1)


def simulate(folder: Path, pod_list: str, seed: int, profile: Profile, hint: bool) -> list[Figures]:
    """Return the figures when all GPUs have been requested, and again after half of the pods have ended."""
    cluster = _Cluster(folder, profile)
    pods = pods_of(folder / pod_list, seed, hint)
    cluster.fill(pods)
    first = Figures(100 * cluster.allocated / cluster.total, cluster.drawn_away, cluster.placed)
    cluster.end_half(seed)
    cluster.drawn_away = cluster.placed = 0
    cluster.fill(pods)
    return [first, Figures(100 * cluster.allocated / cluster.total, cluster.drawn_away, cluster.placed)]


def _usage(snapshot: Snapshot, row: int) -> str:
    return snapshot.nodes[row].node.labels[_USAGE]


def _with_default_weight() -> Profile:
    assert BINPACK.enabled is not None
    scores = tuple((name, 2 if name == NodeAffinity.name else weight) for name, weight in BINPACK.enabled.score)
    return Profile.of("binpack", BINPACK.args, Enabled(BINPACK.enabled.pre_filter, BINPACK.enabled.filter, scores))


def main(arguments: Iterable[str]) -> None:
    """Print a table: profile, hint, and for each seed the figures."""
    folder, *lists = arguments
    profiles = {"default": DEFAULT, "binpack, NodeAffinity 2": _with_default_weight(), "binpack": BINPACK}
    for pod_list in lists or ["openb_pod_list_multigpu50.csv"]:
        for name, profile in profiles.items():
            for hint in (False, True):
                runs = [each for seed in (1, 2) for each in simulate(Path(folder), pod_list, seed, profile, hint)]
                cells = [f"{each.allocated:5.1f} % {each.drawn_away:4} of {each.placed}" for each in runs]
                print(f"{pod_list}  {name:24} {'hint' if hint else 'no hint':8} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""A cluster with a pod that waits."""

from pathlib import Path
from typing import Any

from tests.support.admission import TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import run_here

TAINT = f"{USAGE}=training:NoSchedule"
NODES = [
    make_node_object("plain", capacity={"nvidia.com/gpu": 8}),
    make_node_object("train", labels={USAGE: "training"}, taints=[TAINT], capacity={"nvidia.com/gpu": 8}),
]
LOAD = make_pod("load").node_name("train").gpu(6)
REPORT = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


def stored(pod: PodBuilder, uid: str = "u1", owner: str = "", **status: Any) -> dict[str, Any]:
    """Return `pod` as the webhook has admitted it and the API server has stored it."""
    (made,) = lines(run_here("mutate", "-f", "-", "-o", "json", stdin=as_list(pod.namespace("team-a"))).output)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": REPORT}
    made["metadata"] |= {"uid": uid, "creationTimestamp": "2026-05-01T08:00:00Z"}
    if owner:
        made["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "job", "uid": owner, "controller": True}]
    made["status"] = {"phase": "Pending", "conditions": [condition]} | status
    content: dict[str, Any] = made
    return content


def trainer(name: str, cards: int) -> PodBuilder:
    return make_pod(name).annotate(TYPE, "training").annotate("maip.mxsf.io/scheduler", "default-scheduler").gpu(cards)


EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "team-a"},
    "involvedObject": {"kind": "Pod", "name": "worker-0", "uid": "u1"},
    "type": "Warning",
    "reason": "FailedScheduling",
    "message": REPORT,
    "count": 3,
    "lastTimestamp": "2026-05-01T08:01:00Z",
}


def write(folder: Path, *objects: dict[str, Any] | PodBuilder) -> Path:
    file = folder / "cluster.json"
    file.write_text(as_list(*NODES, LOAD, *objects))
    return file


JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "team-a", "uid": "j1"},
    "spec": {"parallelism": 5, "template": trainer("x", 4).template()},
}

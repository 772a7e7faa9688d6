"""`check` of objects with several roles: a gang that never fits, and what running pods of others hold."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import DOMAIN
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

Object = dict[str, Any]


def template(cards: int, scheduler: str = "default-scheduler") -> Object:
    annotations = {f"{DOMAIN}/workload-type": "training", f"{DOMAIN}/scheduler": scheduler}
    limits = {"nvidia.com/gpu": str(cards)} if cards else {"cpu": "1"}
    containers = [{"name": "m", "image": "i", "resources": {"limits": limits}}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}


def kubeflow(kind: str, field: str, **roles: tuple[int, int]) -> Object:
    specs = {name: {"replicas": number, "template": template(cards)} for name, (number, cards) in roles.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": META, "spec": {field: specs}}


def volcano(**tasks: tuple[int, int]) -> Object:
    made = [
        {"name": name, "replicas": number, "template": template(cards, "volcano")}
        for name, (number, cards) in tasks.items()
    ]
    spec = {"schedulerName": "volcano", "tasks": made}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": META, "spec": spec}


def lws(replicas: int, size: int, cards: int, leader: int | None = None) -> Object:
    templates: Object = {"size": size, "workerTemplate": template(cards)}
    templates |= {} if leader is None else {"leaderTemplate": template(leader)}
    spec = {"replicas": replicas, "leaderWorkerTemplate": templates}
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": META, "spec": spec}


META = {"name": "j", "namespace": "ml"}
PYTORCH, MPI = "pytorchReplicaSpecs", "mpiReplicaSpecs"


def cluster_of(folder: Path, *cards: int, other: int = 0) -> Path:
    """Return a file of nodes with so many cards, where the last one runs a pod of `other` cards."""
    nodes = [
        make_node_object(f"t-{number}", labels={f"{DOMAIN}/node.usage": "training"}, capacity={"nvidia.com/gpu": each})
        for number, each in enumerate(cards, 1)
    ]
    running = [make_pod("other").gpu(other).node_name(f"t-{len(cards)}")] if other else []
    path = folder / "cluster.json"
    path.write_text(as_list(*nodes, *running))
    return path


def checked(run: Run, folder: Path, content: Object, *cards: int, other: int = 0) -> list[Object]:
    """Return the lines for `content` on such a cluster."""
    cluster = cluster_of(folder, *cards, other=other)
    return lines(run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(content)).output)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(kubeflow("PyTorchJob", PYTORCH, Master=(1, 8), Worker=(2, 8)), id="PyTorchJob"),
        pytest.param(kubeflow("TFJob", "tfReplicaSpecs", Chief=(1, 8), PS=(1, 8), Worker=(1, 8)), id="three roles"),
        pytest.param(kubeflow("PyTorchJob", PYTORCH, Master=(1, 0), Worker=(3, 8)), id="a master without cards"),
        pytest.param(kubeflow("PyTorchJob", PYTORCH, Master=(1, 4), Worker=(2, 8)), id="a smaller master"),
        pytest.param(kubeflow("MPIJob", MPI, Launcher=(1, 0), Worker=(3, 8)), id="MPIJob"),
        pytest.param(volcano(m=(1, 8), w=(2, 8)), id="Volcano Job"),
        pytest.param(volcano(m=(2, 5), w=(1, 5)), id="more than half a node each"),
        pytest.param(lws(1, 3, 8), id="LeaderWorkerSet"),
        pytest.param(lws(2, 3, 8), id="LeaderWorkerSet with two groups"),
        pytest.param(lws(1, 3, 8, leader=8), id="LeaderWorkerSet with a leader of its own"),
        pytest.param(kubeflow("PyTorchJob", PYTORCH, Master=(1, 1), Worker=(2, 16)), id="only the workers too large"),
        pytest.param(kubeflow("PyTorchJob", PYTORCH, Master=(1, 16), Worker=(2, 1)), id="only the master too large"),
        pytest.param(kubeflow("MPIJob", MPI, Launcher=(1, 0), Worker=(2, 16)), id="MPIJob of large workers"),
        pytest.param(volcano(m=(1, 1), w=(2, 16)), id="Volcano Job of large workers"),
        pytest.param(lws(1, 3, 16, leader=1), id="LeaderWorkerSet of large workers"),
        pytest.param(lws(4, 3, 16, leader=1), id="more leaders than a group has pods"),
    ],
)
def test_job_that_an_empty_cluster_could_never_hold_is_infeasible(run: Run, tmp_path: Path, content: Object) -> None:
    found = checked(run, tmp_path, content, 8, 8)

    assert len(found) > 1
    for line in found:
        assert (line["verdict"], line["node"]) == ("Infeasible", None)
        assert [each for each in line["suggestions"] if "freed" in each] == []


@pytest.mark.parametrize(
    "content",
    [
        kubeflow("PyTorchJob", PYTORCH, Master=(1, 8), Worker=(1, 8)),
        kubeflow("PyTorchJob", PYTORCH, Master=(1, 4), Worker=(3, 4)),
        kubeflow("MPIJob", MPI, Launcher=(1, 0), Worker=(2, 8)),
        volcano(m=(1, 8), w=(1, 8)),
        lws(1, 2, 8),
    ],
)
def test_job_that_an_empty_cluster_can_hold_is_feasible_or_waits(run: Run, tmp_path: Path, content: Object) -> None:
    assert {each["verdict"] for each in checked(run, tmp_path, content, 8, 8)} == {"Feasible"}
    assert "Infeasible" not in {each["verdict"] for each in checked(run, tmp_path, content, 8, 8, other=8)}


def test_text_has_the_number_that_an_empty_cluster_holds(run: Run, tmp_path: Path) -> None:
    job = kubeflow("PyTorchJob", PYTORCH, Master=(1, 1), Worker=(2, 16))

    output = run("check", "-f", "-", "--cluster", cluster_of(tmp_path, 8, 8), stdin=as_list(job)).output

    assert output.count("1 of 3 pods of gang j fits now; no more than 1 would fit on an empty cluster") == 2


def test_role_that_the_gang_can_start_without_is_infeasible_alone(run: Run, tmp_path: Path) -> None:
    job = volcano(m=(2, 1), w=(2, 16))
    job["spec"]["minAvailable"] = 2

    assert [each["verdict"] for each in checked(run, tmp_path, job, 8, 8)] == ["Feasible", "Infeasible"]


@pytest.mark.parametrize(
    "job",
    [
        kubeflow("PyTorchJob", PYTORCH, Worker=(3, 8)),
        kubeflow("PyTorchJob", PYTORCH, Master=(1, 1), Worker=(2, 16)),
    ],
)
def test_gated_job_waits_whatever_the_cluster_holds(run: Run, tmp_path: Path, job: Object) -> None:
    for role in job["spec"][PYTORCH].values():
        role["template"]["spec"]["schedulingGates"] = [{"name": "example.com/nodes"}]

    assert {each["verdict"] for each in checked(run, tmp_path, job, 8, 8)} == {"Waiting"}


def test_role_without_pods_takes_no_room(run: Run, tmp_path: Path) -> None:
    job = kubeflow("TFJob", "tfReplicaSpecs", PS=(0, 8), Worker=(1, 8))

    empty, worker = checked(run, tmp_path, job, 8)

    assert (empty["replicas"], empty["fits"], empty["replicasByNode"]) == (0, 0, {})
    assert (worker["verdict"], worker["fits"]) == ("Feasible", 1)


def test_groups_that_each_have_room_are_not_one_gang(run: Run, tmp_path: Path) -> None:
    found = checked(run, tmp_path, lws(2, 2, 8), 8, 8)

    assert [each["verdict"] for each in found] == ["Feasible", "Waiting"]
    assert found[1]["gang"] == {"name": "j", "size": 2, "fit": 1, "isComplete": True}


def test_suggestion_frees_what_a_running_pod_of_others_holds(run: Run, tmp_path: Path) -> None:
    job = kubeflow("PyTorchJob", PYTORCH, Master=(1, 8), Worker=(2, 8))

    _, worker = checked(run, tmp_path, job, 8, 8, 8, other=8)

    assert (worker["verdict"], worker["suggestions"]) == ("Waiting", ["t-3 fits once 8 nvidia.com/gpu are freed"])


@pytest.mark.parametrize(("cards", "gone"), [((8, 8), ""), ((8, 8, 8), "t-3")])
def test_only_running_pods_of_others_would_be_gone(run: Run, tmp_path: Path, cards: tuple[int, ...], gone: str) -> None:
    job = kubeflow("PyTorchJob", PYTORCH, Master=(1, 8), Worker=(2, 8))
    cluster = cluster_of(tmp_path, *cards, other=8 if len(cards) > 2 else 0)

    output = run("check", "-f", "-", "--cluster", cluster, stdin=as_list(job)).output

    shown = [each for each in output.splitlines() if "would fit if running pods were gone" in each]
    assert shown == ([f"  would fit if running pods were gone: {gone}"] if gone else [])

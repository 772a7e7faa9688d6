"""`nodes`: the nodes and cards of each pool and product."""

from pathlib import Path
from typing import Any

import pytest

from placement_planner.cli.nodes import _MOST_LINES
from tests.support.admission import USAGE
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

PRODUCT, CARD = "nvidia.com/gpu.product", "nvidia.com/gpu"


def gpu_node(name: str, pool: str, product: str, cards: int = 8, **more: Any) -> dict[str, Any]:
    labels = {USAGE: pool, PRODUCT: product}
    taints = [f"{key}={value}:NoSchedule" for key, value in labels.items()]
    return make_node_object(name, labels=labels, taints=taints, capacity={CARD: cards}, **more)


NODES = [
    gpu_node("t-1", "training", "NVIDIA-H20"),
    gpu_node("t-2", "training", "NVIDIA-H20"),
    gpu_node("t-3", "training", "NVIDIA-A100", cards=4),
    gpu_node("i-1", "inference", "NVIDIA-H20", unschedulable=True),
    make_node_object("cpu-1"),
    make_node_object("cpu-2"),
]
LOAD = [make_pod("a").node_name("t-1").gpu(5), make_pod("b").node_name("t-2").gpu(2)]


def write(folder: Path, *more: dict[str, Any]) -> Path:
    file = folder / "cluster.json"
    file.write_text(as_list(*NODES, *LOAD, *more))
    return file


def test_nodes_has_the_cards_of_each_pool_and_product(run: Run, tmp_path: Path) -> None:
    outcome = run("nodes", "--cluster", write(tmp_path), "-o", "json")

    (found,) = lines(outcome.output)
    keys = ("pool", "product", "nodes", "cards", "free", "largest")
    assert (found["nodes"], found["unschedulable"], found["mistyped"]) == (6, 1, [])
    assert [tuple(each[key] for key in keys) for each in found["pools"]] == [
        ("inference", "NVIDIA-H20", 1, 8, 0, 0),
        ("training", "NVIDIA-A100", 1, 4, 4, 4),
        ("training", "NVIDIA-H20", 2, 16, 9, 6),
        (None, None, 2, 0, 0, 0),
    ]
    assert all(0 <= each["fragmented"] <= 1 for each in found["pools"])


def test_the_text_of_nodes_is_a_total_and_a_table(run: Run, tmp_path: Path) -> None:
    first, head, *rows, title, closed = run("nodes", "--cluster", write(tmp_path)).output.splitlines()

    assert (title, closed.split()[-1]) == ("nodes that take no pods:", "cordoned")
    assert first == ("6 nodes, 1 of them cordoned; 20 usable cards, 13 free; not usable: 8 on nodes that take no pods")
    assert head.split() == ["POOL", "PRODUCT", "NODES", "CARDS", "FREE", "LARGEST", "FRAGMENTED"]
    assert [row.split()[:2] for row in rows] == [
        ["inference", "NVIDIA-H20"],
        ["training", "NVIDIA-A100"],
        ["training", "NVIDIA-H20"],
        ["none", "no"],
    ]
    assert max(map(len, (head, *rows))) <= 80


@pytest.mark.parametrize(("number", "more"), [(_MOST_LINES, []), (_MOST_LINES + 1, ["  and 1 more; -o json has all"])])
def test_only_the_first_lines_of_a_list_are_printed(run: Run, tmp_path: Path, number: int, more: list[str]) -> None:
    closed = [gpu_node(f"closed-{n:03}", "training", "NVIDIA-H20", unschedulable=True) for n in range(number - 1)]

    lines_of_text = run("nodes", "--cluster", write(tmp_path, *closed)).output.splitlines()

    shown = lines_of_text[lines_of_text.index("nodes that take no pods:") + 1 :]
    assert len(shown) == _MOST_LINES + len(more)
    assert shown[_MOST_LINES:] == more


def test_mistyped_labels_are_listed(run: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path, gpu_node("odd", "trainning", "NVIDIA-H20"))

    text, found = run("nodes", "--cluster", cluster), run("nodes", "--cluster", cluster, "-o", "json")

    assert f"  Node odd: metadata.labels[{USAGE}]: {USAGE}=trainning: did you mean training?" in text.output
    (mistyped,) = lines(found.output)[0]["mistyped"]
    assert mistyped["where"] == f"Node odd: metadata.labels[{USAGE}]"
    assert mistyped["remedy"].startswith("kubectl label node odd ")
    assert "`" not in mistyped["remedy"]


def test_nodes_names_what_cannot_be_used(run: Run, tmp_path: Path) -> None:
    broken, starting = gpu_node("broken", "training", "NVIDIA-H20"), gpu_node("starting", "training", "NVIDIA-H20")
    down = gpu_node("down", "training", "NVIDIA-H20")
    broken["status"]["allocatable"]["nvidia.com/gpu"] = "3"
    starting["spec"]["taints"].append({"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"})
    down["spec"]["taints"].append({"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"})
    cluster = write(tmp_path, broken, starting, down)

    text, found = (
        run("nodes", "--cluster", cluster).output,
        lines(run("nodes", "--cluster", cluster, "-o", "json").output),
    )

    assert "9 nodes, 1 of them cordoned, 1 of them not ready, 1 of them tainted for a time; 23 usable cards" in text
    assert "; not usable: 24 on nodes that take no pods, 5 not healthy\n" in text
    assert "  starting: taint node.cilium.io/agent-not-ready\n" in text
    assert "  broken: 3 of 8 nvidia.com/gpu are healthy" in text
    assert (found[0]["usable"], found[0]["notReady"]) == (23, 1)
    assert found[0]["unhealthy"] == [{"node": "broken", "resource": "nvidia.com/gpu", "healthy": 3, "total": 8}]
    assert {"node": "down", "state": "not ready"} in found[0]["closed"]


@pytest.mark.parametrize("status", ["Unknown", "False"])
def test_nodes_and_capacity_read_taints_and_not_the_condition_ready(run: Run, tmp_path: Path, status: str) -> None:
    """kube-scheduler does not read it, either."""
    node = make_node_object("a", capacity={"nvidia.com/gpu": 8})
    node["status"]["conditions"] = [{"type": "Ready", "status": status}]
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(node))

    (overview,) = lines(run("nodes", "--cluster", cluster, "-o", "json").output)
    (counted,) = lines(
        run("capacity", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(make_pod("p").gpu(1))).output
    )

    assert (overview["usable"], overview["notReady"], counted["fits"]) == (8, 0, 8)

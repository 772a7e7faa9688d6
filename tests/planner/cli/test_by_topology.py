"""`nodes --by` and `capacity --by`: the cards of each topology domain, and the largest gang that it could start."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

RACK, PRODUCT = "topology.kubernetes.io/rack", "nvidia.com/gpu.product"


def rack_node(name: str, rack: str | None, cards: int = 8, **more: Any) -> dict[str, Any]:
    labels = {PRODUCT: "NVIDIA-H20"} | ({} if rack is None else {RACK: rack})
    return make_node_object(name, labels=labels, capacity={"nvidia.com/gpu": cards} if cards else {}, **more)


NODES = [
    rack_node("a1", "r1"),
    rack_node("a2", "r1", unschedulable=True),
    rack_node("b1", "r2"),
    rack_node("b2", "r2"),
    rack_node("e1", ""),
    rack_node("x1", None),
    rack_node("cpu", "r1", cards=0),
]
LOAD = [make_pod("p").node_name("b1").gpu(3), make_pod("q").node_name("b2").gpu(6)]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(*NODES, *LOAD))
    return file


def counted(run: Run, cluster: Path, *pods: PodBuilder | dict[str, Any], by: str = "rack") -> list[dict[str, Any]]:
    arguments = ("capacity", "-f", "-", "--as-written", "--cluster", cluster, "--by", by, "-o", "json")
    return lines(run(*arguments, stdin=as_list(*pods)).output)


def test_nodes_are_counted_by_domain(run: Run, cluster: Path) -> None:
    (found,) = lines(run("nodes", "--by", "rack", "--cluster", cluster, "-o", "json").output)

    def cards(value: str | None, *numbers: int) -> dict[str, Any]:
        return {"value": value, "product": "NVIDIA-H20"} | dict(
            zip(("nodes", "cards", "free", "largest", "whole"), numbers, strict=True)
        )

    assert found["by"] == RACK
    assert found["domains"] == [
        cards("", 1, 8, 8, 8, 1),
        cards("r1", 2, 16, 8, 8, 1),
        cards("r2", 2, 16, 7, 5, 0),
        cards(None, 1, 8, 8, 8, 1),
    ]
    assert "by" not in lines(run("nodes", "--cluster", cluster, "-o", "json").output)[0]


@pytest.mark.parametrize("command", ["nodes", "capacity"])
def test_the_text_has_a_line_for_each_domain(run: Run, cluster: Path, command: str) -> None:
    shown = run(command, "--by", RACK, "--cluster", cluster).output.splitlines()

    rows = [line.split() for line in shown if "NVIDIA-H20" in line]
    assert next(line for line in shown if "PRODUCT" in line).split()[0] == "RACK"
    assert rows[2] == ["r2", "NVIDIA-H20", "2", "16", "7", "5", "0"]
    assert [rows[0][0], " ".join(rows[3][:2])] == ['""', "no label"]


def test_capacity_has_the_largest_gang_of_each_domain(run: Run, cluster: Path) -> None:
    """16 free cards in pieces of 5, 2 and 8 are not 4 pods of 4 cards: pods are counted."""
    (found,) = counted(run, cluster, make_pod("w").gpu(2))

    assert found["by"] == RACK
    assert found["domains"] == [
        {"value": "", "fits": 4, "fitsEmpty": 4, "free": 8, "largest": 8},
        {"value": "r1", "fits": 4, "fitsEmpty": 4, "free": 8, "largest": 8},
        {"value": "r2", "fits": 3, "fitsEmpty": 8, "free": 7, "largest": 5},
    ]


def test_a_pod_without_cards_has_no_free_cards(run: Run, cluster: Path) -> None:
    (found,) = counted(run, cluster, make_pod("w").requests(cpu="1"))

    assert {(each["free"], each["largest"]) for each in found["domains"]} == {(None, None)}


def test_pods_that_exclude_each_other_are_counted_one_by_one(run: Run, cluster: Path) -> None:
    pod = make_pod("w").label("app", "w").gpu(1).obj()
    term = {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": "kubernetes.io/hostname"}
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    (found,) = counted(run, cluster, pod)

    fits = {each["value"]: each["fits"] for each in found["domains"]}
    assert fits["r2"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("follow", [True, False])
def test_pods_with_a_spread_are_counted_if_they_follow_each_other(run: Run, cluster: Path, *, follow: bool) -> None:
    selector = {"labelSelector": {"matchLabels": {"app": "w"}}}
    term, apart = selector | {"topologyKey": RACK}, selector | {"topologyKey": PRODUCT, "maxSkew": 1}
    pod = make_pod("w").label("app", "w").gpu(4)
    pod = pod.spec(topologySpreadConstraints=[apart | {"whenUnsatisfiable": "DoNotSchedule"}])
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    (found,) = counted(run, cluster, pod.affinity(together) if follow else pod)

    fits = {each["value"]: each["fits"] for each in found["domains"]} if found["domains"] else None
    assert fits == ({"": 2, "r1": 2, "r2": 1} if follow else None)


def test_the_text_of_capacity_has_the_largest_first(run: Run, cluster: Path) -> None:
    pod = as_list(make_pod("w").gpu(2))

    outcome = run("capacity", "-f", "-", "--as-written", "--cluster", cluster, "--by", "rack", stdin=pod)

    shown = outcome.output.splitlines()
    start = shown.index("  the largest gang that each rack could start now, and its free cards:")
    assert [line.split() for line in shown[start + 1 : start + 5]] == [
        ["rack", "gang", "if", "empty", "free", "largest"],
        ['""', "4", "4", "8", "8"],
        ["r1", "4", "4", "8", "8"],
        ["r2", "3", "8", "7", "5"],
    ]


def test_the_product_is_that_of_the_labels_of_the_accelerator(run: Run, tmp_path: Path) -> None:
    file, labels = tmp_path / "cluster.json", {RACK: "r1", "amd.com/gpu.product-name": "MI300X"}
    file.write_text(as_list(make_node_object("m1", labels=labels, capacity={"amd.com/gpu": 8})))

    (found,) = lines(run("nodes", "--by", "rack", "--cluster", file, "-o", "json").output)

    assert [each["product"] for each in found["domains"]] == ["MI300X"]


@pytest.mark.parametrize("by", ["example.com/row", "[row]"])
def test_nodes_says_that_no_node_has_the_label(run: Run, cluster: Path, by: str) -> None:
    shown = run("nodes", "--cluster", cluster, "--by", by).output.splitlines()

    assert f"by {by}: no node has the label" in shown
    assert "PRODUCT" not in " ".join(shown)


def test_a_label_that_no_node_has(run: Run, cluster: Path) -> None:
    pod = as_list(make_pod("w").gpu(2))

    outcome = run("capacity", "-f", "-", "--as-written", "--cluster", cluster, "--by", "example.com/row", stdin=pod)

    assert "  by example.com/row: no node has the label" in outcome.output.splitlines()


def test_a_gang_of_pods_with_claims_is_not_known(run: Run, cluster: Path) -> None:
    pod = make_pod("w").gpu(2).obj()
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]

    (found,) = counted(run, cluster, pod)

    assert found["domains"] is None


def test_by_and_together_exclude_each_other(run: Run, cluster: Path) -> None:
    arguments = ("capacity", "-f", "-", "--cluster", cluster, "--by", "rack", "--together")

    outcome = run(*arguments, stdin=as_list(make_pod("w").gpu(2)))

    assert (outcome.code, "leave --together out" in outcome.errors) == (2, True)

"""`simulate --preempt` reports evictions in the text, in JSON and in the plot; without it nothing is added."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.objects.builders import make_node_object
from tests.support.programs.command import Outcome, Run
from tests.support.programs.traces import POOL, lines, write_experiment

_TRACE = lines(
    "0,100,cpu=4;nvidia.com/gpu=8,workload-type=training",
    "10,20,cpu=4;nvidia.com/gpu=8,workload-type=inference",
    header="arrival,duration,requests,annotations",
)
_CRITICAL = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "system-node-critical"},
    "value": 2_000_001_000,
}
PREEMPT = ("--scheduler-profile", "default", "--preempt", "--priority", "inference=100")


def simulate(run: Run, *arguments: str) -> Outcome:
    return run("simulate", "--trace", "trace.csv", "--cluster", "cluster.json", *arguments)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder, in which the command runs, of a trace for one node of eight GPUs."""
    monkeypatch.chdir(tmp_path)
    write_experiment(tmp_path, _TRACE, [make_node_object("a", labels={POOL: "hybrid"}, capacity={"nvidia.com/gpu": 8})])
    return tmp_path


def test_evictions_are_in_the_text(run: Run, files: Path) -> None:
    lines = simulate(run, *PREEMPT).output.splitlines()

    rows = [line.split() for line in lines[lines.index("Evicted, by the priority of the victims:") :]]
    # 40 s of eight cards.
    assert ["built-in", "default", "0", "1", "0.01", "0.09"] in rows
    assert "By priority:" in lines


def test_evictions_and_waits_are_by_priority_from_the_lowest_to_the_highest(run: Run, files: Path) -> None:
    rows = (
        "0,100,nvidia.com/gpu=2,workload-type=training,", "0,100,nvidia.com/gpu=6,workload-type=inference,",
        "10,20,nvidia.com/gpu=8,workload-type=inference,7",
    )  # fmt: skip
    Path("trace.csv").write_text(lines(*rows, header="arrival,duration,requests,annotations,priority"))
    flags = ("--scheduler-profile", "default", "--preempt", "--priority", "training=-9", "--priority", "inference=-3")

    text = simulate(run, *flags).output.splitlines()

    waits = [line.split()[2] for line in text[text.index("By priority:") + 2 :][:3]]
    evicted = [line.split()[2:4] for line in text[text.index("Evicted, by the priority of the victims:") + 2 :][:3]]
    assert waits == ["-9", "-3", "7"]
    assert evicted == [["-9", "1"], ["-3", "1"], ["all", "2"]]


def test_evictions_are_in_json(run: Run, files: Path) -> None:
    found = json.loads(simulate(run, *PREEMPT, "-o", "json").output)

    assert found["evictions"] == [
        {"priority": 0, "pods": 1, "ended": 0, "pod_hours": 0.011111, "card_hours": 0.088889},
    ]
    assert [each["value"] for each in found["waits"] if each["by"] == "priority"] == ["0", "100"]


@pytest.mark.parametrize("column", ["", "100"], ids=["of the option", "of the trace"])
def test_priorities_need_no_priority_class_of_the_cluster(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """Every cluster has PriorityClasses, and its API server would reject another priority."""
    monkeypatch.chdir(tmp_path)
    trace = lines(
        "0,100,cpu=4;nvidia.com/gpu=8,workload-type=training,",
        f"10,20,cpu=4;nvidia.com/gpu=8,workload-type=inference,{column}",
        header="arrival,duration,requests,annotations,priority",
    )
    node = make_node_object("a", labels={POOL: "hybrid"}, capacity={"nvidia.com/gpu": 8})
    write_experiment(tmp_path, trace, [node, _CRITICAL])

    option = () if column else ("--priority", "inference=100")
    found = json.loads(simulate(run, "--scheduler-profile", "default", "--preempt", *option, "-o", "json").output)

    assert [(each["priority"], each["pods"]) for each in found["evictions"]] == [(0, 1)]


def test_evictions_are_in_the_plot(run: Run, files: Path) -> None:
    simulate(run, *PREEMPT, "--plot", "out.svg")

    plot = ET.fromstring(Path("out.svg").read_text())
    texts = [each.text for each in plot.iter("{http://www.w3.org/2000/svg}text")]
    assert "evictions: 1; card-hours lost: 0.09; wait p99 by priority: 0 50 s, 100 30 s" in texts


def test_nothing_is_added_without_the_flag(run: Run, files: Path) -> None:
    found = json.loads(simulate(run, "--scheduler-profile", "default", "-o", "json").output)

    assert "evictions" not in found
    simulate(run, "--scheduler-profile", "default", "--plot", "out.svg")
    assert "evictions" not in Path("out.svg").read_text()
    assert {each["by"] for each in found["waits"]} == {"all", "cards", "type"}
    assert "riority" not in simulate(run, "--scheduler-profile", "default").output


def test_a_priority_of_an_unknown_workload_type_is_one_line(run: Run, files: Path) -> None:
    found = simulate(run, "--preempt", "--priority", "trainning=5")

    assert found.code == 2
    assert "no policy has the workload type 'trainning': inference, training" in found.errors.splitlines()[-1]


@pytest.mark.parametrize("value", ["inference", "inference=high", "=5", "inference=1000000001"])
def test_a_priority_that_is_none_is_one_line(run: Run, files: Path, value: str) -> None:
    found = simulate(run, "--priority", value)

    assert (found.code, found.output) == (2, "")
    assert f'"{value}" must be a workload type and a priority such as inference=100' in found.errors.splitlines()[-1]

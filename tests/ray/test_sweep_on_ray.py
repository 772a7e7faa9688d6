"""A sweep on Ray has the outcomes of a sweep on this machine, and reports bad input alike."""

from pathlib import Path

import pytest

from tests.support.objects.builders import make_node_object
from tests.support.programs.command import run_alone
from tests.support.programs.traces import POOL, lines, write_experiment

_TRACE = lines(*(f"{number},30,nvidia.com/gpu={1 + number % 3}" for number in range(40)))
_SWEEP = ("--scheduler-profile", "default", "--scheduler-profile", "binpack", "--seeds", "2", "-o", "json")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    nodes = [make_node_object(name, labels={POOL: "training"}, capacity={"nvidia.com/gpu": 8}) for name in ("a", "b")]
    write_experiment(tmp_path, _TRACE, nodes)
    return tmp_path


@pytest.fixture
def arguments(files: Path) -> tuple[str, ...]:
    return ("simulate", "--trace", "trace.csv", "--cluster", "cluster.json", "--processes", "2")


def test_outcomes_on_two_workers_equal_those_of_this_machine(arguments: tuple[str, ...]) -> None:
    on_ray = run_alone(*arguments, *_SWEEP, "--engine", "ray")
    here = run_alone(*arguments, *_SWEEP, "--engine", "local")

    assert on_ray.code == 0, on_ray.errors
    assert on_ray.output == here.output
    assert len(here.output.splitlines()) == 4


def test_bad_input_is_one_line_on_ray(arguments: tuple[str, ...]) -> None:
    found = run_alone(*arguments, "--arrivals", "random", "--engine", "ray", "--load", "1", "--span", "1ms")

    assert (found.code, found.output) == (2, "")
    assert "no pod of the trace arrives; check --load and --span" in found.errors.splitlines()[-1]

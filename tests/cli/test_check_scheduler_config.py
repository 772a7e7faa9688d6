"""`check --scheduler-config`: pods are judged by the profiles of a KubeSchedulerConfiguration."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.builders import make_node_object, make_pod
from webhook.cli import main

_CONFIGURATION = Path(__file__).parents[2] / "deploy/scheduler/kube-scheduler-configuration.yaml"


@dataclass(frozen=True, slots=True)
class Outcome:
    code: str | int | None
    answers: list[dict[str, Any]]
    errors: str


Check = Callable[..., Outcome]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A node in use and an empty one, with a pod for each of three schedulers."""
    running = make_pod("running").node_name("used").requests(cpu="4", memory="16Gi")
    nodes = make_node_object("empty"), make_node_object("used")
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*nodes, running.obj()]}))
    pods = [
        make_pod(name).requests(cpu="1", memory="1Gi").scheduler(scheduler).obj()
        for name, scheduler in (("a", "default-scheduler"), ("b", "binpack-scheduler"), ("c", "volcano"))
    ]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    return tmp_path


@pytest.fixture
def check(files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """`placement-webhook check` of these pods, run in this process as a shell would."""

    def run(*arguments: str) -> Outcome:
        given = ["-f", str(files / "pods.yaml"), "--cluster", str(files / "cluster.json"), "-o", "json", *arguments]
        monkeypatch.setattr(sys, "argv", ["placement-webhook", "check", *given])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return Outcome(left.value.code, [json.loads(line) for line in told.out.splitlines()], told.err)

    return run


def test_each_pod_is_judged_by_the_profile_of_its_scheduler(check: Check) -> None:
    result = check("--scheduler-config", str(_CONFIGURATION))
    assert [(answer["verdict"], answer["node"]) for answer in result.answers] == [
        ("Feasible", "empty"),
        ("Feasible", "used"),
        ("Unknown", None),
    ]
    assert result.answers[2]["message"] == "the configuration has no profile for the schedulerName volcano"
    assert result.code == 3


@pytest.mark.parametrize(
    ("arguments", "node"),
    [
        ((), "empty"),
        (("--scheduler-profile", "binpack"), "used"),
        (("--scheduler-config", str(_CONFIGURATION), "--scheduler-profile", "binpack-scheduler"), "used"),
    ],
)
def test_a_profile_is_chosen_for_all(check: Check, arguments: tuple[str, ...], node: str) -> None:
    result = check(*arguments)
    assert [answer["node"] for answer in result.answers] == [node] * 3
    assert result.code == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ("--scheduler-profile", "fill"),
            '--scheduler-profile: Unsupported value: "fill"; supported values: "default"',
        ),
        (
            ("--scheduler-config", str(_CONFIGURATION), "--scheduler-profile", "binpack"),
            '--scheduler-profile: Unsupported value: "binpack"; supported values: "default-scheduler", "binpack-sch',
        ),
        (("--scheduler-config", "nowhere.yaml"), '--scheduler-config: Invalid value: "nowhere.yaml"; cannot be read'),
    ],
)
def test_what_is_not_there_is_told(check: Check, arguments: tuple[str, ...], error: str) -> None:
    result = check(*arguments)
    assert result.code == 2
    assert error in result.errors

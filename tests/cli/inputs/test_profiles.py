"""`check --scheduler-config`: evaluate pods with the profiles of a KubeSchedulerConfiguration."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import lines
from tests.support.programs.command import Run
from webhook.cli.inputs.profiles import Schedulers
from webhook.placement.profiles.profile import PROFILES

_CONFIGURATION = Path(__file__).parents[3] / "deploy/scheduler/kube-scheduler-configuration.yaml"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write a node in use and an empty node, with a pod for each of three schedulers."""
    running = make_pod("running").node_name("used").requests(cpu="4", memory="16Gi")
    nodes = make_node_object("empty"), make_node_object("used")
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [*nodes, running.obj()]}))
    pods = [
        make_pod(name).requests(cpu="1", memory="1Gi").scheduler(scheduler).obj()
        for name, scheduler in (("a", "default-scheduler"), ("b", "binpack-scheduler"), ("c", "other"))
    ]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    return tmp_path


@pytest.fixture
def check(files: Path, run: Run) -> Run:
    """Run `placement-webhook check` for these pods."""
    return partial(run, "check", "-f", files / "pods.yaml", "--cluster", files / "cluster.json", "-o", "json")


def test_each_pod_is_evaluated_with_the_profile_of_its_scheduler(check: Run) -> None:
    result = check("--scheduler-config", str(_CONFIGURATION))
    assert [(answer["verdict"], answer["node"]) for answer in lines(result.output)] == [
        ("Feasible", "empty"),
        ("Feasible", "used"),
        ("Unknown", None),
    ]
    unknown = lines(result.output)[2]
    assert unknown["message"] == "the configuration has no profile for the schedulerName other"
    assert (unknown["qosClass"], unknown["nodes"]["feasible"]) == ("Burstable", 0)
    assert result.code == 3


@pytest.mark.parametrize(
    ("arguments", "node"),
    [
        ((), "empty"),
        (("--scheduler-profile", "binpack"), "used"),
        (("--scheduler-config", str(_CONFIGURATION), "--scheduler-profile", "binpack-scheduler"), "used"),
    ],
)
def test_a_profile_is_chosen_for_all(check: Run, arguments: tuple[str, ...], node: str) -> None:
    result = check(*arguments)
    assert [answer["node"] for answer in lines(result.output)] == [node] * 3
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
def test_an_unknown_profile_is_reported(check: Run, arguments: tuple[str, ...], error: str) -> None:
    result = check(*arguments)
    assert result.code == 2
    assert error in result.errors


def test_pods_of_a_batch_scheduler_are_predicted_by_its_rules(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(make_node_object("a")))
    pods = [
        make_pod(scheduler).requests(cpu="1").node_selector("pool", "x").scheduler(scheduler).obj()
        for scheduler in ("volcano", "kai-scheduler", "default-scheduler")
    ]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    arguments = ("check", "-f", tmp_path / "pods.yaml", "--cluster", tmp_path / "cluster.json", "-o", "json")
    reason = "1 node(s) didn't match Pod's node affinity/selector."

    def messages(*options: str) -> list[str]:
        return [answer["message"] for answer in lines(run(*arguments, *options).output)]

    not_helpful = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    available = f"0/1 nodes are available: {reason} {not_helpful}"
    assert messages() == [
        f"0/1 nodes are unavailable: {reason}",
        f"no nodes with enough resources were found: {reason}",
        available,
    ]
    assert messages("--scheduler-profile", "default") == [available] * 3


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(None, 'Invalid value: "scheduler.yaml"; cannot be read: No such file or directory', id="no file"),
        pytest.param(
            "kind: Pod", 'kind: Unsupported value: "Pod"; supported values: "KubeSchedulerConfiguration"', id="other"
        ),
    ],
)
def test_serve_reports_a_configuration_that_it_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, content: str | None, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "scheduler.yaml").write_text(content)
    result = run("serve", "--tls-dir", "t", "--scheduler-config", "scheduler.yaml")
    assert result.code == 2
    assert error in result.errors


@pytest.mark.parametrize(
    ("flags", "needing"),
    [
        (("--policy-source", "crd"), "--policy-source crd"),
        (("--export-policy", "on"), "--export-policy"),
        (("--export-policy", "remove", "--no-cluster"), "--export-policy"),
    ],
)
def test_serve_needs_a_live_cluster_to_read_or_write_policies_there(
    run: Run, flags: tuple[str, ...], needing: str
) -> None:
    outcome = run("serve", "--tls-dir", "t", *flags)
    assert outcome.code == 2
    assert f"{needing} needs a live cluster; give --in-cluster or --kubeconfig, too." in outcome.errors


@pytest.mark.parametrize(("profile", "node"), [("binpack", "used"), ("default", "empty")])
def test_pending_pods_take_their_places_by_the_chosen_profile(files: Path, run: Run, profile: str, node: str) -> None:
    """The default profile spreads pods."""
    cluster = json.loads((files / "cluster.json").read_text())
    cluster["items"].append(make_pod("waits").requests(cpu="1", memory="1Gi").obj())
    (files / "cluster.json").write_text(json.dumps(cluster))
    given = ("-f", files / "pods.yaml", "--cluster", files / "cluster.json", "--scheduler-profile", profile)

    first, *_ = lines(run("check", *given, "-o", "json").output)

    assert first["reserved"]["nodes"] == {node: 1}


def test_a_profile_of_the_configuration_comes_before_that_of_the_batch_scheduler_of_its_name() -> None:
    """A kube-scheduler can be called like a backend of the policy."""
    profiles = {"default-scheduler": PROFILES["default"], "volcano": PROFILES["binpack"]}
    pod = make_pod().scheduler("volcano").obj()
    own, other = (Schedulers(each, None).scheduler_of(pod) for each in (profiles, {"a": PROFILES["default"]}))

    assert own is not None
    assert other is not None
    assert own.profile.name == "binpack"
    assert other.profile.name == "volcano"

"""Objects that exist in a cluster, with their pods."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.inputs.explained import EVENT, JOB, LOAD, NODES, stored, trainer, write
from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import lines
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api

WAITS = stored(trainer("worker-0", 4))


def test_pods_are_found_through_the_objects_between(run: Run, tmp_path: Path) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": JOB["metadata"] | {"uid": "d1"}}
    deployment |= {"spec": {"replicas": 1, "template": JOB["spec"]["template"]}}
    owned: dict[str, Any] = {"ownerReferences": [{"kind": "Deployment", "name": "train", "uid": "d1"}]}
    own = {"name": "r", "namespace": "team-a", "uid": "r1"} | owned
    between = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": own}
    pod = stored(trainer("train-a", 4), owner="r1")

    outcome = run("explain", "deploy/train", "-n", "team-a", "--cluster", write(tmp_path, deployment, between, pod))

    assert outcome.output.startswith("team-a/train-a: Pending\n")


@pytest.mark.parametrize("references", [5, [1.5], [{"uid": ["job"]}]])
def test_a_pod_with_malformed_owners_is_no_pod_of_an_object(run: Run, tmp_path: Path, references: Any) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": "team-a", "uid": "job"},
        "spec": {"template": trainer("x", 1).obj()},
    }
    other = make_pod("other").namespace("team-a").obj()
    other["metadata"]["ownerReferences"] = references
    other["status"] = {"phase": "Running"}

    outcome = run("explain", "job/job", "-n", "team-a", "--cluster", write(tmp_path, job, other), "-o", "json")

    assert (outcome.code, "Traceback" in outcome.errors) == (0, False)


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("pod/worker-1", 'Invalid value: "pod/worker-1"; namespace team-a has no such object; did you mean worker-0?'),
        ("pot/worker-0", 'Unsupported value: "pot"; supported values: "appwrapper"'),
    ],
)
def test_what_does_not_exist_is_code_2(run: Run, tmp_path: Path, target: str, error: str) -> None:
    outcome = run("explain", target, "-n", "team-a", "--cluster", write(tmp_path, WAITS))

    assert (outcome.code, outcome.output) == (2, "")
    assert f"Error: TYPE/NAME: {error}" in outcome.errors


@pytest.fixture
def api() -> Iterator[FakeConfigurationApi]:
    namespaced = "/api/v1/namespaces/team-a"
    with fake_api() as api:
        api.objects = {
            "/api/v1/namespaces": {"metadata": {}, "items": []},
            "/api/v1/nodes": {"metadata": {}, "items": NODES},
            "/api/v1/pods": {"metadata": {}, "items": [LOAD.obj(), WAITS]},
            f"{namespaced}/pods/worker-0": WAITS,
            f"{namespaced}/events": {"metadata": {}, "items": [EVENT]},
        }
        yield api


@pytest.mark.slow
def test_a_live_pod_is_read_from_the_api_server(run: Run, api: FakeConfigurationApi, tmp_path: Path) -> None:
    arguments = ("explain", "pod/worker-0", "-n", "team-a", "--kubeconfig", api.kubeconfig(tmp_path), "-o", "json")

    outcome = run(*arguments)

    (found,) = lines(outcome.output)
    assert (outcome.code, found["check"]["verdict"], found["events"][0]["count"]) == (0, "Waiting", 3)
    assert any(line.startswith("not known: the audit record: ") for line in outcome.errors.splitlines())
    assert "the audit record" not in run(*arguments, "--no-audit").errors


@pytest.mark.slow
def test_the_node_pools_of_a_live_pod_are_read_if_karpenter_is_installed(
    run: Run, api: FakeConfigurationApi, tmp_path: Path
) -> None:
    message = "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=gpu)"
    event = EVENT | {"message": message, "source": {"component": "karpenter"}}
    api.objects["/api/v1/namespaces/team-a/events"] = {"metadata": {}, "items": [event]}
    arguments = ("explain", "worker-0", "-n", "team-a", "--kubeconfig", api.kubeconfig(tmp_path), "-o", "json")

    without = run(*arguments, "--no-audit")
    amounts = {"nvidia.com/gpu": "64"}
    pool = {"metadata": {"name": "gpu"}, "spec": {"limits": amounts}, "status": {"resources": amounts}}
    api.objects["/apis/karpenter.sh/v1/nodepools"] = {"metadata": {}, "items": [pool]}
    (found,) = lines(run(*arguments, "--no-audit").output)

    assert "nodepools" not in without.errors
    assert found["autoscalers"][0]["message"] == "NodePool gpu is at its limit of 64 nvidia.com/gpu"

"""`snapshot`: write a cluster file of a running cluster."""

import errno
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.cli.fake_cluster import REQUIRED, listing
from tests.support.objects.moves import budget, running
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import FakeConfigurationApi
from webhook.cli.commands import snapshot
from webhook.cluster.cache.resources import Resource
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.documents.documents import parse

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


def test_a_snapshot_has_nodes_first_and_prints_progress_on_standard_error(run: Run, kubeconfig: Path) -> None:
    outcome = run("snapshot", "--kubeconfig", kubeconfig)

    assert outcome.code == 0
    written = json.loads(outcome.output)
    assert written["serverVersion"] == {"gitVersion": "v1.37.2"}
    assert [(each["kind"], each["metadata"]["name"]) for each in written["items"]] == [
        ("Node", "a"),
        ("Node", "b"),
        ("Namespace", "team-a"),
    ]
    assert outcome.errors.splitlines() == [
        "1 namespaces",
        "1 namespaces, 2 nodes",
        "1 namespaces, 2 nodes, 0 pods",
        "",
    ]


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        pytest.param("missing/cluster.json", "No such file or directory", id="no folder"),
        pytest.param(".", "Is a directory", id="a folder"),
    ],
)
def test_a_snapshot_that_cannot_be_written_is_not_begun(run: Run, tmp_path: Path, output: str, problem: str) -> None:
    outcome = run("snapshot", "--kubeconfig", tmp_path / "absent", "-o", tmp_path / output)

    assert outcome.code == 2
    assert outcome.errors == f'Error: --output: Invalid value: "{tmp_path / output}"; cannot be written: {problem}\n'


def test_a_snapshot_that_fails_in_the_end_leaves_the_old_file_and_no_other(
    run: Run, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cluster.json"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(snapshot, "_write", full)

    outcome = run("snapshot", "--kubeconfig", kubeconfig, "-o", file)

    assert outcome.code == 2
    assert outcome.errors.endswith(
        f'Error: --output: Invalid value: "{file}"; cannot be written: No space left on device\n'
    )
    assert file.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster.json", "kubeconfig"]


def test_objects_of_a_list_that_begins_again_are_written_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of a list expire."""

    def listed(_: object, resources: Iterable[Resource], on_page: Callable[..., None]) -> list[Resource]:
        found = [*resources]
        for resource in found:
            for begins in (True, False, True):
                on_page(resource, [{"kind": resource.kind, "metadata": {"name": "x"}}], begins)
        return found

    monkeypatch.setattr(snapshot, "list_resources", listed)
    monkeypatch.setattr(snapshot, "read_live_release", lambda _: None)

    outcome = run("snapshot", "--kubeconfig", "absent")

    assert [each["kind"] for each in json.loads(outcome.output)["items"]] == ["Node", "Pod", "Namespace"]


def test_a_snapshot_of_all_kinds_has_empty_lists_and_reports_kinds_that_are_not_served(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path, tmp_path: Path
) -> None:
    api.objects["/api/v1/services"] = listing()
    file = tmp_path / "cluster.json"

    outcome = run("snapshot", "--all-kinds", "--kubeconfig", kubeconfig, "-o", file)

    assert (outcome.code, outcome.output) == (0, "")
    items = json.loads(file.read_text())["items"]
    assert items[-1] == {"apiVersion": "v1", "kind": "ServiceList", "items": []}
    assert "not known: replicasets: GET /apis/apps/v1/replicasets: 404 there is none" in outcome.errors.splitlines()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_snapshot_of_all_kinds_has_the_budgets(run: Run, api: FakeConfigurationApi, kubeconfig: Path) -> None:
    api.objects[BUDGETS] = listing(budget("web", 1))

    outcome = run("snapshot", "--kubeconfig", kubeconfig, "--all-kinds")

    items = json.loads(outcome.output)["items"]
    (found,) = [each for each in items if each.get("kind") == "PodDisruptionBudget"]
    assert (found["apiVersion"], found["status"]["disruptionsAllowed"]) == ("policy/v1", 1)


def test_a_snapshot_of_all_kinds_is_read_with_what_preemption_reads(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    image = {"waiting": {"reason": "ImagePullBackOff", "message": "of a registry"}}
    preempted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    pod = (
        running("p", "a", kind="Job")
        .deletion("2026-01-02T00:00:00Z")
        .status(
            startTime="2026-01-01T00:00:00Z",
            conditions=[preempted],
            containerStatuses=[{"name": "main", "state": image}],
        )
    )
    api.objects |= {REQUIRED["Pod"]: listing(pod.obj()), BUDGETS: listing(budget("web", 1))}

    outcome = run("snapshot", "--kubeconfig", kubeconfig, "--all-kinds")
    read = snapshot_from_documents(parse(outcome.output, "snapshot"))

    (found,) = read.nodes[read.rows["a"]].pods
    assert found == RunningPod.of(pod.obj())
    assert (found.started_seconds, found.is_preempted, found.waiting_reason) == (1767225600, True, "ImagePullBackOff")
    assert read.disruption_budgets == (DisruptionBudget.of(budget("web", 1)),)


def test_a_snapshot_with_hashed_names_has_none_of_the_others(run: Run, kubeconfig: Path) -> None:
    outcome = run("snapshot", "--kubeconfig", kubeconfig, "--hash-names", "--all-kinds")

    named = [each["metadata"]["name"] for each in json.loads(outcome.output)["items"] if "metadata" in each]
    assert (outcome.code, named) == (0, ["node-1", "node-2", "namespace-1"])

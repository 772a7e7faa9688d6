"""The inputs of a command on pods: the namespace of its objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import WAITING, as_list, write_cluster
from tests.support.programs.command import Run
from tests.support.programs.commands_on_files import COMMANDS, pods_of
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from webhook.cli.inputs import session
from webhook.cli.inputs.session import Session
from webhook.documents.field import InvalidInput


def test_objects_without_a_namespace_are_in_that_of_the_option(run: Run, command: tuple[Any, ...]) -> None:
    pods = as_list(make_pod("own").namespace("team-b"), make_pod("none"))

    outcome = run(*command, "-f", "-", "-n", "team-a", stdin=pods)

    assert pods_of(outcome) == ["team-b/own", "team-a/none"]


@pytest.fixture
def api() -> Iterator[FakeConfigurationApi]:
    with fake_api() as api:
        items = {"namespaces": [], "pods": [], "nodes": [make_node_object("n", capacity={"nvidia.com/gpu": 8})]}
        api.objects = {f"/api/v1/{kind}": {"metadata": {}, "items": each} for kind, each in items.items()}
        yield api


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(("option", "namespace"), [((), "of-context"), (("-n", "team-a"), "team-a")])
def test_on_a_live_cluster_the_namespace_is_that_of_the_context(
    run: Run, api: FakeConfigurationApi, tmp_path: Path, command: tuple[str, ...], option: Any, namespace: str
) -> None:
    kubeconfig = api.kubeconfig(tmp_path)
    content = json.loads(kubeconfig.read_text())
    content["contexts"][0]["context"]["namespace"] = "of-context"
    kubeconfig.write_text(json.dumps(content))

    outcome = run(*command, "-f", "-", "--kubeconfig", kubeconfig, *option, stdin=as_list(make_pod("p")))

    assert pods_of(outcome) == [f"{namespace}/p"]


@pytest.mark.parametrize(("cluster", "namespace"), [("cluster.json", "default"), (None, "of-context")])
def test_the_namespace_of_the_context_counts_for_a_live_cluster_only(
    monkeypatch: pytest.MonkeyPatch, cluster: str | None, namespace: str
) -> None:
    monkeypatch.setattr(session, "namespace_of_context", lambda *_: "of-context")

    assert Session(cluster=cluster, needs_pods=False).default_namespace == namespace


def test_an_object_that_cannot_be_read_is_code_2_also_beside_a_pod_that_waits(run: Run, tmp_path: Path) -> None:
    spec = {"replicas": "x", "template": WAITING.template(), "selector": {}}
    broken = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}

    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(WAITING, broken))

    assert outcome.code == 2
    assert outcome.output.startswith("default/waiting: Waiting\n")


@pytest.mark.parametrize("read", ["view", "snapshot"])
@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"scheduler_config": "absent"}, "--scheduler-config"),
        ({"policies": (Path("absent"),)}, "--policy"),
        ({"filenames": ("absent",)}, "--filename"),
    ],
)
def test_small_files_are_read_before_the_cluster(given: dict[str, Any], flag: str, read: str) -> None:
    """A cluster can take long to read."""
    for options, wrong in ((given, flag), ({}, "--cluster")):
        inputs = Session(cluster="absent", needs_pods=False, **options)
        with pytest.raises(InvalidInput) as caught:
            getattr(inputs, read)
        assert [each.path for each in caught.value.errors] == [wrong]


def test_a_cluster_is_read_once(tmp_path: Path) -> None:
    """It can be standard input."""
    file = write_cluster(tmp_path)
    inputs = Session(cluster=str(file), needs_pods=False)
    view, _ = inputs.view
    file.unlink()

    assert inputs.snapshot is view

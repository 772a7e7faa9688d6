"""The inputs of a command on pods: the namespace of its objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import as_list
from tests.support.programs.command import Run
from tests.support.programs.commands_on_files import COMMANDS, pods_of
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api


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

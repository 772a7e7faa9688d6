"""A large cluster file is read object by object, with the results and the errors of a small one."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.servers.fake_configuration_api import fake_api
from tests.support.servers.kubeconfigs import write_kubeconfig
from webhook.cli.inputs import clusters
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput

_NODE = make_node_object("a")
_POD = make_pod("p").namespace("x").node_name("a").requests(cpu="1").obj()
_BROKEN = make_pod("q").namespace("x").node_name("a").requests(cpu="one").obj()
_VERSION = {"serverVersion": {"gitVersion": "v1.34.1"}}


def _list(*objects: Any) -> str:
    return json.dumps({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {}}, indent=4)


def _outcome(file: Path) -> Any:
    try:
        snapshot = clusters.read_cluster(str(file))
    except InvalidInput as error:
        return [str(each) for each in error.errors]
    return snapshot.nodes, snapshot.requested("cpu").tolist(), snapshot.release


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_list(_NODE, _POD, _VERSION), id="a list"),
        pytest.param(json.dumps({"kind": "List", **_VERSION, "items": [_NODE, _POD]}), id="a list with a version"),
        pytest.param("\n".join(json.dumps(each) for each in (_NODE, _POD)), id="a stream of objects"),
        pytest.param(_list(_NODE) + _list(_POD), id="two lists"),
        pytest.param("kind: Node\napiVersion: v1\nmetadata: {name: a}\n---\nkind: List\nitems: []\n", id="YAML"),
        pytest.param(_list(_NODE, _BROKEN, _BROKEN), id="malformed objects"),
        pytest.param(_list(_BROKEN, _POD), id="no node"),
        pytest.param(_list(_NODE, _POD, 5), id="an item that is no object"),
        pytest.param(_list(_NODE, _POD)[:-20], id="a file that ends too soon"),
        pytest.param("", id="an empty file"),
    ],
)
def test_a_large_file_is_read_like_a_small_one(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cluster"
    file.write_text(text)
    small = _outcome(file)
    monkeypatch.setattr(clusters, "_LARGE_BYTES", -1)
    assert _outcome(file) == small


def test_errors_of_other_objects_are_not_shown_if_there_is_no_node(tmp_path: Path) -> None:
    """The file is that of another command, so its pods are not what is wrong."""
    file = tmp_path / "pods.json"
    file.write_text(_list(_VERSION, _BROKEN, _POD))

    (error,) = _outcome(file)

    assert error.startswith(f'--cluster: Invalid value: "{file}"; holds no Node, only Pod; give what `kubectl get ')


def test_nodes_are_named_once_each_and_an_unknown_one_with_the_nearest_names() -> None:
    snapshot = snapshot_from_documents(Document("c", make_node_object(name)) for name in ("gpu-1", "gpu-2", "cpu"))

    assert clusters.known_nodes("--node", ["gpu-2,gpu-1", "gpu-2"], snapshot) == ("gpu-2", "gpu-1")
    with pytest.raises(InvalidInput) as caught:
        clusters.known_nodes("--node", ["gpu-3,gpu-1", "disk"], snapshot)
    wrong = [str(each).partition("; the cluster has no such node; the nearest names: ") for each in caught.value.errors]
    assert [name for name, _, _ in wrong] == ['--node: Invalid value: "gpu-3"', '--node: Invalid value: "disk"']
    assert [sorted(nearest.split(", ")[:2]) for _, _, nearest in wrong[:1]] == [["gpu-1", "gpu-2"]]


def context(**params: object) -> click.Context:
    made = click.Context(click.Command("check"))
    made.params |= params
    return made


ARGUMENT = click.Argument(["name"])


def test_nodes_are_completed_by_their_beginning_from_a_file_or_a_live_cluster(tmp_path: Path) -> None:
    nodes = [make_node_object(name) for name in ("gpu-2", "gpu-1", "cpu-1", "a-gpu-1")]
    file = tmp_path / "cluster.json"
    file.write_text(_list(*nodes))

    with fake_api() as api:
        api.objects["/api/v1/nodes"] = {"metadata": {}, "items": nodes}
        found = [
            sorted(each.value for each in clusters.complete_node(context(**given), ARGUMENT, "gpu"))
            for given in ({"cluster": str(file)}, {"kubeconfig": api.kubeconfig(tmp_path)})
        ]

    assert found == [["gpu-1", "gpu-2"]] * 2
    assert clusters.complete_node(context(cluster=str(tmp_path / "absent")), ARGUMENT, "") == []


def test_contexts_are_completed_by_their_beginning(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, "http://127.0.0.1:1")
    content = json.loads(kubeconfig.read_text())
    content["contexts"] = [{**content["contexts"][0], "name": name} for name in ("prod-b", "prod-a", "a-prod", "test")]
    kubeconfig.write_text(json.dumps(content))

    found = clusters.complete_context(context(kubeconfig=kubeconfig), ARGUMENT, "prod")

    assert [each.value for each in found] == ["prod-b", "prod-a"]
    assert clusters.complete_context(context(kubeconfig=tmp_path / "absent"), ARGUMENT, "") == []

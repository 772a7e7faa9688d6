"""The release of the cluster of a command: `--release`, a cluster file, or the API server."""

import json
from pathlib import Path

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import fake_api

_CARD = "deviceclass.resource.kubernetes.io/gpu"
_NODE = make_node_object("a")
# Since 1.36, a DeviceClass can back the resource.
_POD = as_list(make_pod("p").container("c", **{_CARD: "1"}))
_OF_1_35 = (
    f"0/1 nodes are available: 1 Insufficient {_CARD}. "
    "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)
_OF_1_36 = "1/1 nodes are available. Whether one of them will do depends on DynamicResources, which is not modelled."
_OF_FILE = f"{_OF_1_36.removesuffix('.')}: add deviceclasses, resourceclaims, resourceslices to the cluster file."
_PRINTED_BY_KUBECTL = {
    "clientVersion": {"gitVersion": "v1.37.2"},
    "kustomizeVersion": "v5.7.1",
    "serverVersion": {"major": "1", "minor": "35+", "gitVersion": "v1.35.5+k3s1"},
}
_NOTE = "release v1.35.5+k3s1: plugins and messages are those of kube-scheduler 1.35\n"


def write(path: Path, *texts: str) -> Path:
    path.write_text("\n".join(texts))
    return path


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([as_list(_NODE), json.dumps(_PRINTED_BY_KUBECTL, indent=2)], id="after the objects"),
        pytest.param([json.dumps(_PRINTED_BY_KUBECTL), as_list(_NODE)], id="before the objects"),
        pytest.param([as_list(_NODE, _PRINTED_BY_KUBECTL)], id="an item of the list"),
        pytest.param([json.dumps(json.loads(as_list(_NODE)) | _PRINTED_BY_KUBECTL)], id="a key of the list"),
        pytest.param(
            [as_list(_NODE), "---", "serverVersion:", "  gitVersion: v1.35.5+k3s1", "  minor: '35'"], id="YAML"
        ),
    ],
)
def test_a_cluster_file_can_state_the_release(run: Run, tmp_path: Path, texts: list[str]) -> None:
    cluster = write(tmp_path / "cluster.json", *texts)

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=_POD)

    assert (lines(outcome.output)[0]["message"], outcome.errors) == (_OF_1_35, _NOTE)


def test_a_cluster_file_without_a_release_is_of_the_newest(run: Run, tmp_path: Path) -> None:
    cluster = write(tmp_path / "cluster.json", as_list(_NODE))

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=_POD)

    assert (lines(outcome.output)[0]["message"], outcome.errors) == (_OF_FILE, "")


@pytest.mark.parametrize(
    ("release", "message", "note"),
    [
        ("1.36", _OF_FILE, "release 1.36: plugins and messages are those of kube-scheduler 1.36\n"),
        ("v1.37.2", _OF_FILE, ""),
        (
            "1.30",
            _OF_1_35,
            "release 1.30: plugins and messages are those of kube-scheduler 1.35, the oldest that is modelled\n",
        ),
    ],
)
def test_the_option_overrides_the_file(run: Run, tmp_path: Path, release: str, message: str, note: str) -> None:
    cluster = write(tmp_path / "cluster.json", as_list(_NODE, _PRINTED_BY_KUBECTL))

    outcome = run(*("check", "-f", "-", "--cluster", cluster, "--release", release, "-o", "json"), stdin=_POD)

    assert (lines(outcome.output)[0]["message"], outcome.errors) == (message, note)


_VALID = "must be a version of Kubernetes, such as 1.36 or v1.36.3; 1.35 to 1.37 are modelled"


def test_a_wrong_option_is_one_error(run: Run, tmp_path: Path) -> None:
    outcome = run("check", "-f", "-", "--cluster", "missing", "--release", "newest", stdin=_POD)

    assert (outcome.code, outcome.errors) == (2, f'Error: --release: Invalid value: "newest"; {_VALID}\n')


def test_mutate_takes_a_release_for_a_cluster_only(run: Run) -> None:
    outcome = run("mutate", "-f", "-", "--release", "1.36", stdin=_POD)

    remedy = "--release is that of a cluster: name one with --cluster, --kubeconfig or --context."
    assert (outcome.code, outcome.output, outcome.errors.splitlines()[-1]) == (2, "", f"Error: {remedy}")


@pytest.mark.parametrize(
    ("versions", "error"),
    [
        pytest.param(
            [{"serverVersion": {"gitVersion": "soon"}}],
            f'items[1]: serverVersion.gitVersion: Invalid value: "soon"; {_VALID}',
            id="not a version",
        ),
        pytest.param(
            [{"serverVersion": []}],
            f"items[1]: serverVersion.gitVersion: Invalid value: null; {_VALID}",
            id="not an object",
        ),
        pytest.param(
            [{"serverVersion": {"gitVersion": each}} for each in ("v1.35.1", "v1.36.1")],
            'items[2]: serverVersion.gitVersion: Duplicate value: "v1.36.1"; a cluster has one release',
            id="two of them",
        ),
    ],
)
def test_a_wrong_release_in_a_file_is_one_error(
    run: Run, tmp_path: Path, versions: list[dict[str, object]], error: str
) -> None:
    cluster = write(tmp_path / "cluster.json", as_list(_NODE, *versions))

    outcome = run("check", "-f", "-", "--cluster", cluster, stdin=_POD)

    assert (outcome.code, outcome.errors) == (2, f"Error: {cluster}: {error}\n")


def listing(*items: dict[str, object]) -> dict[str, object]:
    return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": list(items)}


def test_the_release_of_a_live_cluster_is_used_and_written_by_snapshot(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        kubeconfig = api.kubeconfig(tmp_path)
        api.objects = {
            "/api/v1/namespaces": listing(),
            "/api/v1/nodes": listing(_NODE),
            "/api/v1/pods": listing(),
            "/version": {"major": "1", "minor": "35+", "gitVersion": "v1.35.5+k3s1"},
        }
        of_live = run("check", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=_POD)
        run("snapshot", "--kubeconfig", kubeconfig, "-o", tmp_path / "cluster.json")
    of_file = run(*("check", "-f", "-", "--cluster", tmp_path / "cluster.json", "-o", "json"), stdin=_POD)

    assert [lines(each.output)[0]["message"] for each in (of_live, of_file)] == [_OF_1_35, _OF_1_35]
    assert _NOTE in of_live.errors
    assert of_file.errors == _NOTE


def test_a_release_that_cannot_be_read_is_reported_and_the_newest_is_used(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        api.objects = {f"/api/v1/{plural}": listing() for plural in ("namespaces", "pods")}
        api.objects["/api/v1/nodes"] = listing(_NODE)
        outcome = run(*("check", "-f", "-", "--kubeconfig", api.kubeconfig(tmp_path), "-o", "json"), stdin=_POD)

    assert lines(outcome.output)[0]["message"].startswith(_OF_1_36.removesuffix("."))
    assert "not known: the release of the cluster: GET /version: 404 there is none" in outcome.errors.splitlines()

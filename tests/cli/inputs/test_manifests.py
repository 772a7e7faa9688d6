"""Where commands read manifests, in which namespace their objects are, and what counts of those beside the pods."""

import json
import stat
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from tests.support.programs.commands_on_files import pods_of
from tests.support.servers.threads import LocalServer, served_in_thread
from webhook.cli.inputs import manifests
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput


def write_folder(folder: Path) -> Path:
    for inner in ("inner", "a-folder.yaml"):
        (folder / "manifests" / inner).mkdir(parents=True)
    for path, name in (("b.yaml", "b"), ("a.json", "a"), ("inner/c.yml", "c"), ("notes.txt", "no")):
        (folder / "manifests" / path).write_text(as_list(make_pod(name)))
    return folder / "manifests"


@pytest.mark.parametrize(
    ("option", "names"), [((), ["default/a", "default/b"]), (("-R",), ["default/a", "default/b", "default/c"])]
)
def test_the_manifests_of_a_folder_are_read_by_name(
    run: Run, command: tuple[Any, ...], tmp_path: Path, option: tuple[str, ...], names: list[str]
) -> None:
    outcome = run(*command, "-f", write_folder(tmp_path), *option)

    assert pods_of(outcome) == names


def test_a_folder_without_manifests_is_an_error(run: Run, cluster_file: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    outcome = run("check", "-f", tmp_path / "empty", "--cluster", cluster_file)

    assert outcome.code == 2
    assert "holds no .json, .yaml, .yml file; -R also reads its folders" in outcome.errors


@pytest.fixture
def url() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if self.path == "/other.json" else 200)
            self.end_headers()
            content = as_list(make_pod("far")).encode()
            self.wfile.write(content.rjust(int(self.path[1:]) if self.path[1:].isdecimal() else 0))

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with LocalServer(("127.0.0.1", 0), Handler) as server, served_in_thread(server):
        yield f"http://127.0.0.1:{server.server_port}"


def test_a_url_is_downloaded(run: Run, command: tuple[Any, ...], url: str) -> None:
    assert pods_of(run(*command, "-f", f"{url}/pods.json")) == ["default/far"]


@pytest.mark.slow
def test_a_url_of_up_to_64_mib_is_downloaded(url: str) -> None:
    assert len(manifests._download(f"{url}/{64 * 1024 * 1024}")) == 67_108_864
    with pytest.raises(InvalidInput, match="is larger than 67108864 bytes"):
        manifests._download(f"{url}/{64 * 1024 * 1024 + 1}")


def test_a_url_that_cannot_be_read_is_an_error(run: Run, cluster_file: Path, url: str) -> None:
    outcome = run("check", "-f", f"{url}/other.json", "--cluster", cluster_file)

    assert outcome.code == 2
    assert f'Error: --filename: Invalid value: "{url}/other.json"; cannot be read: HTTP Error 404' in outcome.errors


@pytest.mark.parametrize(
    ("programs", "subcommand"),
    [(("kubectl",), "kustomize"), (("kustomize",), "build"), (("kustomize", "kubectl"), "kustomize")],
    ids=str,
)
def test_a_kustomization_is_built_by_kubectl_or_else_by_kustomize(
    run: Run,
    command: tuple[Any, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    programs: tuple[str, ...],
    subcommand: str,
) -> None:
    """The folder of $PATH has these programs, which print a pod with the name of their subcommand."""
    path = tmp_path / "bin"
    path.mkdir()
    pod = as_list(make_pod("NAME")).replace("NAME", "$1")
    for program in programs:
        file = path / program
        file.write_text(f"#!/bin/sh\n/bin/cat <<END\n{pod}\nEND\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(path))

    assert pods_of(run(*command, "-k", tmp_path)) == [f"default/{subcommand}"]


def test_a_kustomization_needs_a_program(run: Run, cluster_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    outcome = run("check", "-k", ".", "--cluster", cluster_file)

    assert outcome.code == 2
    assert "needs kubectl or kustomize in $PATH" in outcome.errors


def test_a_server_that_does_not_answer_is_named_by_its_reason(run: Run, cluster_file: Path) -> None:
    # Port 1 is reserved, and nothing listens there.
    outcome = run("check", "-f", "http://127.0.0.1:1/pod.yaml", "--cluster", cluster_file)

    assert (outcome.code, outcome.errors) == (
        2,
        'Error: --filename: Invalid value: "http://127.0.0.1:1/pod.yaml"; cannot be read: Connection refused\n',
    )


def test_a_url_of_another_scheme_is_an_error(run: Run, cluster_file: Path) -> None:
    outcome = run("check", "-f", "ftp://example.com/pod.yaml", "--cluster", cluster_file)

    assert (outcome.code, "http or https" in outcome.errors) == (2, True)


def test_the_error_of_kubectl_has_no_head_of_a_log_line(
    run: Run, cluster_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kubectl"
    line = 'E1123 19:28:22.167574   28982 run.go:72] "command failed" err="no such folder"'
    file.write_text(f"#!/bin/sh\n/bin/cat >&2 <<END\n{line}\nEND\nexit 1\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))

    outcome = run("check", "-k", "base", "--cluster", cluster_file)

    assert (outcome.code, outcome.errors) == (2, 'Error: --kustomize: Invalid value: "base"; no such folder\n')


def test_objects_without_pods_are_counted_by_kind(run: Run, command: tuple[Any, ...]) -> None:
    objects = (*(make_node_object(name) for name in ("a", "b")), {"apiVersion": "v1", "kind": "Namespace"})

    outcome = run(*command, "-f", "-", stdin=as_list(make_pod("p"), *objects))

    passed = [line for line in outcome.errors.splitlines() if "passed over" in line]
    assert passed == ["passed over, because they make no pod: 1 Namespace, 2 Node"]


def test_a_pod_keeps_the_node_that_its_creator_set(capsys: pytest.CaptureFixture[str]) -> None:
    """No scheduler was asked about such a pod, so it is evaluated with its node, as it was admitted."""
    made, bound, new = (make_pod(name).node_name("n").obj() for name in ("made", "bound", "new"))
    made["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {"f:nodeName": {}}}}]
    bound["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {"f:containers": {}}}}]
    for pod in (made, bound):
        pod["status"] = {"phase": "Running"}

    found = manifests.unbound(Document("file", pod) for pod in (made, bound, new))

    assert [each.content["spec"].get("nodeName") for each in found] == ["n", None, "n"]
    assert capsys.readouterr().err == "1 pod with a node: evaluated without spec.nodeName\n"


def test_the_version_in_a_snapshot_is_no_object(run: Run, command: tuple[Any, ...]) -> None:
    snapshot = json.loads(as_list(make_pod("p"))) | {"serverVersion": {"gitVersion": "v1.35.4"}}

    outcome = run(*command, "-f", "-", stdin=json.dumps(snapshot))

    assert (outcome.code, pods_of(outcome)) == (0, ["default/p"])
    assert "Error" not in outcome.errors


UNKNOWN = {"apiVersion": "example.com/v1", "kind": "Trainer", "metadata": {"name": "t"}}


def test_the_others_are_evaluated_beside_an_unknown_kind_and_the_code_is_2(run: Run, command: tuple[Any, ...]) -> None:
    outcome = run(*command, "-f", "-", stdin=as_list(make_pod("a"), UNKNOWN, make_pod("b")))

    assert (outcome.code, pods_of(outcome)) == (2, ["default/a", "default/b"])
    assert 'Error: <stdin>: items[1]: kind: Invalid value: "Trainer"; is not a known kind' in outcome.errors


def test_strict_stops_at_an_unknown_kind(run: Run, command: tuple[Any, ...]) -> None:
    outcome = run(*command, "-f", "-", "--strict", stdin=as_list(make_pod("a"), UNKNOWN))

    assert (outcome.code, outcome.output) == (2, "")


def claim(name: str) -> dict[str, Any]:
    spec = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


LOCAL = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "example.com/disks",
    "volumeBindingMode": "WaitForFirstConsumer",
}


@pytest.mark.parametrize("namespace", ["default", "team-a"])
def test_a_claim_in_the_file_of_the_pod_counts(run: Run, tmp_path: Path, namespace: str) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(
        as_list(make_node_object("n"), LOCAL, {"apiVersion": "v1", "kind": "PersistentVolumeList", "items": []})
    )
    pod = make_pod("p").spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    arguments = ("check", "-f", "-", "--cluster", cluster, "-n", namespace, "-o", "json")

    alone, beside = (run(*arguments, stdin=as_list(pod, *more)) for more in ((), (claim("data"),)))

    assert lines(alone.output)[0]["message"] == (
        '0/1 nodes are available: persistentvolumeclaim "data" not found. '
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert (lines(beside.output)[0]["verdict"], beside.errors) == ("Feasible", "")


def test_a_priority_class_in_the_file_of_the_pod_counts(run: Run, tmp_path: Path) -> None:
    """The pod comes before a pending one, which takes the cards of the only node otherwise."""
    waiting = make_pod("first").gpu(8).creation("2026-05-01T08:00:00Z").spec(priority=5).obj()
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("n", capacity={"nvidia.com/gpu": 8}), waiting))
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    pod = make_pod("p").gpu(8).spec(priorityClassName="high")
    arguments = ("check", "-f", "-", "--cluster", cluster, "-o", "json")

    alone, beside = (run(*arguments, stdin=as_list(pod, *more)) for more in ((), (high,)))

    assert [lines(each.output)[0]["verdict"] for each in (alone, beside)] == ["Waiting", "Feasible"]


@pytest.mark.parametrize(("options", "remedy"), [((), "; -R also reads its folders"), (("-R",), "")])
def test_a_folder_without_files_names_the_option_for_its_folders_unless_it_is_given(
    run: Run, tmp_path: Path, options: tuple[str, ...], remedy: str
) -> None:
    outcome = run("mutate", "-f", tmp_path, *options)

    assert outcome.code == 2
    assert outcome.errors.endswith(f" file{remedy}\n")


def test_metadata_that_are_no_object_are_an_error_also_with_a_namespace(run: Run) -> None:
    outcome = run("mutate", "-f", "-", "-n", "team-a", stdin="apiVersion: v1\nkind: Pod\nmetadata: x\n")

    assert outcome.code == 2
    assert outcome.errors.startswith("Error: <stdin>: metadata: ")
    assert "Traceback" not in outcome.errors

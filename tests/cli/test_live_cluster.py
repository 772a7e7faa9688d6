"""Commands on a live cluster: `serve --kubeconfig`, `check --kubeconfig`, `snapshot`."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import urllib3

from certs.registration import Target, manifest
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.process import HeldPort
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import make_device_class
from tests.support.programs.command import run_here
from tests.support.programs.programs import forked
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.server import review, write_certificate

ROOT = Path(__file__).parents[2]
D = "maip.mxsf.io"


def command(*arguments: str, **given: Any) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([forked(), *arguments], cwd=ROOT, capture_output=True, check=False, **given)


def training_pod(**annotations: str) -> dict[str, Any]:
    made = make_pod("trainer").gpu(6)
    for key, value in {"workload-type": "training", **annotations}.items():
        made = made.annotate(f"{D}/{key}", value)
    return made.obj()


def make_cluster(cluster: Cluster) -> None:
    usage = {f"{D}/node.usage": "training", "nvidia.com/gpu.product": "NVIDIA-H20"}
    cluster.make_nodes(
        make_node_object("secret-b", labels=usage, capacity={"nvidia.com/gpu": 8}),
        make_node_object("secret-a", labels=usage, capacity={"nvidia.com/gpu": 8}),
    )
    cluster.create(make_pod("hidden").node_name("secret-a").gpu(4))


class Served:
    """A running `serve`."""

    def __init__(self, port: int, admin_port: int, ca: Path) -> None:
        self._port, self._admin_port = port, admin_port
        self._http = urllib3.PoolManager(ca_certs=str(ca))

    def admit(self, pod: dict[str, Any], namespace: str, **request: Any) -> dict[str, Any]:
        body = orjson.dumps(review(pod, namespace=namespace, **request))
        answer = self._http.request(
            "POST",
            f"https://127.0.0.1:{self._port}/mutate?timeout=10s",
            body=body,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status == 200, answer.data
        response: dict[str, Any] = json.loads(answer.data)["response"]
        return response

    def metric(self, name: str) -> float | None:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._admin_port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        found = [line.rpartition(" ")[2] for line in lines if line.startswith(f"placement_webhook_{name} ")]
        return float(found[0]) if found else None

    def passes(self, probe: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._admin_port}{probe}") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def serving(folder: Path, kubeconfig: Path, policy: str = "", *flags: str, probe: str = "/readyz") -> Iterator[Served]:
    write_certificate(folder)
    arguments = ["--tls-dir", str(folder), "--kubeconfig", str(kubeconfig), "--audit", str(folder / "audit.jsonl")]
    if policy:
        (folder / "policy.yaml").write_text(policy)
        arguments += ["--policy", str(folder / "policy.yaml")]
    with HeldPort() as port, HeldPort() as admin, (folder / "log").open("wb") as log:
        arguments += [*flags, f"--listen=127.0.0.1:{port.number}", f"--admin-listen=127.0.0.1:{admin.number}"]
        process = subprocess.Popen([forked(), "serve", *arguments], cwd=ROOT, stderr=log)
        served = Served(port.number, admin.number, folder / "ca.crt")
        try:
            wait_for(lambda: served.passes(probe), lambda: f"{probe}: {(folder / 'log').read_text()}")
            yield served
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, (folder / "log").read_text()


def placement_of(response: dict[str, Any]) -> str | None:
    found: str | None = response["auditAnnotations"].get("placement")
    return found


def admit_first(served: Served, pod: dict[str, Any], namespace: str) -> None:
    """Check a pod on trial: predictions for pods that take more than a time slice, as the first one can, are lost."""
    served.admit({**pod, "metadata": {**pod["metadata"], "name": "first"}}, namespace, dryRun=True)


def test_server_predicts_from_the_live_view(cluster: Cluster, tmp_path: Path) -> None:
    make_cluster(cluster)
    with serving(tmp_path, cluster.control_plane.kubeconfig) as served:
        wait_for(lambda: served.metric("cluster_nodes") == 2, "the view")
        response = served.admit(training_pod(), cluster.namespace)
        assert placement_of(response) == "Feasible"
        assert response["auditAnnotations"]["node"] == "secret-b"
        cluster.client.delete("Node", "secret-b")
        wait_for(lambda: served.metric("cluster_nodes") == 1, "the view without the node")
        assert placement_of(served.admit(training_pod(), cluster.namespace)) == "Waiting"
        assert served.metric("cluster_pods") == 1
        age_seconds = served.metric("cluster_age_seconds")
        assert age_seconds is not None
        assert age_seconds < 60
        assert served.metric("missed_pods") == 0
        # No webhook is registered here: the pod is stored as its user wrote it.
        cluster.create(training_pod())
        wait_for(lambda: served.metric("missed_pods") == 1, "the missed pod")
        cluster.client.delete("Pod", "trainer", namespace=cluster.namespace)
        wait_for(lambda: served.metric("missed_pods") == 0, "no missed pod")


def test_missed_pods_are_those_that_the_registered_webhook_selects(cluster: Cluster, tmp_path: Path) -> None:
    excluded = training_pod()
    excluded["metadata"] |= {"name": "excluded", "labels": {"placement": "off"}}
    for each in (training_pod(), excluded):
        cluster.create(each)
    configuration = manifest(Target(configuration="own", url="https://127.0.0.1:1/mutate"))
    not_off = {"matchExpressions": [{"key": "placement", "operator": "NotIn", "values": ["off"]}]}
    configuration["webhooks"] = [each | {"objectSelector": not_off} for each in configuration["webhooks"]]
    cluster.client.create(configuration)
    with serving(tmp_path, cluster.control_plane.kubeconfig, "", "--webhook-configuration=own") as served:
        wait_for(lambda: served.metric("missed_pods") == 1, "the missed pod")


@pytest.mark.parametrize(("flags", "written"), [((), 1), (("--no-events",), 0)])
def test_events_are_written_before_the_server_ends(
    cluster: Cluster, tmp_path: Path, flags: tuple[str, ...], written: int
) -> None:
    pod = make_pod("").generate_name("web-").owner("Job", "web", api_version="batch/v1")
    with serving(tmp_path, cluster.control_plane.kubeconfig, "", *flags) as served:
        answer = served.admit(pod.annotate(f"{D}/workload-type", "trainning").obj(), cluster.namespace)
        assert answer["allowed"] is False
    reasons = [each["reason"] for each in cluster.client.list("Event", cluster.namespace)]
    assert reasons == ["PlacementDenied"] * written


def test_server_warns_of_a_scheduler_until_a_pod_is_bound_by_it(cluster: Cluster, tmp_path: Path) -> None:
    make_cluster(cluster)
    with serving(tmp_path, cluster.control_plane.kubeconfig) as served:

        def absent() -> list[str]:
            warnings = served.admit(training_pod(), cluster.namespace).get("warnings", [])
            return [each for each in warnings if each.startswith("scheduler volcano: no sign that it runs")]

        wait_for(absent, "the warning")
        cluster.wait_bound(cluster.create(make_pod("first").scheduler("volcano")).object)
        wait_for(lambda: not absent(), "no warning")


def test_annotations_of_the_namespace_are_defaults(cluster: Cluster, tmp_path: Path) -> None:
    annotations = {f"{D}/workload-type": "training"}
    cluster.client.patch("Namespace", cluster.namespace, {"metadata": {"annotations": annotations}})
    with serving(tmp_path, cluster.control_plane.kubeconfig) as served:
        plain = make_pod("plain").gpu(1).obj()
        wait_for(lambda: "patch" in served.admit(plain, cluster.namespace), "a patch by the namespace's default")


def test_stale_view_makes_verdicts_unknown_and_patches_continue(cluster: Cluster, tmp_path: Path) -> None:
    policy = """
    apiVersion: placement.maip.mxsf.io/v1alpha1
    kind: PlacementPolicy
    spec: {placementCheck: {mode: deny, maxViewAgeSeconds: 1}}
    """
    make_cluster(cluster)
    with serving(tmp_path, cluster.control_plane.kubeconfig, policy) as served:
        wait_for(lambda: served.metric("cluster_nodes") == 2, "the view")
        cluster.control_plane.stop_api_server()
        try:
            wait_for(lambda: (served.metric("cluster_age_seconds") or 0) > 1, "a view that is too old")
            response = served.admit(training_pod(), cluster.namespace)
            assert placement_of(response) == "Unknown"
            assert "patch" in response
        finally:
            cluster.control_plane.restart_api_server()
    (record,) = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert record["placement"]["message"].startswith("the view of the cluster is too old: ")


@pytest.mark.slow
def test_server_starts_and_patches_without_an_api_server(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, "http://127.0.0.1:1")
    with serving(tmp_path, kubeconfig, probe="/healthz") as served:
        assert not served.passes("/readyz")
        response = served.admit(training_pod(), "team-a")
        assert placement_of(response) == "Unknown"
        assert "patch" in response
        assert served.metric("cluster_age_seconds") == float("inf")
    record = json.loads((tmp_path / "audit.jsonl").read_text().splitlines()[0])
    assert record["placement"]["message"] == "the view of the cluster is not there yet"


def test_bindings_are_compared_with_predictions(cluster: Cluster, tmp_path: Path) -> None:
    make_cluster(cluster)
    name = 'predictions_total{result="same_node"}'
    with serving(tmp_path, cluster.control_plane.kubeconfig) as served:
        wait_for(lambda: served.metric("cluster_nodes") == 2, "the view")
        pod = training_pod(scheduler="default-scheduler")
        admit_first(served, pod, cluster.namespace)
        assert placement_of(served.admit(pod, cluster.namespace)) == "Feasible"
        assert cluster.wait_bound(cluster.create(pod).object) == "secret-b"
        wait_for(lambda: served.metric(name) == 1, "the comparison")


def test_pod_that_is_bound_at_once_was_wrongly_predicted_to_wait(cluster: Cluster, tmp_path: Path) -> None:
    make_cluster(cluster)
    for node in ("secret-a", "secret-b"):
        cluster.create(make_pod(f"load-{node}").node_name(node).gpu(4))
    name = 'predictions_total{result="predicted_waiting_but_bound"}'
    with serving(tmp_path, cluster.control_plane.kubeconfig) as served:
        wait_for(lambda: served.metric("cluster_pods") == 3, "the view")
        pod = training_pod(scheduler="default-scheduler")
        admit_first(served, pod, cluster.namespace)
        assert placement_of(served.admit(pod, cluster.namespace)) == "Waiting"
        # A pod that does not wait is bound within seconds, too few for kube-scheduler on a busy machine.
        cluster.create({**pod, "spec": {**pod["spec"], "nodeName": "secret-b"}})
        wait_for(lambda: served.metric(name) == 1, "the comparison")


def test_check_reads_the_live_cluster(cluster: Cluster, tmp_path: Path) -> None:
    make_cluster(cluster)
    pod = tmp_path / "pod.json"
    pod.write_bytes(orjson.dumps(make_pod("p").gpu(6).obj()))
    done = command("check", "-f", str(pod), "--kubeconfig", str(cluster.control_plane.kubeconfig), "-o", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["node"] == "secret-b"


def test_snapshot_is_a_cluster_file(cluster: Cluster, tmp_path: Path) -> None:
    make_cluster(cluster)
    file, pod = tmp_path / "cluster.json", tmp_path / "pod.json"
    environment = {**os.environ, "KUBECONFIG": str(cluster.control_plane.kubeconfig)}
    done = command("snapshot", "-o", str(file), env=environment)
    assert done.returncode == 0, done.stderr
    assert b"2 nodes" in done.stderr
    assert done.stdout == b""
    assert list(tmp_path.iterdir()) == [file]
    assert b"managedFields" not in file.read_bytes()
    pod.write_bytes(orjson.dumps(make_pod("p").gpu(6).obj()))
    checked = command("check", "-f", str(pod), "--cluster", str(file), "-o", "json")
    assert json.loads(checked.stdout)["node"] == "secret-b"


def test_snapshot_of_all_kinds_has_them_and_check_reads_them(cluster: Cluster, tmp_path: Path) -> None:
    make_cluster(cluster)
    cluster.create(make_device_class("g", any_driver=True))
    file, kubeconfig = tmp_path / "cluster.json", str(cluster.control_plane.kubeconfig)
    done = command("snapshot", "--kubeconfig", kubeconfig, "--all-kinds", "-o", str(file))
    assert done.returncode == 0, done.stderr
    assert b"1 deviceclasses" in done.stderr
    written = json.loads(file.read_text())
    items = written["items"]
    assert written["serverVersion"]["gitVersion"] == cluster.client.request("GET", "/version").object["gitVersion"]
    kinds = [each["kind"] for each in items]
    assert kinds[:2] == ["Node", "Node"]
    assert {"Pod", "Namespace", "PriorityClass", "DeviceClass"} <= set(kinds)
    pod = tmp_path / "pod.json"
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    pod.write_bytes(orjson.dumps(make_pod("p").spec(volumes=[volume]).obj()))
    live = command("check", "-f", str(pod), "--kubeconfig", kubeconfig, "-o", "json")
    answer = json.loads(live.stdout)
    # A file has no policy in force.
    assert answer.pop("policy")["place"] == "built in; no webhook in namespace placement-webhook"
    assert answer["message"] == (
        '0/2 nodes are available: persistentvolumeclaim "c" not found. '
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert answer["unmodelled"] == []
    # Kinds without an object are known to be empty in the file, too.
    assert {"StorageClassList", "VolumeAttachmentList"} <= set(kinds)
    assert json.loads(command("check", "-f", str(pod), "--cluster", str(file), "-o", "json").stdout) == answer


@pytest.mark.parametrize(
    ("output", "why"),
    [
        pytest.param("missing/cluster.json", "No such file or directory", id="no folder"),
        pytest.param(".", "Is a directory", id="a folder"),
    ],
)
def test_snapshot_reads_no_cluster_if_the_file_is_not_writable(tmp_path: Path, output: str, why: str) -> None:
    done = run_here("snapshot", "--kubeconfig", tmp_path / "nowhere", "-o", tmp_path / output)
    assert done.code == 2
    assert done.errors == f'Error: --output: Invalid value: "{tmp_path / output}"; cannot be written: {why}\n'


def test_missing_kubeconfig_is_bad_input(tmp_path: Path) -> None:
    done = run_here("snapshot", "--kubeconfig", tmp_path / "nowhere")
    assert done.code == 2
    assert "Error: --kubeconfig: Invalid value: " in done.errors


def test_views_are_mutually_exclusive(tmp_path: Path) -> None:
    done = run_here("serve", "--tls-dir", tmp_path, "--in-cluster", "--no-cluster")
    assert done.code == 2
    assert "mutually exclusive" in done.errors

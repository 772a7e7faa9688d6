"""Nothing is lost while replicas, node, certificates and tokens come and go under load.

The tests create thousands of pods through the API server, which calls the webhook by its Service. `failurePolicy` is
Ignore as shipped, so a call that fails is a pod without injection. A server that is killed can lose calls until the
kubelet has noticed: those pods are the ones that `missed` lists.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.client import Client, Object
from tests.controlplane.polling import Stopwatch, wait_for
from tests.node.installation import CERTS_NAMESPACE, CONFIGURATION, NAMESPACE, TEAM, Installation
from tests.node.load import CREATIONS, Load, creating, until
from tests.node.running.configuration import NODE_NAME
from tests.node.running.node import Node
from tests.node.shell import Shell

ADMISSION = "admissionregistration.k8s.io/v1"

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def installed(real_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The webhook, self-managed, and the namespace of a team."""
    shell = Shell(real_node, tmp_path_factory.mktemp("life") / "project")
    with real_node.network():
        made = Installation(real_node, shell)
        made.choose_default_scheduler()
        began = Stopwatch()
        shell("kubectl apply -k deploy/overlays/self-managed")
        made.wait_for_rollout(began, NAMESPACE, CERTS_NAMESPACE)
        made.create_team()
        yield made
    # The network is another one after a power cut.
    with real_node.network():
        Installation(real_node, shell).remove_team()
        shell.run_block("deploy/README.md", "Removal")
        Installation(real_node, shell).wait_removed()


def processes(node: Node, replica: str) -> list[int]:
    """Return the processes of the server in a replica, as the machine numbers them."""
    uid = node.client().get("Pod", replica, NAMESPACE)["metadata"]["uid"]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            in_pod = uid in (folder / "cgroup").read_text()
            if in_pod and b"serve" in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has taken."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def restarts(client: Client, replica: str) -> int:
    statuses = client.get("Pod", replica, NAMESPACE)["status"].get("containerStatuses", [])
    return sum(each["restartCount"] for each in statuses if each["ready"])


def kill(installed: Installation, replica: str, load: Load) -> tuple[float, float]:
    """Kill the server of a replica; return the seconds of the load between which it was away."""
    before = restarts(installed.client, replica)
    (pid,) = processes(installed.node, replica)
    began = load.watch.seconds
    os.kill(pid, signal.SIGKILL)
    wait_restarted(installed.client, replica, before)
    return began, load.watch.seconds


def wait_restarted(client: Client, replica: str, before: int) -> None:
    wait_for(lambda: restarts(client, replica) > before, f"a new server in {replica}", deadline_seconds=120)


def test_a_start_takes_three_seconds_of_one_core_at_most(installed: Installation) -> None:
    for replica in installed.replicas():
        (pid,) = processes(installed.node, replica)
        assert cpu_seconds(pid) <= 3


def test_rollouts(installed: Installation) -> None:
    with creating(installed.node) as load:
        for _ in range(2):
            installed.shell(f"kubectl -n {NAMESPACE} rollout restart deployment/{NAMESPACE}")
            installed.shell(f"kubectl -n {NAMESPACE} rollout status deployment/{NAMESPACE} --timeout=120s")
    load.assert_nothing_lost()


def test_a_server_that_is_killed(installed: Installation) -> None:
    with creating(installed.node, stored=True) as load:
        outages = [kill(installed, replica, load) for replica in installed.replicas()]
    load.assert_lost_only_in(*outages)
    assert_missed(installed, load)


def test_a_server_at_its_memory_limit(installed: Installation) -> None:
    """The kernel kills the server when its container has used up its memory."""
    replica = installed.replicas()[0]
    with creating(installed.node, stored=True) as load:
        before = restarts(installed.client, replica)
        (pid,) = processes(installed.node, replica)
        # The kernel kills the process that is the largest by this score.
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
        began = load.watch.seconds
        use_memory_of(pid, 600 << 20)
        wait_restarted(installed.client, replica, before)
        ended = load.watch.seconds
    load.assert_lost_only_in((began, ended))
    assert_missed(installed, load)
    (status,) = installed.client.get("Pod", replica, NAMESPACE)["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 137


def use_memory_of(pid: int, size: int) -> None:
    """Allocate memory in a process that joins the cgroup of `pid` first."""
    lines = [each.split(":", 2) for each in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    paths = {controllers: path.lstrip("/") for _, controllers, path in lines}
    # cgroup v1 has a hierarchy for memory; v2 has one for all controllers, without a name.
    hierarchy = "memory" if "memory" in paths else ""
    processes_file = Path("/sys/fs/cgroup") / hierarchy / paths[hierarchy] / "cgroup.procs"
    child = os.fork()
    if child == 0:
        try:
            processes_file.write_text(str(os.getpid()))
            held = bytearray(size)
            held[::4096] = b"x" * len(range(0, size, 4096))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_a_drain(installed: Installation) -> None:
    """The PodDisruptionBudget keeps a replica until there is another."""
    with creating(installed.node) as load:
        selector = "app.kubernetes.io/component=server"
        drain = f"kubectl drain {NODE_NAME} --pod-selector={selector} --delete-emptydir-data --timeout=20s"
        outcome = installed.shell(drain, check=False)
        assert "would violate the pod's disruption budget" in outcome.stderr
        installed.shell(f"kubectl uncordon {NODE_NAME}")
        installed.shell(f"kubectl -n {NAMESPACE} rollout status deployment/{NAMESPACE} --timeout=120s")
    load.assert_nothing_lost()


def test_a_restart_of_the_kubelet(installed: Installation) -> None:
    with creating(installed.node) as load:
        installed.node.stop("kubelet")
        wait_for(until(load, load.created + CREATIONS // 10), "creations without a kubelet", deadline_seconds=120)
        installed.node.start_kubelet()
        installed.shell(f"kubectl wait --for=condition=Ready node/{NODE_NAME} --timeout=60s")
    load.assert_nothing_lost()


def test_rotations_of_the_certificates(installed: Installation) -> None:
    expiry = "placement_webhook_certificate_not_after_timestamp_seconds"
    before = installed.metric(expiry)
    with creating(installed.node) as load:
        installed.shell.run_block("docs/certificates.md", "Renewal and rotation")
        # The kubelet writes the new Secret into the volumes up to a minute and a half later.
        wait_for(lambda: installed.metric(expiry) > before, "the new certificate", deadline_seconds=150)
    load.assert_nothing_lost()
    installed.assert_no_call_is_denied()


def test_a_rotation_of_the_token(installed: Installation) -> None:
    """Tokens that the kubelet replaces, after 80 % of the ten minutes that a token lives at least."""
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    ca = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    volume = {"name": "token", "projected": {"sources": [token, ca]}}
    spec: Object = {
        "automountServiceAccountToken": False,
        "volumes": [volume],
        "containers": [
            {
                "name": "webhook",
                "volumeMounts": [
                    {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
                ],
            }
        ],
    }
    patch = {"spec": {"template": {"spec": spec}}}
    installed.client.request(
        "PATCH",
        f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAMESPACE}",
        body=patch,
        content_type="application/strategic-merge-patch+json",
    )
    installed.shell(f"kubectl -n {NAMESPACE} rollout status deployment/{NAMESPACE} --timeout=120s")
    began = Stopwatch()
    with creating(installed.node) as load:
        # Tokens live ten minutes, and a minute of grace.
        wait_for(lambda: began.seconds > 690, "the end of the first token", deadline_seconds=800)
    load.assert_nothing_lost()
    assert max(installed.metrics("placement_webhook_cluster_age_seconds")) < 60
    installed.assert_no_call_is_denied()


def test_all_servers_killed_at_once(installed: Installation) -> None:
    """Ignore lets pods through; `missed` names them all."""
    with creating(installed.node, stored=True) as load:
        wait_for(until(load, 100), "pods before")
        replicas = installed.replicas()
        before = {each: restarts(installed.client, each) for each in replicas}
        for pid in [pid for replica in replicas for pid in processes(installed.node, replica)]:
            os.kill(pid, signal.SIGKILL)
        for replica in replicas:
            wait_restarted(installed.client, replica, before[replica])
        wait_for(until(load, load.created + 100), "pods after")
    assert load.errors == {}
    assert load.not_injected, "no call failed"
    assert_missed(installed, load)


def assert_missed(installed: Installation, load: Load) -> None:
    """The command `missed` lists each pod that was stored without injection."""
    command = f"placement-webhook missed --kubeconfig {installed.node.kubeconfig} -o json"
    missed = installed.shell(command, check=False)
    assert missed.returncode == (3 if load.not_injected else 0)
    assert [each.name for each in load.not_injected if f'"{TEAM}/{each.name}"' not in missed.stdout] == []
    installed.shell(f"kubectl -n {TEAM} delete pods --all --grace-period=0 --force --wait=false")


def test_a_power_cut_under_fail(installed: Installation) -> None:
    """The cluster comes back by itself, although no pod could be created without the webhook."""
    node, kind = installed.node, "MutatingWebhookConfiguration"
    count = len(installed.client.get(kind, CONFIGURATION, api_version=ADMISSION)["webhooks"])
    fail = [{"op": "replace", "path": f"/webhooks/{index}/failurePolicy", "value": "Fail"} for index in range(count)]
    installed.client.patch(kind, CONFIGURATION, fail, api_version=ADMISSION)
    before = {each: restarts(installed.client, each) for each in installed.replicas()}
    node.switch_off()
    node.switch_on()
    with node.network():
        again = Installation(node, installed.shell)
        # Until the kubelet reports anew, the stored status is that from before the power cut.
        for replica, count in before.items():
            wait_restarted(again.client, replica, count)
        again.shell("kubectl -n kube-system rollout status deployment/coredns --timeout=120s")
        with creating(node) as load:
            pass
        load.assert_nothing_lost()

"""`audit --admin-token-file` reads the audit files of replicas from their admin port, through the real API server."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.docs.markdown import ROOT, blocks
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.on_cluster.replicas import audit, kubelet, start_replica
from tests.support.on_cluster.service_account import limited_to
from tests.support.programs.audit_records import make_record
from tests.support.programs.cluster_files import lines
from tests.support.programs.command import Run, run
from tests.support.servers.fake_kubelet import Kubelet
from tests.support.servers.server import LOOPBACK, World, review_bytes
from webhook.audit.writer import AuditWriter
from webhook.runtime.metrics import Metrics
from webhook.serving.http.arrivals import Limits
from webhook.serving.http.audit_archive import AuditArchive
from webhook.serving.http.bearer_token import BearerToken
from webhook.serving.http.health import Health
from webhook.serving.http.listener import Listener

__all__ = ["kubelet", "run"]

LIMITS = Limits(most=8, most_per_address=8, head_seconds=60.0, keepalive_seconds=60.0)
DOCUMENTED = [
    yaml.safe_load(block.text.split("---")[0])["rules"] for block in blocks(ROOT / "docs" / "audit.md", "yaml")
]


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("s3cret\n")
    return path


@pytest.fixture
def admin_port(cluster: Cluster, tmp_path: Path, token: Path) -> Iterator[int]:
    """The admin port of a replica with three records, the last of its admission of the pod `trainer`."""
    file = tmp_path / "audit.jsonl"
    with AuditWriter(file) as writer:
        for number in range(2):
            writer.write(make_record(number))
        pod = make_pod("trainer").annotate(TYPE, "training").gpu(1).obj()
        asked = review_bytes(pod, namespace=cluster.namespace)
        World(audit=writer.write).admissions().answer(asked, 0.0, None)
    health = Health(Metrics(), str, token=BearerToken(token), audit=AuditArchive(str(file)))
    began, ended, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()
    found: list[str] = []

    async def serve() -> None:
        listener = Listener(health.answer, LIMITS)
        found.append(str(await listener.start("--admin-listen", LOOPBACK)))
        began.set()
        await ended.wait()
        await listener.close(0)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert began.wait(30)
    yield int(found[0].rpartition(":")[2])
    loop.call_soon_threadsafe(ended.set)
    thread.join(30)
    loop.close()


@pytest.fixture
def replica(cluster: Cluster, kubelet: Kubelet, tmp_path: Path, admin_port: int) -> Kubelet:
    arguments = ["serve", f"--audit={tmp_path}/audit.jsonl", f"--admin-listen=0.0.0.0:{admin_port}"]
    start_replica(cluster, "webhook-0", args=arguments)
    return kubelet


def test_the_files_are_read_and_verified_with_their_head(
    cluster: Cluster, replica: Kubelet, run: Run, token: Path, admin_port: int
) -> None:
    listed = audit(run, cluster, "list", "-o", "json", "--admin-token-file", str(token))
    verified = audit(run, cluster, "verify", "--admin-token-file", str(token))

    decisions = [json.loads(line)["decision"] for line in listed.output.splitlines()]
    assert (listed.code, listed.errors, decisions[:2]) == (0, "", ["d0000", "d0001"])
    assert (verified.code, verified.output.splitlines()[0]) == (0, "intact: 3 records in 1 chain")
    assert (replica.forwarded, replica.commands) == ([admin_port] * 2, [])


def test_since_bounds_what_is_sent(cluster: Cluster, replica: Kubelet, run: Run, token: Path) -> None:
    outcome = audit(run, cluster, "list", "--since", "2100-01-01", "-o", "json", "--admin-token-file", str(token))

    assert (outcome.code, outcome.output) == (0, "")


def test_a_wrong_token_is_named(cluster: Cluster, replica: Kubelet, run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")

    outcome = audit(run, cluster, "list", "--admin-token-file", str(tmp_path / "other"))

    assert outcome.code == 1
    assert "/audit: 401 Unauthorized: needs the header Authorization: Bearer TOKEN" in outcome.errors
    assert "other" not in outcome.errors.replace("another", "")


def test_without_a_token_no_command_is_run_in_a_container(cluster: Cluster, replica: Kubelet, run: Run) -> None:
    outcome = audit(run, cluster, "list")

    assert (outcome.code, replica.commands, replica.forwarded) == (1, [], [])
    assert "give --admin-token-file to read it from the admin port, or --exec to run a command in" in outcome.errors


def test_a_port_on_which_nothing_listens_is_named(cluster: Cluster, kubelet: Kubelet, run: Run, token: Path) -> None:
    start_replica(cluster, "webhook-0", args=["serve", "--audit=/a", "--admin-listen=127.0.0.1:1"])

    outcome = audit(run, cluster, "list", "--admin-token-file", str(token))

    assert outcome.code == 1
    assert "/portforward: error forwarding port 1: Connection refused" in outcome.errors


def test_the_documented_rights_are_enough_and_needed(
    cluster: Cluster, replica: Kubelet, run: Run, tmp_path: Path, token: Path
) -> None:
    outcomes = []
    for granted in ([*DOCUMENTED[0], *DOCUMENTED[1]], DOCUMENTED[0]):
        with limited_to(cluster, tmp_path, granted) as kubeconfig:
            where = ("--kubeconfig", str(kubeconfig), "--webhook-namespace", cluster.namespace)
            outcome = run("audit", "list", "-o", "json", "--admin-token-file", token, *where)
        outcomes.append(outcome)

    assert [each.code for each in outcomes] == [0, 1]
    assert "you need the verbs get and create on pods/portforward in this namespace" in outcomes[1].errors


@pytest.mark.parametrize("source", ["its file", "its log"])
def test_explain_has_the_record_of_a_running_replica(
    cluster: Cluster, kubelet: Kubelet, run: Run, tmp_path: Path, token: Path, admin_port: int, source: str
) -> None:
    file = tmp_path / "audit.jsonl"
    arguments = [f"--audit={file}", f"--admin-listen=0.0.0.0:{admin_port}"] if source == "its file" else ["--audit=-"]
    start_replica(cluster, "webhook-0", args=["serve", *arguments])
    kubelet.logs["webhook-0", False] = b"a line of another form\n" + file.read_bytes()
    cluster.create(make_pod("trainer"))
    where = ("--kubeconfig", cluster.control_plane.kubeconfig, "-n", cluster.namespace)
    options = ("--webhook-namespace", cluster.namespace, "--admin-token-file", token)

    text, outcome = (run("explain", "pod/trainer", *where, *options, *form) for form in ((), ("-o", "json")))

    (found,) = lines(outcome.output)
    assert (found["audit"]["name"], found["audit"]["outcome"]) == ("trainer", "Patched")
    assert f"audit record {found['audit']['decision']}: Patched at " in text.output


def test_explain_prints_the_cluster_of_the_environment_once(
    cluster: Cluster, replica: Kubelet, run: Run, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(make_pod("trainer"))
    monkeypatch.setenv("KUBECONFIG", str(cluster.control_plane.kubeconfig))
    where = ("-n", cluster.namespace, "--webhook-namespace", cluster.namespace, "--admin-token-file", token)

    outcome = run("explain", "pod/trainer", *where)

    assert outcome.code == 0
    assert outcome.errors.count("cluster: context ") == 1

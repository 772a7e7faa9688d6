"""`audit --kubeconfig` reads the records of all running replicas through the real API server."""

import asyncio
import resource
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.docs.markdown import ROOT, blocks
from tests.support.on_cluster.replicas import LOG_LINE, audit, kubelet, log_of, start_replica
from tests.support.on_cluster.service_account import limited_to
from tests.support.programs.command import Run, run
from tests.support.servers.fake_kubelet import Kubelet
from webhook.cli.records import replica_logs
from webhook.cli.records.audit_source import Source
from webhook.cli.records.replica_logs import ReplicaSelection
from webhook.watch.api_server import ApiServer, ClientConfig

__all__ = ["kubelet", "run"]


@pytest.fixture
def replicas(cluster: Cluster, kubelet: Kubelet) -> Kubelet:
    """Two replicas, the second restarted, and one that has not started; admissions 0 to 5 are theirs by turns."""
    start_replica(cluster, "webhook-a")
    start_replica(cluster, "webhook-b", restarted=True)
    start_replica(cluster, "webhook-c", started=False)
    kubelet.logs = {
        ("webhook-a", False): log_of(0, 2, 5, replica="webhook-a"),
        ("webhook-b", True): log_of(1, 3, replica="webhook-b"),
        ("webhook-b", False): log_of(4, replica="webhook-b"),
    }
    return kubelet


def test_records_of_all_replicas_are_listed_in_the_order_of_time(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    outcome = audit(run, cluster, "list", "-o", "json")

    assert (outcome.code, outcome.errors) == (0, "")
    assert [line.partition('"decision":"')[2][:5] for line in outcome.output.splitlines()] == [
        f"d{number:04}" for number in range(6)
    ]


def test_since_bounds_what_is_read(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    audit(run, cluster, "list", "--since", "2026-05-01T08:00:04Z", "-o", "json")

    assert {query["sinceTime"] for _, query in replicas.asked} == {"2026-05-01T08:00:04Z"}
    assert all(int(query["limitBytes"]) > 0 for _, query in replicas.asked)


def test_each_chain_is_verified_by_itself(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    outcome = audit(run, cluster, "verify")

    assert outcome.code == 0, outcome
    assert outcome.output.startswith("intact: 6 records in 3 chains\n")
    assert "files     webhook-b (before its restart)\n" in outcome.output


def test_a_record_that_was_cut_out_is_found_in_its_replica(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    lines = replicas.logs["webhook-a", False].splitlines(keepends=True)
    replicas.logs["webhook-a", False] = b"".join(line for line in lines if b'"d0002"' not in line)

    outcome = audit(run, cluster, "verify")

    assert outcome.code == 2
    assert "cut out: 1 record" in outcome.errors
    assert "webhook-a:" in outcome.errors


def test_one_record_is_shown_and_the_others_are_counted(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    assert "in replica webhook-b" in audit(run, cluster, "show", "d0003").output
    assert audit(run, cluster, "summary").output.startswith("6 records\n")


def test_a_replica_that_cannot_be_read_is_named_and_the_exit_code_is_1(
    cluster: Cluster, replicas: Kubelet, run: Run
) -> None:
    del replicas.logs["webhook-b", True]

    outcome = audit(run, cluster, "list", "-o", "json")

    assert outcome.code == 1
    assert len(outcome.output.splitlines()) == 4
    assert outcome.errors.startswith("warning: webhook-b (before its restart): not all of its log was read: ")


def test_a_log_that_ends_within_a_record_is_reported(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    replicas.logs["webhook-a", False] = replicas.logs["webhook-a", False].partition(b'"d0005"')[0]

    outcome = audit(run, cluster, "list", "-o", "json")

    assert len(outcome.output.splitlines()) == 5
    assert "warning: webhook-a:" in outcome.errors
    assert "not an audit record, left out" in outcome.errors


def test_logs_without_any_record_are_reported(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    replicas.logs = dict.fromkeys(replicas.logs, LOG_LINE)

    recent = audit(run, cluster, "list", "-o", "json", "--since", "1h")
    outcome = audit(run, cluster, "list", "-o", "json")

    assert (recent.code, recent.errors) == (0, outcome.errors)
    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors == "no replica has an audit record\n"


def rotate(replicas: Kubelet) -> None:
    """Leave only the newest record of webhook-a in its log."""
    replicas.logs["webhook-a", False] = LOG_LINE + replicas.logs["webhook-a", False].split(LOG_LINE)[-2] + LOG_LINE


@pytest.mark.parametrize("command", [("list",), ("show", "d0005"), ("show", "d0000"), ("summary",)], ids=" ".join)
@pytest.mark.parametrize("since", [(), ("--since", "2026-05-01T08:00:04Z")], ids=["all", "since"])
def test_what_the_kubelet_rotated_away_is_reported_in_one_line(
    cluster: Cluster, replicas: Kubelet, run: Run, command: tuple[str, ...], since: tuple[str, ...]
) -> None:
    rotate(replicas)

    outcome = audit(run, cluster, *command, *since)

    assert outcome.code == (2 if "d0000" in command else 0)
    reason = "written before --since, or rotated away" if since else "rotated away"
    missing = "webhook-a: 2 records before 2026-05-01T08:00:05"
    (line, *others) = outcome.errors.splitlines()
    assert line.startswith(f"warning: not in the logs that the kubelet keeps: {missing}")
    assert line.endswith(f": {reason}")
    assert len(others) == ("d0000" in command)


def test_an_empty_table_is_explained(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    rotate(replicas)

    outcome = audit(run, cluster, "list", "--user", "nobody")

    assert outcome.code == 0
    assert "webhook-a: 2 records before" in outcome.errors
    assert "no record that was read is selected\n" in outcome.errors


def test_verify_reports_a_rotated_log_once(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    rotate(replicas)
    outcome = audit(run, cluster, "verify")
    assert (outcome.code, outcome.errors) == (0, "")
    assert "the chain continues here: 2 records before it, not in these files" in outcome.output


def test_a_replica_that_writes_a_file_is_named_with_the_way_to_read_it(
    cluster: Cluster, replicas: Kubelet, run: Run
) -> None:
    start_replica(cluster, "webhook-d", args=["serve", "--audit=/var/log/placement-webhook/audit.jsonl"])
    replicas.logs["webhook-d", False] = log_of(6, replica="webhook-d")

    outcome = audit(run, cluster, "list", "-o", "json")

    assert (outcome.code, len(outcome.output.splitlines())) == (1, 6)
    assert outcome.errors == (
        "warning: webhook-d: not all of its log was read: its records are in /var/log/placement-webhook/audit.jsonl: "
        "copy that file with kubectl cp, or run `placement-webhook audit` in the container\n"
    )


def test_the_records_of_all_replicas_are_exported_into_one_file(
    cluster: Cluster, replicas: Kubelet, run: Run, tmp_path: Path
) -> None:
    outcome = audit(run, cluster, "export", "-o", str(tmp_path / "all.jsonl"))

    assert (outcome.code, outcome.output, outcome.errors) == (0, "", "")
    assert run("audit", "summary", tmp_path / "all.jsonl").output.startswith("6 records\n")


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_temporary_folder_is_one_error(
    cluster: Cluster, replicas: Kubelet, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas.logs["webhook-a", False] = bytes(2**20)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with files_of_at_most(2**16):
        outcome = audit(run, cluster, "list")

    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors.startswith(f"Error: TMPDIR {tmp_path}: File too large: the records that are read are kept")
    assert outcome.errors.endswith("give --since, or set TMPDIR to a folder with more room\n")
    assert not [*tmp_path.glob("placement-webhook-audit-*")]


def test_without_a_readable_replica_nothing_is_verified(cluster: Cluster, kubelet: Kubelet, run: Run) -> None:
    start_replica(cluster, "webhook-0", started=False)

    outcome = audit(run, cluster, "verify")

    assert outcome.code == 2
    place = "--selector app.kubernetes.io/name=placement-webhook,app.kubernetes.io/component=server"
    assert f"Error: {place}: Required value: nothing could be read, so nothing can be verified; " in outcome.errors


def test_no_selected_pod_is_an_error(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    outcome = audit(run, cluster, "list", "--selector", "app=other")

    assert outcome.code == 2
    assert f'--selector: Invalid value: "app=other"; selects no pod in namespace {cluster.namespace}' in outcome.errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--kubeconfig", "k", "audit.jsonl"), "leave FILE out"),
        (("list", "--selector", "a=b"), "need --kubeconfig or --context"),
        (("verify", "--since", "1h"), "need --kubeconfig or --context"),
    ],
)
def test_options_that_contradict_each_other(run: Run, arguments: tuple[str, ...], message: str) -> None:
    outcome = run("audit", *arguments)

    assert outcome.code == 2
    assert message in outcome.errors


DOCUMENTED = yaml.safe_load(next(block.text for block in blocks(ROOT / "docs" / "audit.md", "yaml")).split("---")[0])


def test_the_documented_rights_are_enough(cluster: Cluster, replicas: Kubelet, run: Run, tmp_path: Path) -> None:
    with limited_to(cluster, tmp_path, DOCUMENTED["rules"]) as kubeconfig:
        where = ("--kubeconfig", str(kubeconfig), "--webhook-namespace", cluster.namespace)
        outcome = run("audit", "verify", *where)

    assert (outcome.code, outcome.errors) == (0, "")


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        (0, 'Error: GET /api/v1/namespaces/{namespace}/pods: 403 pods is forbidden: User "system:serviceaccount:'),
        (
            1,
            "warning: webhook-a: not all of its log was read: GET /api/v1/namespaces/{namespace}/pods/webhook-a/log: 4",
        ),
    ],
    ids=["without the right to list pods", "without the right to read logs"],
)
def test_each_of_them_is_needed(
    cluster: Cluster, replicas: Kubelet, run: Run, tmp_path: Path, left_out: int, message: str
) -> None:
    rules = [rule for number, rule in enumerate(DOCUMENTED["rules"]) if number != left_out]
    with limited_to(cluster, tmp_path, rules) as kubeconfig:
        outcome = run("audit", "list", "--kubeconfig", str(kubeconfig), "--webhook-namespace", cluster.namespace)

    assert outcome.code == 1
    assert outcome.errors.startswith(message.format(namespace=cluster.namespace))


def test_a_list_of_replicas_that_begins_again_has_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def list_pages(*given: Any) -> None:
        take = given[3]
        for name, begins in (("old", True), ("b", True), ("a", False)):
            await take([{"metadata": {"name": name}}], begins)

    monkeypatch.setattr(replica_logs, "list_pages", list_pages)
    found = asyncio.run(replica_logs._pods(ApiServer.__new__(ApiServer), ReplicaSelection(ClientConfig(None))))
    assert [each["metadata"]["name"] for each in found] == ["a", "b"]


@pytest.mark.parametrize(("since", "unread"), [(None, 1), (datetime(2026, 5, 1, tzinfo=UTC), 0)])
def test_only_a_quiet_hour_is_no_fault(
    since: datetime | None, unread: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replica_logs, "download", lambda *_: ())
    source = Source((), ReplicaSelection(ClientConfig(None), since=since))

    with source.opened() as sources:
        assert not sources.has_records

    assert (source.unread, capsys.readouterr().err) == (unread, "no replica has an audit record\n")


def logs_of(statuses: list[Any], containers: list[Any], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return name, container and `previous` of each log that is read of a pod, or its name and problem."""
    asked: list[Any] = []

    def chunks(_: object, path: str, query: Any, seconds: float) -> AsyncGenerator[bytes, None]:
        asked.append((path, query, seconds))
        return cast("AsyncGenerator[bytes, None]", None)

    monkeypatch.setattr(ApiServer, "chunks", chunks)
    pod = {"metadata": {"name": "a"}, "spec": {"containers": containers}, "status": {"containerStatuses": statuses}}
    found = [*replica_logs._logs_of(ApiServer.__new__(ApiServer), ReplicaSelection(ClientConfig(None)), pod)]
    if any(each.problem for each in found):
        return [(each.name, each.problem) for each in found]
    assert all(path == "/api/v1/namespaces/placement-webhook/pods/a/log" for path, *_ in asked)
    queries = [(query["container"], query.get("previous")) for _, query, _ in asked]
    return [(each.name, *query) for each, query in zip(found, queries, strict=True)]


RESTARTED = {"lastState": {"terminated": {"exitCode": 1}}}
RUNNING, ENDED = {"state": {"running": {"startedAt": "t"}}}, {"state": {"terminated": {"exitCode": 0}}}
BEFORE = ("a (before its restart)", "webhook", "true")
NOW = ("a", "webhook", None)


@pytest.mark.parametrize(
    ("status", "logs"),
    [
        pytest.param(RUNNING, [NOW], id="running"),
        pytest.param(ENDED, [NOW], id="ended"),
        pytest.param(RESTARTED | RUNNING, [BEFORE, NOW], id="restarted"),
        pytest.param(RESTARTED | {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}, [BEFORE, NOW], id="crashes"),
        pytest.param({"state": {"waiting": {"reason": "ContainerCreating"}}}, [], id="not started"),
    ],
)
def test_a_replica_has_the_logs_of_its_starts(
    status: dict[str, Any], logs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    containers = [{"name": "sidecar"}, {"name": "webhook"}]
    statuses = [{"name": "sidecar", **RUNNING}, {"name": "webhook", **status}]

    assert logs_of(statuses, containers, monkeypatch) == logs


def test_the_first_container_is_read_if_none_is_called_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    containers = [{"name": "server"}, {"name": "sidecar"}]
    statuses = [{"name": "sidecar"}, {"name": "server", **RUNNING}]

    assert logs_of(statuses, containers, monkeypatch) == [("a", "server", None)]


def test_a_log_that_is_too_large_is_read_in_part_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def chunks() -> AsyncGenerator[bytes, None]:
        for _ in range(3):
            yield b"12345"

    monkeypatch.setattr(replica_logs, "_MOST_LOG_BYTES", 10)
    log = replica_logs._Log("a", chunks())

    found = asyncio.run(replica_logs._read(log, tmp_path / "0", asyncio.Semaphore(1)))

    assert found.problem == "it is larger than 10 bytes: give --since"
    assert (tmp_path / "0").read_bytes() == b"1234512345"

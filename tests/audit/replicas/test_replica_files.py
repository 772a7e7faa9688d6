"""`audit --kubeconfig` reads the audit files of replicas that write to a volume, through the real API server."""

import json
import resource
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.docs.markdown import ROOT, blocks
from tests.support.on_cluster.replicas import audit as audit_replicas
from tests.support.on_cluster.replicas import kubelet, log_of, start_replica
from tests.support.on_cluster.service_account import limited_to
from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from tests.support.programs.command import Outcome, Run, run
from tests.support.servers.fake_kubelet import Kubelet
from webhook.audit.lines import digest

__all__ = ["kubelet", "run"]


def audit(run: Run, cluster: Cluster, command: str, *arguments: str) -> Outcome:
    """Run `audit COMMAND` on the replicas, whose files a command in their containers prints."""
    return audit_replicas(run, cluster, command, "--exec", *arguments)


def write_files(folder: Path, *numbers: Sequence[int], replica: str) -> Path:
    """Write the chain of these admissions into an audit file with rotated files, the oldest first, and a head."""
    folder.mkdir()
    path = folder / "audit.jsonl"
    lines = chain_lines([make_record(number, replica=replica) for file in numbers for number in file])
    (folder / "audit.jsonl.head").write_text(f"{len(lines):020} {digest(lines[-1])}\n")
    rest = iter(lines)
    for count, file in zip(range(len(numbers) - 1, -1, -1), numbers, strict=True):
        write_lines(folder / f"audit.jsonl.{count}" if count else path, [next(rest) for _ in file])
    return path


@pytest.fixture
def replicas(cluster: Cluster, kubelet: Kubelet, tmp_path: Path) -> Kubelet:
    """A replica with three files, one with a file named by a variable, and one that prints; 0 to 7 are theirs.

    What the first two could not write is in their logs, as their records are in the third's.
    """
    first = write_files(tmp_path / "webhook-0", [0, 1], [3], [6], replica="webhook-0")
    write_files(tmp_path / "webhook-1", [2, 5], replica="webhook-1")
    name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    start_replica(cluster, "webhook-0", args=["serve", f"--audit={first}"], restarted=True)
    arguments = ["serve", "--audit", f"{tmp_path}/$(POD_NAME)/audit.jsonl"]
    start_replica(cluster, "webhook-1", args=arguments, env=[name])
    start_replica(cluster, "webhook-2", args=["serve", "--audit=-"])
    kubelet.logs = {
        ("webhook-0", False): log_of(8, replica="webhook-0"),
        ("webhook-1", False): log_of(9, replica="webhook-1"),
        ("webhook-2", False): log_of(4, 7, replica="webhook-2"),
    }
    return kubelet


def decisions(output: str) -> list[int]:
    return [int(json.loads(line)["decision"][1:]) for line in output.splitlines()]


def test_files_and_logs_are_merged_and_lost_records_are_left_out(cluster: Cluster, replicas: Kubelet, run: Run) -> None:
    outcome = audit(run, cluster, "list", "-o", "json")

    assert (outcome.code, outcome.errors) == (0, "")
    assert decisions(outcome.output) == [*range(8)]


DOCUMENTED = [
    yaml.safe_load(block.text.split("---")[0])["rules"] for block in blocks(ROOT / "docs" / "audit.md", "yaml")
]


@pytest.fixture
def replica(cluster: Cluster, kubelet: Kubelet, tmp_path: Path) -> Kubelet:
    """One replica with three files."""
    path = write_files(tmp_path / "webhook-0", [0, 1], [2], [3], replica="webhook-0")
    start_replica(cluster, "webhook-0", args=["serve", f"--audit={path}"])
    return kubelet


def test_the_chain_is_verified_with_rotated_files_and_head_by_the_documented_rights(
    cluster: Cluster, replica: Kubelet, run: Run, tmp_path: Path
) -> None:
    with limited_to(cluster, tmp_path, [*DOCUMENTED[0], *DOCUMENTED[2]]) as kubeconfig:
        where = ("--exec", "--kubeconfig", str(kubeconfig), "--webhook-namespace", cluster.namespace)
        outcome = run("audit", "verify", "-o", "json", *where)

    assert (outcome.code, outcome.errors) == (0, "")
    (chain,) = json.loads(outcome.output)["chains"]
    assert chain["files"] == ["webhook-0/audit.jsonl.2", "webhook-0/audit.jsonl.1", "webhook-0/audit.jsonl"]
    assert (chain["records"], chain["complete"]) == (4, True)
    # The head is there, so nothing can be missing at the end.
    assert json.loads(outcome.output)["notes"] == []


def test_records_that_were_cut_off_are_found_by_the_head(
    cluster: Cluster, replica: Kubelet, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "webhook-0" / "audit.jsonl").write_text("")

    outcome = audit(run, cluster, "verify")

    assert outcome.code == 2
    assert "is gone or empty, but webhook-0/audit.jsonl.head counts 4 records" in outcome.errors


def test_files_that_do_not_arrive_whole_are_reported_and_lack_the_oldest_records(
    cluster: Cluster, replica: Kubelet, run: Run
) -> None:
    replica.lost_after = 4096

    outcome = audit(run, cluster, "list", "--since", "2026-05-01T08:00:01Z", "-o", "json")

    assert (outcome.code, decisions(outcome.output)) == (1, [3])
    assert replica.commands[0][3:5] == ["--since", "2026-05-01T08:00:01+00:00"]
    assert "warning: webhook-0: not all of its audit files was read: " in outcome.errors
    assert "the response is incomplete: it has no status" in outcome.errors


def test_a_replica_whose_files_cannot_be_read_is_named(cluster: Cluster, kubelet: Kubelet, run: Run) -> None:
    start_replica(cluster, "webhook-0", args=["serve", "--audit=/nowhere/audit.jsonl"])
    start_replica(cluster, "webhook-1", started=False, args=["serve", "--audit=/var/log/audit.jsonl"])

    start_replica(cluster, "webhook-2", args=["serve", "--audit=/var/log/audit.jsonl"])
    kubelet.refused["webhook-2"] = b'container not found ("webhook")'

    outcome = audit(run, cluster, "list")

    assert outcome.code == 1
    assert '500 container not found ("webhook"): the container may have ended: try again' in outcome.errors
    assert 'FILE: Invalid value: "/nowhere/audit.jsonl"; there is no such file' in outcome.errors
    assert "warning: webhook-1: not all of its audit files was read: its container does not run" in outcome.errors


def test_without_a_readable_replica_nothing_is_verified(cluster: Cluster, kubelet: Kubelet, run: Run) -> None:
    start_replica(cluster, "webhook-0", started=False, args=["serve", "--audit=/var/log/audit.jsonl"])

    outcome = audit(run, cluster, "verify")

    assert outcome.code == 2
    place = "--selector app.kubernetes.io/name=placement-webhook,app.kubernetes.io/component=server"
    assert f"Error: {place}: Required value: nothing could be read, so nothing can be verified; " in outcome.errors


def archive(*members: tuple[str, bytes], size_bytes: int | None = None) -> bytes:
    """An archive of these files; each header states `size_bytes` if it is given."""
    blocks_ = []
    for name, content in members:
        header = tarfile.TarInfo(name)
        header.size = len(content) if size_bytes is None else size_bytes
        blocks_ += [header.tobuf(tarfile.GNU_FORMAT), content, bytes(-len(content) % tarfile.BLOCKSIZE)]
    return b"".join(blocks_) + bytes(2 * tarfile.BLOCKSIZE)


ODD = {
    b"a wrapper script says hello\n" * 100: "no archive of audit files: invalid header; run `audit export` in its",
    archive(("audit.jsonl", b"x"), size_bytes=2**70): "it ends within 'audit.jsonl'; read or copy it again",
    archive(("\x1b[31m\udcff.jsonl", b"x\n"), size_bytes=2**63): r"it ends within '\x1b[31m\udcff.jsonl'",
}


def test_replicas_with_odd_output_hide_no_record_of_the_others(cluster: Cluster, replica: Kubelet, run: Run) -> None:
    for number, printed in enumerate(ODD):
        start_replica(cluster, f"odd-{number}", args=["serve", "--audit=/var/log/audit.jsonl"])
        replica.printed[f"odd-{number}"] = printed

    outcome = audit(run, cluster, "list", "-o", "json")

    assert (outcome.code, decisions(outcome.output)) == (1, [0, 1, 2, 3])
    for number, problem in enumerate(ODD.values()):
        warning = f"warning: odd-{number}: not all of its audit files was read: {problem}"
        assert warning in outcome.errors


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
    cluster: Cluster, kubelet: Kubelet, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_replica(cluster, "webhook-0", args=["serve", "--audit=/var/log/audit.jsonl"])
    kubelet.printed["webhook-0"] = bytes(2**20)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with files_of_at_most(2**16):
        outcome = audit(run, cluster, "list")

    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors.startswith(f"Error: TMPDIR {tmp_path}: File too large: the records that are read are kept")
    assert outcome.errors.endswith("give --since, or set TMPDIR to a folder with more room\n")
    assert not [*tmp_path.glob("placement-webhook-audit-*")]


def test_a_damaged_head_is_a_fault_of_verify_alone(
    cluster: Cluster, replica: Kubelet, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "webhook-0" / "audit.jsonl.head").write_text("junk")

    listed = audit(run, cluster, "list", "-o", "json")
    verified = audit(run, cluster, "verify")

    assert (listed.code, listed.errors, decisions(listed.output)) == (0, "", [0, 1, 2, 3])
    assert (verified.code, "4 records in 1 chain" in verified.output) == (2, True)
    assert verified.errors.startswith(
        'Error: webhook-0/audit.jsonl.head: Invalid value: "junk"; holds no sequence and hash, so records cut off at'
    )


@pytest.mark.parametrize("verbs", [["get"], ["create"]])
def test_a_missing_right_is_named(
    cluster: Cluster, replica: Kubelet, run: Run, tmp_path: Path, verbs: list[str]
) -> None:
    rule = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs}
    with limited_to(cluster, tmp_path, [*DOCUMENTED[0], rule]) as kubeconfig:
        where = ("--exec", "--kubeconfig", str(kubeconfig), "--webhook-namespace", cluster.namespace)
        outcome = run("audit", "list", "-o", "json", *where)

    assert (outcome.code, outcome.output, replica.commands) == (1, "", [])
    assert '/exec: 403 pods "webhook-0" is forbidden: ' in outcome.errors
    assert ": to read an audit file you need the verbs get and create on pods/exec in this namespace" in outcome.errors


def test_an_archive_that_is_cut_off_is_incomplete_and_not_torn(cluster: Cluster, kubelet: Kubelet, run: Run) -> None:
    start_replica(cluster, "webhook-0", args=["serve", "--audit=/var/log/audit.jsonl"])
    lines = [line + b"\n" for line in chain_lines([make_record(number) for number in range(4)])]
    whole = archive(("audit.jsonl", b"".join(lines[2:])), ("audit.jsonl.1", b"".join(lines[:2])))
    kubelet.printed["webhook-0"] = whole[: whole.rindex(b'"decision"')]

    listed = audit(run, cluster, "list", "-o", "json")
    verified = audit(run, cluster, "verify")

    assert (listed.code, decisions(listed.output)) == (1, [0, 2, 3])
    # Record 1 was not read: a chain cannot go on from record 0.
    assert (verified.code, verified.output.splitlines()[0]) == (1, "intact: 2 records in 1 chain")
    assert listed.errors == verified.errors
    assert verified.errors == (
        "warning: webhook-0: not all of its audit files was read: "
        "it ends within 'audit.jsonl.1'; read or copy it again\n"
    )

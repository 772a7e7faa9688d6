"""The files and the streams that `audit` commands read."""

import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.support.programs.audit_records import make_record
from tests.support.programs.command import Outcome, Run, run_here
from tests.support.servers.fake_configuration_api import fake_api
from webhook.audit.head import SUFFIX, head_path
from webhook.audit.pods import SUFFIXES as POD_SUFFIXES
from webhook.cli.records.audit_source import Source, _head_paths, _report_cut_logs
from webhook.cli.records.replica_logs import ReplicaSelection
from webhook.watch.api_server import ClientConfig

if TYPE_CHECKING:
    from webhook.audit.sources import Sources

OTHERS = {
    "a log": (b'{"level":"info"}\nnot JSON\n', '{"level":"info"}'),
    "text": (b"what is this", "what is this"),
    "bytes": (bytes(range(128, 256)), "\ufffd"),
}


class TestAnotherFile:
    """A file without a record is no audit log, in any command."""

    @pytest.mark.parametrize("name", OTHERS)
    @pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"], ["verify"]], ids=" ".join)
    def test_is_refused(self, audit: Run, tmp_path: Path, command: list[str], name: str) -> None:
        text, shown = OTHERS[name]
        (tmp_path / "other").write_bytes(text)
        ran = audit(*command, "other")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith(f"Error: other: Invalid value: {json.dumps(shown, ensure_ascii=False)[:-1]}")
        assert ran.errors.endswith("; holds no audit record; give the file of `serve --audit`\n")

    @pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"]], ids=" ".join)
    def test_on_standard_input_is_refused_at_its_end(self, command: list[str]) -> None:
        ran = run_here("audit", *command, "-", stdin=OTHERS["a log"][0])
        assert ran.code == 2
        assert ran.errors.splitlines()[-1].endswith("; holds no audit record; give the output of `serve --audit`")

    def test_that_is_compressed_names_the_way_to_read_it(self, audit: Run, tmp_path: Path, lines: list[bytes]) -> None:
        (tmp_path / "audit.jsonl.1.gz").write_bytes(gzip.compress(b"\n".join(lines)))
        ran = audit("list", "audit.jsonl.1.gz")
        assert (ran.code, ran.output) == (2, "")
        assert "is compressed; pipe it: `zcat FILE | placement-webhook audit list -`" in ran.errors


@pytest.mark.parametrize("command", [["list"], ["show", "d"], ["summary"], ["verify"]], ids=lambda command: command[0])
class TestAnyCommand:
    def test_without_a_file_says_what_to_give(self, audit: Run, command: list[str]) -> None:
        assert audit(*command) == Outcome(
            2,
            "",
            "Error: FILE: Required value: there is no audit.jsonl in this folder; "
            "name audit files, or - for standard input\n",
        )

    def test_of_a_missing_file_names_it(self, audit: Run, command: list[str]) -> None:
        ran = audit(*command, "absent.jsonl")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith('Error: absent.jsonl: Invalid value: "No such file or directory"; ')

    def test_of_a_folder_names_it(self, audit: Run, command: list[str]) -> None:
        ran = audit(*command, ".")
        assert (ran.code, ran.output) == (2, "")
        assert ran.errors.startswith('Error: .: Invalid value: "Is a directory"; ')

    def test_has_help_with_examples(self, audit: Run, command: list[str]) -> None:
        ran = audit(command[0], "--help")
        assert ran.code == 0
        assert f"\n  placement-webhook audit {command[0]} " in ran.output


@pytest.mark.parametrize("others", [2, 5, 7])
def test_of_many_cut_logs_five_are_named(others: int, capsys: pytest.CaptureFixture[str]) -> None:
    logs = {f"webhook-{number}": replace(make_record(), sequence=number + 2) for number in range(others)}
    sources = cast("Sources", SimpleNamespace(cut_logs=logs))

    _report_cut_logs(sources, ReplicaSelection(ClientConfig(None)))

    text = capsys.readouterr().err
    assert text.startswith(
        "warning: not in the logs that the kubelet keeps: "
        "webhook-0: 1 record before 2026-05-01T08:00:00.000000Z; webhook-1: 2 records before "
    )
    assert text.count("webhook-") == min(others, 5)
    assert ("; 2 other logs: rotated away" in text) == (others == 7)


@pytest.mark.parametrize(
    ("unread", "since", "is_partial"),
    [(0, None, False), (1, None, True), (0, datetime(2026, 5, 1, tzinfo=UTC), True)],
)
def test_records_are_partial_if_a_replica_was_not_read_or_older_ones_were_left_out(
    unread: int, since: datetime | None, is_partial: bool
) -> None:
    source = Source((), ReplicaSelection(ClientConfig(None), since=since), unread)

    assert source.is_partial == is_partial
    assert not Source(("audit.jsonl",), None).is_partial


@pytest.mark.usefixtures("lines")
def test_files_of_pods_and_heads_that_a_pattern_matches_are_no_logs(audit: Run, tmp_path: Path) -> None:
    names = ["audit.jsonl", *(f"audit.jsonl{each}" for each in (SUFFIX, *POD_SUFFIXES))]
    for name in names[1:]:
        (tmp_path / name).write_bytes(b"nothing that is a record\n")

    ran = audit("list", "-o", "json", *names)

    assert (ran.code, ran.errors, len(ran.output.splitlines())) == (0, "", 4)


def test_a_head_file_is_that_of_rotated_files_only_if_their_log_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    rotated = Path(f"{log}.1")

    assert _head_paths(str(rotated)) == [head_path(rotated), head_path(log)]
    assert _head_paths(f"{log}.old") == [head_path(Path(f"{log}.old"))]
    assert _head_paths(f"{log}{SUFFIX}") == [head_path(log)]
    log.touch()
    assert _head_paths(str(rotated)) == [head_path(rotated)]
    assert _head_paths(f"{log}{POD_SUFFIXES[0]}") == []


def test_a_replica_that_writes_a_file_is_named_with_the_way_to_read_it(tmp_path: Path) -> None:
    """Its log has no records, so the exit code is 1."""

    def pod(name: str, *arguments: str) -> dict[str, Any]:
        spec = {"containers": [{"name": "webhook", "args": ["serve", *arguments]}]}
        status = {"containerStatuses": [{"name": "webhook", "state": {"waiting": {}}}]}
        return {"metadata": {"name": name}, "spec": spec, "status": status}

    items = [pod("b", "--audit", "/data/audit.jsonl"), pod("a", "--audit=/data/a.jsonl", "--audit=-")]
    with fake_api() as api:
        api.objects["/api/v1/namespaces/placement-webhook/pods"] = {"metadata": {}, "items": items}
        ran = run_here("audit", "list", "--kubeconfig", api.kubeconfig(tmp_path))

    assert ran.code == 1
    warning = (
        "warning: b: not all of its log was read: its records are in /data/audit.jsonl: copy that file with kubectl"
    )
    assert ran.errors.startswith(warning)
    assert ran.errors.endswith("no replica has an audit record\n")
    assert "warning: a: " not in ran.errors

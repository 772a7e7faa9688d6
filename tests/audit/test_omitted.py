"""Admissions without a record in the file are counted by a record of the writer itself, so none is lost silently."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson
import pytest
from structlog.testing import capture_logs

from tests.support.programs.audit_records import at, make_record
from tests.support.programs.command import run_here
from webhook.audit import writer
from webhook.audit.chain import Verification, verify
from webhook.audit.file import AuditFile
from webhook.audit.head import head_path, read_head
from webhook.audit.lines import seal
from webhook.audit.omitted import OmittedDryRuns
from webhook.audit.record import FIRST, Omitted, parse_line
from webhook.audit.sources import Sources
from webhook.audit.writer import DRY_RUN_SHARE_BYTES, AuditWriter

WINDOW_SECONDS = 600


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def disk(*, is_full: bool) -> Iterator[None]:
    with capture_logs(), pytest.MonkeyPatch.context() as patched:
        if is_full:
            patched.setattr(AuditFile, "append", full)
        yield


@dataclass
class Log:
    """An audit file, and the processes that write it one after the other."""

    path: Path
    errors: IO[bytes]
    now: str = at(0)
    results: list[str] = field(default_factory=list)

    def writer(self) -> AuditWriter:
        return AuditWriter(
            self.path,
            now=lambda: self.now,
            replica="webhook-0",
            on_result=self.results.append,
            error_descriptor=self.errors.fileno(),
        )

    def write(self, *numbers: int, is_full: bool = False) -> None:
        """Write the records in a process of their own."""
        with disk(is_full=is_full), self.writer() as writer:
            for number in numbers:
                writer.write(make_record(number))

    def lines(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in self.path.read_bytes().splitlines()]

    def omitted(self) -> list[Omitted]:
        records = map(parse_line, self.path.read_bytes().splitlines())
        return [each.omitted for each in records if each.omitted is not None]

    def verify(self) -> Verification:
        head = read_head(head_path(self.path))
        assert head is not None
        with Sources.of_files([str(self.path)]) as sources:
            return verify(sources.lines(), kept_heads={"head": head})


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with (tmp_path / "errors").open("wb") as errors:
        yield Log(tmp_path / "audit.jsonl", errors)


class TestAfterAFullDisk:
    def test_the_next_start_writes_the_gap_before_any_admission(self, log: Log) -> None:
        log.write(1)
        log.write(2, 3, is_full=True)
        log.now = at(60)
        with capture_logs(), log.writer():
            last = log.lines()[-1]

        assert [each["sequence"] for each in log.lines()] == [1, 4]
        assert (last["time"], last["replica"], last["outcome"]) == (at(60), "webhook-0", "Error")
        assert last["omitted"] == {"reason": "unwritable", "records": 2, "before": 4, "namespaces": {}}
        note = f"{log.path}:2: 2 records before it could not be written here; standard error may have them"
        assert (log.verify().faults, log.verify().notes) == ([], [note])

    def test_no_number_is_given_twice(self, log: Log) -> None:
        log.write(1)
        for number in (2, 3):
            log.write(number, is_full=True)
        log.write(4)
        log.write(5)

        # A start that could not write its gap either has counted it with the record after it.
        assert [each["sequence"] for each in log.lines()] == [1, 5, 6, 7]
        assert log.omitted() == [Omitted("unwritable", 3, before=5)]
        assert log.verify().faults == []

    def test_the_process_that_goes_on_writes_the_gap_after_its_next_record(self, log: Log) -> None:
        with log.writer() as writer:
            for number in range(1, 6):
                with disk(is_full=number in (2, 3)):
                    writer.write(make_record(number))
                if number == 4:
                    assert log.omitted() == [Omitted("unwritable", 2, before=4)], "it waits for no other record"

        assert [(each["sequence"], each["decision"]) for each in log.lines()] == [
            (1, "d0001"),
            (4, "d0004"),
            (5, "00000005-omitted"),
            (6, "d0005"),
        ]
        assert log.omitted() == [Omitted("unwritable", 2, before=4)]

    @pytest.mark.parametrize("together", [1, 2, 3])
    def test_the_gap_is_before_the_first_of_the_records_that_are_written_together(
        self, log: Log, together: int
    ) -> None:
        with log.writer() as writer:
            writer.write(make_record(1))
            with disk(is_full=True):
                writer.write(make_record(2))
            for number in range(3, 3 + together):
                writer.stage(make_record(number))
            writer.flush()
            writer.write(make_record(9))

        assert log.omitted() == [Omitted("unwritable", 1, before=3)]
        numbers = [each["sequence"] for each in log.lines()]
        assert numbers == [1, *range(3, 3 + together), 3 + together, 4 + together]
        assert (log.verify().faults, len(log.verify().notes)) == ([], 1)

    def test_a_gap_after_that_of_the_start_is_stated_too(self, log: Log) -> None:
        log.write(1)
        log.write(2, 3, is_full=True)
        with capture_logs(), log.writer() as writer:
            for number in range(4, 8):
                with disk(is_full=number % 2 == 0):
                    writer.write(make_record(number))

        assert log.omitted() == [
            Omitted("unwritable", 2, before=4),
            Omitted("unwritable", 1, before=6),
            Omitted("unwritable", 1, before=9),
        ]
        assert log.verify().faults == []

    def test_a_file_of_an_earlier_release_gets_its_gap(self, log: Log) -> None:
        """Its head has the number of the records that are missing, and no record has a field `omitted`."""
        log.write(1)
        head = head_path(log.path)
        head.write_text(head.read_text().rstrip("\n") + f" {7:020}\n")

        with capture_logs():
            log.write(9)

        assert [each["sequence"] for each in log.lines()] == [1, 9, 10]
        assert log.omitted() == [Omitted("unwritable", 7, before=9)]

    def test_the_commands_print_it(self, log: Log) -> None:
        log.write(1)
        log.write(2, 3, is_full=True)
        log.write()

        listed, counted = run_here("audit", "list", log.path), run_here("audit", "summary", log.path)
        shown = run_here("audit", "show", "00000004", log.path)

        text = "2 records before number 4 could not be written here; standard error may have them"
        assert [line.split()[1] for line in listed.output.splitlines()] == ["OUTCOME", "Patched", "Omitted"]
        assert "00000004 2 records before number 4" in " ".join(listed.output.split())
        assert text in shown.output
        assert counted.output.startswith("1 record\nbesides, 2 admissions without a record in these files")


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("more_bytes", [-1, 0])
def test_a_namespace_that_has_used_exactly_its_share_writes_one_more_whole_record(
    log: Log, monkeypatch: pytest.MonkeyPatch, more_bytes: int, *, dry_run: bool
) -> None:
    """Then pods have brief records, and dry runs none."""
    line, _ = seal(make_record(1, dry_run=dry_run, time=at(0)), 1, FIRST, is_brief=dry_run)
    for share in ("SHARE_BYTES", "DRY_RUN_SHARE_BYTES"):
        monkeypatch.setattr(writer, share, len(line) + more_bytes)
    with log.writer() as writing:
        for number in (1, 2, 3):
            writing.stage(make_record(number, dry_run=dry_run, time=at(0)))
        writing.stage(make_record(4, dry_run=dry_run, time=at(0), namespace="other"))
    whole = [each["name"] for each in log.lines() if each["patch"] or each["dryRun"]]
    assert whole == ["worker-1", *(["worker-2"] if more_bytes == 0 else []), "worker-4"]
    assert sum(each.records for each in log.omitted()) == (dry_run and (2 if more_bytes else 1))


def test_dry_runs_are_counted_by_namespace_the_most_first_and_from_zero_after_each_record() -> None:
    omitted = OmittedDryRuns()
    for namespace in ("a", "c", "b", "c", "b", "c"):
        omitted.count(namespace)
    found = omitted.take()
    assert (found.records, [*found.namespaces.items()]) == (6, [("c", 3), ("b", 2), ("a", 1)])
    omitted.count("a")
    assert omitted.take().namespaces == {"a": 1}


class TestDryRuns:
    @staticmethod
    def send(log: Log, count: int, seconds: float, namespace: str = "team-a") -> None:
        """Write the records of as many dry runs, spread evenly over so many seconds."""
        with log.writer() as writer:
            for number in range(count):
                log.now = at(number * seconds / count)
                writer.stage(make_record(number, dry_run=True, time=log.now, namespace=namespace))

    @pytest.mark.slow
    def test_what_a_namespace_writes_in_ten_minutes_is_bounded_and_each_is_counted(self, log: Log) -> None:
        sent = 2000
        self.send(log, sent, WINDOW_SECONDS)

        recorded = sum(each["dryRun"] for each in log.lines())
        assert DRY_RUN_SHARE_BYTES < log.path.stat().st_size < 1.05 * DRY_RUN_SHARE_BYTES
        assert recorded + sum(each.records for each in log.omitted()) == sent
        assert log.results.count("omitted") == sent - recorded
        assert log.verify().faults == []

    def test_one_record_a_minute_counts_those_without_one(self, log: Log) -> None:
        self.send(log, 2000, WINDOW_SECONDS)

        minutes = [each["time"][:16] for each in log.lines() if each.get("omitted")]
        assert 1 < len(minutes) <= 10
        assert {namespace for each in log.omitted() for namespace in each.namespaces} == {"team-a"}

    @pytest.mark.slow
    def test_a_share_begins_again_after_ten_minutes(self, log: Log) -> None:
        self.send(log, 3000, 2 * WINDOW_SECONDS)

        recorded = [each["time"][:15] for each in log.lines() if each["dryRun"]]
        assert recorded.count(recorded[0]) == pytest.approx(recorded.count(recorded[-1]), abs=20)

    def test_other_namespaces_and_real_pods_keep_their_records(self, log: Log) -> None:
        with log.writer() as writer:
            for number in range(1200):
                writer.stage(make_record(number, dry_run=True, time=at(0)))
            writer.stage(make_record(1, dry_run=True, time=at(0), namespace="other"))
            writer.stage(make_record(2, time=at(0)))

        other, real, omitted = log.lines()[-3:]
        assert (other["namespace"], real["namespace"], len(real["patch"])) == ("other", "team-a", 3)
        assert omitted["omitted"]["reason"] == "dryRun"

    def test_namespaces_that_are_made_up_take_bounded_space(self, log: Log) -> None:
        with log.writer() as writer:
            for number in range(100):
                name = f"{number}" + "x" * 5000
                writer._written_bytes["", name, True] = DRY_RUN_SHARE_BYTES + 1
                writer._window = at(0)[: len("2026-01-31T12:0")]
                writer.stage(make_record(number, dry_run=True, time=at(0), namespace=name))

        (omitted,) = log.omitted()
        assert (omitted.records, len(omitted.namespaces), omitted.namespaces["…"]) == (100, 21, 80)
        assert log.path.stat().st_size < 4096

"""Rotated audit files are kept by age and by size, and what is dropped is on record."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod, match_expressions
from tests.support.programs.audit_records import at, encode, make_record
from tests.support.servers.server import World, review_bytes
from webhook.audit import writer
from webhook.audit.chain import Verification, verify
from webhook.audit.head import head_path, read_head
from webhook.audit.lines import UnsealedRecord
from webhook.audit.reading import rotated_files
from webhook.audit.record import FIRST, AuditRecord, Dropped, Oldest, Rotation, parse_line
from webhook.audit.rotation import Retention, RotatedFiles
from webhook.audit.sources import Sources
from webhook.audit.writer import AuditWriter, Result

HOUR_SECONDS = 3600.0
LINE_BYTES = len(encode(make_record(), 1, "0" * 64)) + 1
# Room for two records, one with a rotation entry.
TWO_BYTES = 2 * LINE_BYTES + 400
FIVE_BYTES = 5 * LINE_BYTES + 400


@dataclass
class Log:
    """An audit file in a folder, and the callbacks and logs of its writers."""

    path: Path
    results: list[Result] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    def writer(self, **options: Any) -> AuditWriter:
        return AuditWriter(self.path, on_result=self.results.append, on_dropped=self.dropped.append, **options)

    def write(self, *numbers: int, **options: Any) -> None:
        with self.writer(**options) as writer:
            for number in numbers:
                writer.write(make_record(number))

    def age(self, hours: float, *names: str) -> None:
        """Make the rotated files, or those named, older by this time."""
        for path in [self.path.with_name(name) for name in names] or self.path.parent.glob("audit.jsonl.[0-9]*"):
            then = path.stat().st_mtime - hours * HOUR_SECONDS
            os.utime(path, (then, then))

    def names(self) -> list[str]:
        return [Path(file).name for file in rotated_files(self.path)]

    def records(self) -> list[AuditRecord]:
        return [parse_line(line) for file in rotated_files(self.path) for line in Path(file).read_bytes().splitlines()]

    def verify(self, *, partial: bool = False) -> Verification:
        head = read_head(head_path(self.path))
        with Sources.of_files(rotated_files(self.path)) as sources:
            return verify(sources.lines(), kept_heads={"head": head} if head else {}, partial=partial)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "audit.jsonl")


class TestByAge:
    @pytest.mark.parametrize(("seconds", "kept"), [(3599, 4), (3600, 2), (3601, 2)])
    def test_a_file_beyond_the_backups_is_dropped_at_exactly_the_time_that_it_is_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int, kept: int
    ) -> None:
        path = tmp_path / "audit.jsonl"
        files = RotatedFiles(path, TWO_BYTES, Retention(2, HOUR_SECONDS, 2**40))
        for number in range(1, 4):
            files.numbered(number).write_bytes(encode(make_record(number), number, FIRST) + b"\n")
            os.utime(files.numbered(number), (1000, 1000))
        path.touch()
        monkeypatch.setattr("webhook.audit.rotation.time.time", lambda: 1000.0 + seconds)

        files.shift()
        files.statement()
        files.drop(recorded=True)

        assert [number for number in range(1, 6) if files.numbered(number).exists()] == [*range(1, kept + 1)]

    def test_files_beyond_the_backups_are_kept_while_they_are_young(self, log: Log) -> None:
        log.write(*range(20), max_bytes=TWO_BYTES, backups=2, keep_seconds=HOUR_SECONDS)

        assert len(log.names()) == 10
        assert (log.dropped, log.verify().faults, log.verify().notes) == ([], [], [])

    def test_old_files_within_the_backups_are_kept(self, log: Log) -> None:
        options: dict[str, Any] = {"max_bytes": TWO_BYTES, "backups": 20, "keep_seconds": HOUR_SECONDS}
        log.write(*range(20), **options)
        log.age(1000)
        log.write(*range(20, 24), **options)

        assert len(log.records()) == 24

    def test_old_files_beyond_the_backups_are_dropped_and_logged(self, log: Log) -> None:
        options: dict[str, Any] = {"max_bytes": TWO_BYTES, "backups": 2, "keep_seconds": HOUR_SECONDS}
        log.write(*range(12), **options)
        log.age(2, "audit.jsonl.5", "audit.jsonl.4")
        size_bytes = sum(Path(f"{log.path}.{number}").stat().st_size for number in (4, 5))
        with capture_logs() as logs:
            log.write(12, 13, **options)

        assert log.names() == ["audit.jsonl.4", "audit.jsonl.3", "audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
        (dropped,) = log.dropped
        assert dropped == Dropped("age", 2, size_bytes, 4, at(0), at(3))
        (entry,) = logs
        assert (entry["log_level"], entry["event"]) == ("info", "old audit files were dropped")
        assert (entry["files"], entry["records"], entry["first"], entry["last"]) == (2, 4, at(0), at(3))

    @pytest.mark.parametrize("unreadable", ["audit.jsonl.5", "audit.jsonl.4"])
    def test_records_are_not_counted_if_one_of_the_dropped_files_has_none(self, log: Log, unreadable: str) -> None:
        options: dict[str, Any] = {"max_bytes": TWO_BYTES, "backups": 2, "keep_seconds": HOUR_SECONDS}
        log.write(*range(12), **options)
        log.path.with_name(unreadable).write_bytes(b"no record\n")
        log.age(2, "audit.jsonl.5", "audit.jsonl.4")
        with capture_logs():
            log.write(12, 13, **options)

        (dropped,) = log.dropped
        assert (dropped.files, dropped.records) == (2, None)
        left = [2, 3] if unreadable == "audit.jsonl.5" else [0, 1]
        assert (dropped.first, dropped.last) == (at(left[0]), at(left[1]))

    def test_young_file_behind_an_old_one_is_kept(self, log: Log) -> None:
        options: dict[str, Any] = {"max_bytes": TWO_BYTES, "backups": 0, "keep_seconds": HOUR_SECONDS}
        log.write(*range(8), **options)
        log.age(2, "audit.jsonl.2")
        log.write(8, 9, **options)

        assert len(log.records()) == 10


class TestTenthFile:
    """`.10` is older than `.9`, although it sorts first as text."""

    def test_files_are_read_in_the_order_of_their_numbers(self, log: Log) -> None:
        log.write(*range(24), max_bytes=TWO_BYTES, backups=20)

        assert log.names() == [*(f"audit.jsonl.{number}" for number in range(11, 0, -1)), "audit.jsonl"]
        assert [record.sequence for record in log.records()] == list(range(1, 25))

    def test_the_file_with_the_highest_number_is_the_first_to_be_dropped(self, log: Log) -> None:
        log.write(*range(24), max_bytes=TWO_BYTES, backups=20)
        with capture_logs():
            log.write(24, 25, max_bytes=TWO_BYTES, backups=9, keep_seconds=0)

        assert log.names() == [*(f"audit.jsonl.{number}" for number in range(9, 0, -1)), "audit.jsonl"]
        assert [record.sequence for record in log.records()] == list(range(7, 27))
        assert [(each.reason, each.files, each.first, each.last) for each in log.dropped] == [("age", 3, at(0), at(5))]
        assert log.verify().faults == []


class TestBySize:
    def test_files_never_exceed_the_total_size(self, log: Log) -> None:
        most_bytes = 5 * TWO_BYTES
        with capture_logs(), log.writer(max_bytes=TWO_BYTES, backups=2, max_total_bytes=most_bytes) as writer:
            for number in range(100):
                writer.write(make_record(number))
                # Files to drop are deleted after a record lists them: at the next one.
                total_bytes = sum(Path(file).stat().st_size for file in rotated_files(log.path))
                assert total_bytes <= most_bytes + TWO_BYTES

        assert len(log.names()) >= 4
        assert {each.reason for each in log.dropped} == {"size"}
        assert sum(each.records or 0 for each in log.dropped) + len(log.records()) == 100
        assert log.verify().faults == []

    @pytest.mark.parametrize(("spare_bytes", "dropped"), [(0, 0), (-1, 1)])
    def test_no_more_files_go_than_make_room(self, log: Log, spare_bytes: int, dropped: int) -> None:
        """The maximum size of the current file is reserved."""
        log.write(*range(12), max_bytes=TWO_BYTES, backups=20)
        rotated_bytes = sum(Path(file).stat().st_size for file in rotated_files(log.path))
        most_bytes = TWO_BYTES + rotated_bytes + spare_bytes
        with capture_logs():
            log.write(12, 13, max_bytes=TWO_BYTES, backups=2, max_total_bytes=most_bytes)

        assert len(log.names()) == 7 - dropped
        assert [(each.reason, each.files, each.records) for each in log.dropped] == [("size", 1, 2)] * dropped

    def test_no_more_than_a_thousand_files_are_kept_however_small(self, log: Log) -> None:
        for number in range(1, 1002):
            log.path.with_name(f"audit.jsonl.{number}").write_bytes(b"")
        with capture_logs():
            log.write(0, 1, 2, 3, max_bytes=TWO_BYTES, backups=2)

        assert len(log.names()) == 1001
        assert [(each.reason, each.files) for each in log.dropped] == [("size", 2)]

    def test_room_for_all_backups_is_room_for_the_file_that_is_written_too(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(writer, "MAX_TOTAL_BYTES", 1)
        log.write(*range(10), max_bytes=TWO_BYTES, backups=4)

        assert len(log.records()) == 10

    def test_dropping_young_files_is_a_warning(self, log: Log) -> None:
        with capture_logs() as logs:
            log.write(*range(8), max_bytes=TWO_BYTES, backups=2, max_total_bytes=3 * TWO_BYTES)

        events = {(entry["log_level"], entry["event"]) for entry in logs}
        assert events == {("warning", "audit files were dropped early because of the total size")}
        assert sum(entry["records"] for entry in logs) == 8 - len(log.records())

    def test_files_of_one_rotation_are_counted_by_the_reason_of_each(self, log: Log) -> None:
        log.write(*range(10), max_bytes=TWO_BYTES, backups=20)
        log.age(2, "audit.jsonl.4", "audit.jsonl.3")
        newest_bytes = sum(Path(file).stat().st_size for file in rotated_files(log.path)[2:])
        with capture_logs() as logs:
            options: dict[str, Any] = {"keep_seconds": HOUR_SECONDS, "max_total_bytes": TWO_BYTES + newest_bytes}
            log.write(10, 11, max_bytes=TWO_BYTES, backups=4, **options)

        wanted = [("age", 1, 2, at(0), at(1)), ("size", 1, 2, at(2), at(3))]
        assert [(each.reason, each.files, each.records, each.first, each.last) for each in log.dropped] == wanted
        (rotation,) = (record.rotation for record in log.records() if record.rotation and record.rotation.dropped)
        assert [*rotation.dropped] == log.dropped
        assert [entry["log_level"] for entry in logs] == ["info", "warning"]

    def test_old_files_are_dropped_because_of_their_age(self, log: Log) -> None:
        with capture_logs() as logs:
            log.write(*range(20), max_bytes=TWO_BYTES, backups=2, keep_seconds=0, max_total_bytes=4 * TWO_BYTES)

        assert {entry["log_level"] for entry in logs} == {"info"}
        assert log.names() == ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]

    def test_default_total_size_has_room_for_all_backups(self, log: Log) -> None:
        log.write(*range(20), max_bytes=TWO_BYTES, backups=20)

        assert len(log.records()) == 20

    def test_files_smaller_than_a_record_do_not_pile_up(self, log: Log) -> None:
        with capture_logs():
            log.write(*range(30), max_bytes=10, backups=2, keep_seconds=0)

        assert len(log.names()) <= 5
        assert log.verify().faults == []

    @pytest.mark.slow
    def test_dry_runs_of_large_pods_push_nothing_out(self, log: Log) -> None:
        """By the defaults; the bound on a record alone keeps a hundred of them to a fraction of one file."""
        with log.writer() as writer:
            writer.write(make_record(0))
            pod = (
                make_pod("a").annotate(TYPE, "training").require_node(*[match_expressions(("a", "Exists", []))] * 1000)
            )
            unsealed: list[UnsealedRecord] = []
            admissions = World(audit=unsealed.append).admissions()
            admissions.answer(review_bytes(pod.obj(), dryRun=True), 1000.0, None)
            for _ in range(100):
                writer.write(unsealed[0])

        assert log.names() == ["audit.jsonl"]
        assert log.path.stat().st_size < 3 * 1024 * 1024
        assert log.records()[0].decision == "d0000"


class TestOnRecord:
    def test_first_record_after_a_rotation_lists_the_remaining_files(self, log: Log) -> None:
        log.write(*range(6), max_bytes=TWO_BYTES, backups=9)

        stated = [(record.sequence, record.rotation) for record in log.records() if record.rotation]
        assert stated == [(4, Rotation(Oldest(1, FIRST))), (6, Rotation(Oldest(1, FIRST)))]

    def test_of_records_written_together_the_first_has_the_rotation(self, log: Log) -> None:
        with log.writer(max_bytes=TWO_BYTES, backups=9) as writer:
            for number in range(3):
                writer.write(make_record(number))
            for number in (3, 4):
                writer.stage(make_record(number))

        assert [record.sequence for record in log.records() if record.rotation] == [4]

    def test_record_lists_dropped_files_before_their_deletion(self, log: Log) -> None:
        with log.writer(max_bytes=TWO_BYTES, backups=1, keep_seconds=0) as writer, capture_logs():
            for number in range(5):
                writer.write(make_record(number))
            assert log.names() == ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
            writer.write(make_record(5))
            assert log.names() == ["audit.jsonl.1", "audit.jsonl"]

        records = log.records()
        rotation = records[-1].rotation
        assert rotation is not None
        assert rotation.oldest == Oldest(3, records[0].previous)
        assert rotation.dropped == tuple(log.dropped)

    def test_nothing_is_deleted_if_the_process_ends_before_the_record(self, log: Log) -> None:
        options: dict[str, Any] = {"max_bytes": TWO_BYTES, "backups": 1, "keep_seconds": 0}
        with capture_logs():
            log.write(*range(5), **options)
            assert len(log.records()) == 5
            log.write(5, 6, 7, **options)

        assert len(log.records()) < 8
        assert log.verify().faults == []

    def test_record_behind_one_that_cannot_be_sealed_lists_the_dropped_files(self, log: Log) -> None:
        with log.writer(max_bytes=TWO_BYTES, backups=1, keep_seconds=0) as writer, capture_logs():
            for number in range(5):
                writer.write(make_record(number))
            with pytest.raises(TypeError):
                writer.write(make_record(5, duration_ms=None))
            writer.write(make_record(6))

        rotation = log.records()[-1].rotation
        assert rotation is not None
        assert rotation.dropped == tuple(log.dropped) != ()

    def test_files_are_dropped_even_on_a_broken_disk(self, log: Log) -> None:
        with log.writer(max_bytes=TWO_BYTES, backups=1, keep_seconds=0) as writer, capture_logs():
            for number in range(5):
                writer.write(make_record(number))
            hidden = log.path.with_name("hidden")
            log.path.rename(hidden)
            log.path.mkdir()
            writer.write(make_record(5))
            assert log.names() == ["audit.jsonl.1"]
            log.path.rmdir()
            hidden.rename(log.path)
            writer.write(make_record(6))

        records = log.records()
        assert records[-1].rotation == Rotation(Oldest(3, records[0].previous))
        assert log.verify().faults == []

    def test_dropping_failures_are_logged_once_per_outage(self, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        with log.writer(max_bytes=TWO_BYTES, backups=1, keep_seconds=0) as writer, capture_logs() as logs:
            for number in range(5):
                writer.write(make_record(number))
            monkeypatch.setattr(Path, "unlink", _refuse)
            for number in range(5, 12):
                writer.write(make_record(number))
            monkeypatch.undo()
            writer.write(make_record(12))
            writer.write(make_record(13))

            monkeypatch.setattr(Path, "unlink", _refuse)
            for number in range(14, 20):
                writer.write(make_record(number))
            monkeypatch.undo()

        assert [entry["event"] for entry in logs].count("rotated audit files cannot be dropped") == 2
        assert log.results == ["written"] * 20
        assert log.verify().faults == []


def _refuse(path: Path, missing_ok: bool = False) -> None:
    raise PermissionError(13, "Permission denied")


@pytest.fixture
def rotated(log: Log) -> Log:
    """A log of six files whose older ones rotation has dropped."""
    with capture_logs():
        log.write(*range(40), max_bytes=FIVE_BYTES, backups=5, keep_seconds=0)
    assert len(log.names()) == 6
    return log


class TestVerify:
    def test_dropped_records_are_a_note_that_names_the_record(self, rotated: Log) -> None:
        verification = rotated.verify()

        first = rotated.records()[0].sequence
        assert verification.faults == []
        (note,) = verification.notes
        assert note.startswith(
            f"{rotated.path}.5:1: the chain continues here: rotation dropped {first - 1} records before it, as "
        )

    @pytest.mark.parametrize("backups", [0, 1])
    def test_likewise_where_few_files_are_left(self, log: Log, backups: int) -> None:
        with capture_logs():
            log.write(*range(30), max_bytes=TWO_BYTES, backups=backups, keep_seconds=0)

        assert log.verify().faults == []

    def test_removed_oldest_file_is_a_fault(self, rotated: Log) -> None:
        records = len(Path(f"{rotated.path}.5").read_bytes().splitlines())
        Path(f"{rotated.path}.5").unlink()

        (fault,) = rotated.verify().faults
        assert fault.path == f"{rotated.path}.4:1"
        assert fault.detail.startswith(f"cut out: {records} records that rotation had left (")
        assert rotated.verify(partial=True).faults == []

    def test_removed_first_records_are_a_fault(self, rotated: Log) -> None:
        oldest = Path(f"{rotated.path}.5")
        oldest.write_bytes(b"".join(oldest.read_bytes().splitlines(keepends=True)[1:]))

        (fault,) = rotated.verify().faults
        assert fault.detail.startswith("cut out: 1 record that rotation had left (")

    def test_removed_file_is_a_fault_before_any_drop(self, log: Log) -> None:
        log.write(*range(20), max_bytes=FIVE_BYTES, backups=9)
        Path(f"{log.path}.{len(log.names()) - 1}").unlink()

        (fault,) = log.verify().faults
        assert fault.detail.startswith("cut out: ")

    def test_copies_of_dropped_files_are_accepted(self, log: Log) -> None:
        with capture_logs():
            log.write(*range(10), max_bytes=FIVE_BYTES, backups=1, keep_seconds=0)
            shutil.copy(f"{log.path}.1", f"{log.path}.77")
            log.write(*range(10, 20), max_bytes=FIVE_BYTES, backups=1, keep_seconds=0)
        assert log.verify().faults == []

    def test_log_of_an_older_version_has_a_note_as_before(self, log: Log) -> None:
        log.write(*range(4))
        lines = log.path.read_bytes().splitlines(keepends=True)
        Path(f"{log.path}.1").write_bytes(b"".join(lines[2:3]))
        log.path.write_bytes(b"".join(lines[3:]))

        verification = log.verify()
        assert verification.faults == []
        assert verification.notes == [
            f"{log.path}.1:1: the chain continues here: 2 records before it, not in these files"
        ]


def test_age_is_that_of_the_last_record_not_of_the_first(log: Log) -> None:
    options: dict[str, Any] = {"max_bytes": FIVE_BYTES, "backups": 0, "keep_seconds": HOUR_SECONDS}
    log.write(*range(20), **options)

    assert (log.dropped, len(log.records())) == ([], 20)

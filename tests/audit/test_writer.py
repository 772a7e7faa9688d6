import errno
import gc
import os
import shutil
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from tests.audit.written_log import Log
from tests.support.programs.audit_records import encode, make_record
from webhook.audit.file import AuditFile
from webhook.audit.head import ChainHead, head_path
from webhook.audit.lines import digest
from webhook.audit.reading import rotated_files
from webhook.audit.rotation import RotatedFiles
from webhook.audit.writer import BACKUPS, KEEP_SECONDS, MAX_BYTES, MAX_TOTAL_BYTES, AuditWriter
from webhook.documents.field import InvalidInput

LINE_BYTES = len(encode(make_record(), 1, "0" * 64)) + 1


def test_a_record_is_in_the_file_when_write_returns(log: Log) -> None:
    with log.writer() as writer:
        writer.write(make_record(1))
        assert [orjson.loads(line)["decision"] for line in log.lines()] == ["d0001"]
        writer.write(make_record(2))
        assert [orjson.loads(line)["decision"] for line in log.lines()] == ["d0001", "d0002"]
    assert log.results == ["written", "written"]
    assert log.printed() == []


def test_the_head_is_written_after_its_record(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between the two must not leave a head without its record, which would be a fault of the log."""
    done: list[tuple[str, int]] = []
    append, write_head = AuditFile.append, AuditFile.write_head

    def appended(file: AuditFile, data: bytes) -> None:
        done.append(("record", data.count(b"\n") + 1))
        append(file, data)

    def head_written(file: AuditFile, head: ChainHead) -> None:
        done.append(("head", head.sequence))
        write_head(file, head)

    monkeypatch.setattr(AuditFile, "append", appended)
    monkeypatch.setattr(AuditFile, "write_head", head_written)
    with log.writer() as writer:
        writer.write(make_record(1))
        for number in (2, 3):
            writer.stage(make_record(number))
        writer.flush()
    assert done == [("record", 1), ("head", 1), ("record", 2), ("head", 3)]


def test_each_record_holds_the_hash_of_the_one_before(log: Log) -> None:
    log.write(1, 2, 3)
    first, second, third = log.lines()
    assert [orjson.loads(line)["previous"] for line in log.lines()] == ["", digest(first), digest(second)]
    assert [orjson.loads(line)["sequence"] for line in log.lines()] == [1, 2, 3]
    with log.writer() as writer:
        assert writer.head == digest(third)


def test_defaults_of_the_files_are_those_of_the_documents() -> None:
    """Source: docs/audit.md"""
    assert (MAX_BYTES, BACKUPS, KEEP_SECONDS) == (104_857_600, 10, 86_400.0)
    assert MAX_TOTAL_BYTES == 4_294_967_296


def test_only_owner_and_group_may_read_the_file(log: Log) -> None:
    previous = os.umask(0)
    try:
        log.write(1)
    finally:
        os.umask(previous)
    assert log.path.stat().st_mode & 0o777 == 0o640


class TestRestart:
    def test_continues_the_chain(self, log: Log) -> None:
        log.write(1, 2)
        log.write(3)
        verification = log.verify()
        assert (verification.faults, len(verification.chains), verification.records) == ([], 1, 3)

    @pytest.mark.parametrize("length", [1, 100, LINE_BYTES - 2], ids=["a byte", "a part", "all but the last brace"])
    def test_closes_a_line_that_a_crash_has_torn(self, log: Log, length: int) -> None:
        log.write(1, 2)
        with log.path.open("ab") as file:
            file.write(encode(make_record(3), 3, "0" * 64)[:length])
        log.write(4, 5)
        (fault,) = log.verify().faults
        assert fault.path == f"{log.path}:3"
        assert fault.detail.startswith("torn")
        assert [orjson.loads(line)["decision"] for line in log.lines()[3:]] == ["d0004", "d0005"]

    def test_continues_behind_a_record_that_lacks_its_newline_alone(self, log: Log) -> None:
        log.write(1, 2)
        log.path.write_bytes(log.path.read_bytes().removesuffix(b"\n"))
        log.write(3)
        assert log.verify().faults == []
        assert log.verify().records == 3

    def test_finds_the_last_record_before_a_long_torn_one(self, log: Log) -> None:
        log.write(1)
        with log.path.open("ab") as file:
            file.write(b'{"time": "' + b"x" * 300_000)
        log.write(2)
        assert len(log.verify().chains) == 1

    def test_continues_the_rotated_file_without_a_head(self, log: Log) -> None:
        log.write(1, 2)
        log.path.rename(f"{log.path}.1")
        head_path(log.path).unlink()
        log.write(3)
        verification = log.verify()
        assert (verification.faults, len(verification.chains), verification.records) == ([], 1, 3)

    def test_continues_the_rotated_file_where_the_current_one_is_empty(self, log: Log) -> None:
        log.write(1, 2)
        log.path.rename(f"{log.path}.1")
        log.write(3)
        verification = log.verify()
        assert (verification.faults, len(verification.chains), verification.records) == ([], 1, 3)

    def test_begins_a_chain_where_a_crash_left_a_part_of_the_first_record(self, log: Log) -> None:
        log.path.write_bytes(b'{"time":"2026-')
        log.write(1)
        assert orjson.loads(log.lines()[1])["previous"] == ""


class TestRotation:
    def test_keeps_each_file_within_its_size_and_the_chain_whole(self, log: Log) -> None:
        log.write(*range(20), max_bytes=4 * LINE_BYTES, backups=10)
        files = rotated_files(log.path)
        assert len(files) >= 5
        assert all(Path(file).stat().st_size <= 4 * LINE_BYTES for file in files)
        verification = log.verify()
        assert (verification.faults, verification.notes, len(verification.chains)) == ([], [], 1)
        assert verification.records == 20

    def test_leaves_no_other_file(self, log: Log) -> None:
        log.write(1, 2, max_bytes=LINE_BYTES, backups=9)
        names = {each.name for each in log.path.parent.iterdir()}
        assert names == {log.path.name, f"{log.path.name}.1", head_path(log.path).name}

    @pytest.mark.parametrize(("spare_bytes", "records"), [(0, [2, 1]), (-1, [1, 1, 1])])
    def test_comes_before_the_record_that_would_be_a_byte_too_much(
        self, log: Log, spare_bytes: int, records: list[int]
    ) -> None:
        # The first record has no hash before it.
        log.write(1, 2, 3, max_bytes=2 * LINE_BYTES - len("0" * 64) + spare_bytes, backups=9)
        assert [len(Path(file).read_bytes().splitlines()) for file in rotated_files(log.path)] == records

    def test_is_off_for_size_zero(self, log: Log) -> None:
        log.write(*range(20), max_bytes=0)
        assert len(log.lines()) == 20

    def test_a_record_larger_than_a_file_may_be_has_a_file_of_its_own(self, log: Log) -> None:
        log.write(1, 2, 3, max_bytes=10, backups=5)
        assert [len(Path(file).read_bytes().splitlines()) for file in rotated_files(log.path)] == [1, 1, 1]

    def test_goes_on_over_a_restart(self, log: Log) -> None:
        for number in range(10):
            log.write(number, max_bytes=3 * LINE_BYTES, backups=9)
        verification = log.verify()
        assert (verification.faults, len(verification.chains), verification.records) == ([], 1, 10)

    def test_failure_is_logged_once_and_loses_no_record(self, log: Log) -> None:
        blocking = Path(f"{log.path}.1")
        blocking.mkdir()
        with capture_logs() as logs:
            log.write(*range(6), max_bytes=2 * LINE_BYTES, backups=1)
        assert [entry["event"] for entry in logs] == ["audit file cannot be rotated and keeps growing"]
        assert log.results == ["written"] * 6
        assert sorted(path.name for path in log.path.parent.iterdir()) == [
            "audit.jsonl",
            "audit.jsonl.1",
            "audit.jsonl.head",
        ]
        blocking.rmdir()
        log.write(6, max_bytes=2 * LINE_BYTES, backups=1)
        assert (log.verify().faults, log.verify().records) == ([], 7)

    def test_failure_names_its_own_error_though_the_new_file_is_gone(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: RotatedFiles) -> None:
            Path(f"{log.path}.new").unlink()
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(RotatedFiles, "shift", fail)
        with capture_logs() as logs:
            log.write(*range(3), max_bytes=2 * LINE_BYTES)
        assert [entry["error"] for entry in logs] == ["[Errno 5] Input/output error"]

    def test_repeated_failure_is_logged_again(self, log: Log) -> None:
        blocking = Path(f"{log.path}.1")
        with log.writer(max_bytes=2 * LINE_BYTES, backups=1) as writer, capture_logs() as logs:
            for _ in range(2):
                blocking.mkdir()
                for number in range(3):
                    writer.write(make_record(number))
                blocking.rmdir()
                writer.write(make_record(3))
                blocking.unlink()
        assert [entry["event"] for entry in logs] == ["audit file cannot be rotated and keeps growing"] * 2


class TestForeignRotation:
    def test_moved_file_is_created_again(self, log: Log) -> None:
        with log.writer() as writer:
            writer.write(make_record(1))
            log.path.rename(f"{log.path}.1")
            writer.write(make_record(2))
        assert len(log.lines()) == 1
        verification = log.verify()
        assert (verification.faults, len(verification.chains), verification.records) == ([], 1, 2)

    def test_truncated_file_is_continued(self, log: Log) -> None:
        with log.writer() as writer:
            writer.write(make_record(1))
            shutil.copy(log.path, f"{log.path}.1")
            os.truncate(log.path, 0)
            writer.write(make_record(2))
        verification = log.verify()
        assert (verification.faults, len(verification.chains), verification.records) == ([], 1, 2)

    def test_truncated_file_is_rotated_by_its_new_size(self, log: Log) -> None:
        with log.writer(max_bytes=3 * LINE_BYTES, backups=9) as writer:
            for number in range(2):
                writer.write(make_record(number))
            os.truncate(log.path, 0)
            for number in range(2, 5):
                writer.write(make_record(number))
            assert rotated_files(log.path) == [str(log.path)]
            writer.write(make_record(5))
        assert [len(Path(file).read_bytes().splitlines()) for file in rotated_files(log.path)] == [3, 1]

    def test_deleted_file_is_created_again(self, log: Log) -> None:
        with log.writer() as writer:
            writer.write(make_record(1))
            log.path.unlink()
            writer.write(make_record(2))
        assert [orjson.loads(line)["sequence"] for line in log.lines()] == [2]


class TestStaged:
    def test_records_are_written_together_and_chained(self, log: Log) -> None:
        with log.writer() as writer:
            writer.write(make_record(1))
            for number in (2, 3):
                writer.stage(make_record(number))
            assert len(log.lines()) == 1
            writer.flush()
            assert [orjson.loads(line)["decision"] for line in log.lines()] == ["d0001", "d0002", "d0003"]
        assert log.results == ["written"] * 3
        assert log.verify().faults == []

    def test_a_record_for_standard_output_is_printed_at_once(self, tmp_path: Path) -> None:
        """A part of several records that was printed could not be taken back."""
        with (tmp_path / "output").open("wb") as output, AuditWriter("-", output_descriptor=output.fileno()) as writer:
            for number in (1, 2):
                writer.stage(make_record(number))
                assert len((tmp_path / "output").read_bytes().splitlines()) == number

    def test_records_are_written_before_one_that_cannot_wait(self, log: Log) -> None:
        with log.writer() as writer:
            writer.stage(make_record(1))
            writer.write(make_record(2))
            assert [orjson.loads(line)["sequence"] for line in log.lines()] == [1, 2]

    def test_records_are_written_when_the_log_is_closed(self, log: Log) -> None:
        with log.writer() as writer:
            writer.stage(make_record(1))
        assert (log.results, log.verify().records) == (["written"], 1)

    def test_records_that_cannot_be_written_are_each_counted_and_printed_and_leave_a_gap(self, log: Log) -> None:
        with log.writer() as writer, capture_logs():
            writer.write(make_record(1))
            shutil.move(log.path.parent, log.path.parent.with_suffix(".away"))
            writer.stage(make_record(2))
            writer.stage(make_record(3))
            writer.flush()
            shutil.move(log.path.parent.with_suffix(".away"), log.path.parent)
            writer.stage(make_record(4))
            writer.flush()
        assert log.results == ["written", "failed", "failed", "written"]
        assert [orjson.loads(line)["decision"] for line in log.printed()] == ["d0002", "d0003"]
        verification = log.verify()
        assert (verification.faults, verification.records) == ([], 2)
        assert verification.notes == [
            f"{log.path}:2: 2 records before it could not be written here; standard error may have them"
        ]


class TestStart:
    @pytest.mark.parametrize(
        ("name", "remedy"),
        [
            ("nowhere/audit.jsonl", "its folder does not exist"),
            ("folder", "is a folder"),
            ("/", "is a folder"),
            ("file/audit.jsonl", "its folder is a file"),
            ("pipe", "is not a regular file"),
            ("x" * 300, "is too long a name"),
            ("loop", "is a link that leads nowhere"),
        ],
        ids=lambda text: text[:20],
    )
    def test_is_refused_where_there_can_be_no_file(self, tmp_path: Path, name: str, remedy: str) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()
        (tmp_path / "loop").symlink_to(tmp_path / "loop")
        os.mkfifo(tmp_path / "pipe")
        path = str(tmp_path / name)
        with pytest.raises(InvalidInput) as raised:
            AuditWriter(path)
        (error,) = raised.value.errors
        assert (error.path, error.value) == ("--audit", path)
        assert error.detail.startswith(remedy)

    @pytest.mark.parametrize("text", ["what is this\n", '{"level":"info"}\n', "no newline", "\n", '{"time":"now"}\n'])
    @pytest.mark.parametrize("name", ["audit.jsonl", "audit.jsonl.1"])
    def test_is_refused_for_a_file_of_something_else_which_stays_as_it_is(
        self, tmp_path: Path, name: str, text: str
    ) -> None:
        (tmp_path / name).write_text(text)
        with pytest.raises(InvalidInput) as raised:
            AuditWriter(tmp_path / "audit.jsonl", max_bytes=1)
        (error,) = raised.value.errors
        assert (error.path, error.value) == ("--audit", str(tmp_path / name))
        assert error.detail == "holds something else than audit records; give another file, or move it away"
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, text)]

    def test_is_refused_for_a_device(self) -> None:
        with pytest.raises(InvalidInput, match="is not a regular file; give a file, or - for standard output"):
            AuditWriter("/dev/null")

    def test_is_refused_where_this_user_may_not_write(self, log: Log) -> None:
        log.path.parent.chmod(0o500)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(InvalidInput, match="may not be written; give this user the right"):
                log.writer()
        finally:
            os.seteuid(user)
            log.path.parent.chmod(0o700)

    def test_is_refused_while_another_writes_the_file(self, log: Log) -> None:
        with log.writer(), pytest.raises(InvalidInput, match="another process writes this file; give each replica"):
            log.writer()

    def test_is_refused_while_another_writes_the_file_that_it_has_rotated(self, log: Log) -> None:
        with log.writer(max_bytes=LINE_BYTES, backups=1) as writer:
            for number in range(3):
                writer.write(make_record(number))
            with pytest.raises(InvalidInput, match="another process writes this file"):
                log.writer()

    def test_finds_the_file_free_when_the_other_has_ended(self, log: Log) -> None:
        log.writer().close()
        log.writer().close()


def test_nothing_stays_open_behind_a_writer_that_is_closed(log: Log) -> None:
    log.write(1)
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    log.write(2)
    assert len(list(Path("/proc/self/fd").iterdir())) == before

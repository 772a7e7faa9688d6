import errno
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import orjson
import pytest
from structlog.testing import capture_logs

from tests.support.programs.audit_records import encode, make_record
from webhook.audit.chain import Verification, verify
from webhook.audit.file import AuditStream
from webhook.audit.head import ChainHead, head_path, read_head
from webhook.audit.lines import digest
from webhook.audit.reading import Entry, read, rotated_files
from webhook.audit.rotation import RotatedFiles
from webhook.audit.sources import Sources
from webhook.audit.writer import BACKUPS, KEEP_SECONDS, MAX_BYTES, MAX_TOTAL_BYTES, AuditWriter
from webhook.documents.field import InvalidInput

LINE_BYTES = len(encode(make_record(), 1, "0" * 64)) + 1


class Log:
    """An audit file, with the callbacks and logs of its writer."""

    def __init__(self, path: Path, errors: IO[bytes]) -> None:
        self.path = path
        self.results: list[str] = []
        self.errors = errors

    def writer(self, **options: Any) -> AuditWriter:
        return AuditWriter(self.path, on_result=self.results.append, error_descriptor=self.errors.fileno(), **options)

    def printed(self) -> list[bytes]:
        """Return the records on standard error."""
        self.errors.seek(0)
        return self.errors.read().splitlines()

    def write(self, *numbers: int, **options: Any) -> None:
        """Simulate a process that writes these records and ends."""
        with self.writer(**options) as writer:
            for number in numbers:
                writer.write(make_record(number))

    def lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines()

    def verify(self) -> Verification:
        head = read_head(head_path(self.path))
        with Sources.of_files(rotated_files(self.path)) as sources:
            return verify(sources.lines(), kept_heads={"head": head} if head else {})


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with tempfile.TemporaryFile() as errors:
        yield Log(tmp_path / "audit.jsonl", errors)


def test_a_record_is_in_the_file_when_write_returns(log: Log) -> None:
    with log.writer() as writer:
        writer.write(make_record(1))
        assert [orjson.loads(line)["decision"] for line in log.lines()] == ["d0001"]
        writer.write(make_record(2))
        assert [orjson.loads(line)["decision"] for line in log.lines()] == ["d0001", "d0002"]
    assert log.results == ["written", "written"]
    assert log.printed() == []


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


def full(_: bytes) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestTrouble:
    def test_on_a_full_disk_records_go_to_standard_error_and_the_file_stays_whole(self, log: Log) -> None:
        limit_bytes = 5 * LINE_BYTES + LINE_BYTES // 2
        done = subprocess.run(
            [sys.executable, "-m", "tests.audit.full_disk", str(log.path), str(limit_bytes)],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.endswith("written " * 5 + "failed failed failed written")
        said = [line for line in done.stderr.splitlines() if line.startswith('{"time"')]
        assert [orjson.loads(line)["sequence"] for line in said] == [6, 7, 8]
        output = done.stdout + done.stderr
        assert output.count("audit records cannot be written and go to standard error") == 1
        assert output.count("audit records are written again") == 1
        verification = log.verify()
        assert (verification.faults, verification.records) == ([], 6)
        assert verification.notes == [
            f"{log.path}:6: 3 records before it could not be written here; standard error may have them"
        ]

    def test_a_restart_on_a_full_disk_hides_no_record(self, log: Log) -> None:
        """The numbers of the records on standard error are not given again."""
        command = [sys.executable, "-m", "tests.audit.full_disk", str(log.path), str(5 * LINE_BYTES + LINE_BYTES // 2)]
        subprocess.run([*command, "ends"], cwd=Path(__file__).parents[2], capture_output=True, check=True)
        assert (log.verify().faults, log.verify().records) == ([], 5)
        after = f"head: 3 records after {log.path}:5 could not be written; standard error may have them"
        assert log.verify().notes == [after]

        with capture_logs() as logs:
            log.write(9)
        assert [(entry["event"], entry["missed"]) for entry in logs] == [
            ("audit records went to standard error before this start", 3)
        ]
        assert [orjson.loads(line)["sequence"] for line in log.lines()] == [1, 2, 3, 4, 5, 9]
        before = f"{log.path}:6: 3 records before it could not be written here; standard error may have them"
        assert (log.verify().faults, log.verify().notes) == ([], [before])
        log.write(10)
        assert orjson.loads(log.lines()[-1])["sequence"] == 10

    def test_several_restarts_on_a_full_disk_add_up(self, log: Log) -> None:
        log.write(1)
        for number in (2, 3):
            with log.writer() as writer, capture_logs(), pytest.MonkeyPatch.context() as patched:
                patched.setattr(writer._output, "append", full)
                writer.write(make_record(number))
        log.write(4)
        assert [orjson.loads(line)["sequence"] for line in log.lines()] == [1, 4]

    def test_failed_records_are_logged_once_counted_and_printed(self, log: Log) -> None:
        with log.writer() as writer, capture_logs() as logs:
            writer.write(make_record(1))
            shutil.rmtree(log.path.parent)
            for number in (2, 3):
                writer.write(make_record(number))
            log.path.parent.mkdir()
            writer.write(make_record(4))
        assert log.results == ["written", "failed", "failed", "written"]
        assert [orjson.loads(line)["decision"] for line in log.printed()] == ["d0002", "d0003"]
        assert [(entry["log_level"], entry["event"]) for entry in logs] == [
            ("error", "audit records cannot be written and go to standard error"),
            ("warning", "audit records are written again"),
        ]
        assert logs[1]["missed"] == 2

    def test_each_outage_is_logged_with_its_own_count(self, log: Log) -> None:
        with log.writer() as writer, capture_logs() as logs:
            writer.write(make_record(1))
            for missed in (2, 1):
                shutil.rmtree(log.path.parent)
                for number in range(missed):
                    writer.write(make_record(number))
                log.path.parent.mkdir()
                for number in range(3):
                    writer.write(make_record(number))
        assert [(entry["log_level"], entry.get("missed")) for entry in logs] == [
            ("error", None),
            ("warning", 2),
            ("error", None),
            ("warning", 1),
        ]

    def test_neither_a_broken_file_nor_a_broken_standard_error_raises(self, log: Log) -> None:
        with log.writer() as writer, capture_logs():
            shutil.rmtree(log.path.parent)
            log.errors.close()
            writer.write(make_record(1))
        assert log.results == ["failed"]

    def test_temporary_failure_does_not_prevent_the_start(self, log: Log) -> None:
        with no_free_descriptors(), capture_logs():
            writer = log.writer()
            writer.write(make_record(1))
        writer.write(make_record(2))
        writer.close()
        assert log.results == ["failed", "written"]
        assert log.verify().records == 1


@contextmanager
def no_free_descriptors() -> Iterator[None]:
    """Let the process open no more files: like a full disk, a temporary failure."""

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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


class TestStandardOutput:
    def test_gets_a_chain_of_its_own(self, tmp_path: Path) -> None:
        path = tmp_path / "printed"
        with path.open("wb") as output:
            for _ in range(2):
                writer = AuditWriter("-", output_descriptor=output.fileno())
                writer.write(make_record(1))
                writer.write(make_record(2))
                writer.close()
        lines = path.read_bytes().splitlines()
        assert [orjson.loads(line)["sequence"] for line in lines] == [1, 2, 1, 2]
        assert orjson.loads(lines[1])["previous"] == digest(lines[0])

    @pytest.mark.parametrize("broken", ["full", "closed"])
    def test_that_is_broken_lets_records_go_to_standard_error(self, log: Log, broken: str) -> None:
        reader, descriptor = os.pipe()
        os.close(reader)
        if broken == "full":
            os.close(descriptor)
            descriptor = os.open("/dev/full", os.O_WRONLY)
        log.path = Path("-")
        with capture_logs():
            log.writer(output_descriptor=descriptor).write(make_record(1))
        os.close(descriptor)
        assert log.results == ["failed"]
        assert [orjson.loads(line)["decision"] for line in log.printed()] == ["d0001"]


def make_pipe() -> tuple[int, int]:
    return os.pipe()


def make_socket() -> tuple[int, int]:
    reader, writer = socket.socketpair()
    return reader.detach(), writer.detach()


def drain(reader: int) -> bytes:
    """Return the content of a pipe or socket."""
    os.set_blocking(reader, False)
    parts = []
    with suppress(BlockingIOError):
        while part := os.read(reader, 1 << 20):
            parts.append(part)
    return b"".join(parts)


@pytest.fixture(params=["pipe", "pipe of another user", "socket"])
def stalled(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Return reader and writer of a stream that is not read."""
    ends = make_socket() if request.param == "socket" else make_pipe()
    user = os.geteuid()
    if request.param == "pipe of another user":
        # It cannot be opened a second time.
        os.fchmod(ends[1], 0)
        if user == 0:
            os.seteuid(65534)
    yield ends
    os.seteuid(user)
    for end in ends:
        os.close(end)


class TestStalledReader:
    def test_does_not_block_the_writer(self, log: Log, stalled: tuple[int, int]) -> None:
        reader, descriptor = stalled
        log.path = Path("-")
        with log.writer(output_descriptor=descriptor) as writer, capture_logs() as logs:
            number = 0
            while log.results.count("failed") < 3:
                writer.write(make_record(number))
                number += 1
            printed = drain(reader)
            writer.write(make_record(number))
        printed += drain(reader)
        assert log.results == ["written"] * (number - 3) + ["failed"] * 3 + ["written"]
        assert [entry["event"] for entry in logs] == [
            "audit records cannot be written and go to standard error",
            "audit records are written again",
        ]
        lines = printed.splitlines(keepends=True)
        decisions = [line.record.decision for line in read("-", lines) if isinstance(line, Entry)]
        assert decisions == [f"d{reported:04}" for reported in [*range(number - 3), number]]
        assert len(log.printed()) == 3
        reported = verify([("-", read("-", lines))])
        assert {fault.detail.split(":")[0] for fault in reported.faults} <= {"torn"}

    def test_leaves_the_descriptor_that_others_share_as_it_was(self, log: Log, stalled: tuple[int, int]) -> None:
        _, descriptor = stalled
        log.path = Path("-")
        with log.writer(output_descriptor=descriptor) as writer:
            writer.write(make_record(1))
            assert os.get_blocking(descriptor)

    def test_of_standard_error_too_costs_records_and_no_time(self, stalled: tuple[int, int]) -> None:
        reader, descriptor = stalled
        results: list[str] = []
        options: dict[str, Any] = {"output_descriptor": descriptor, "error_descriptor": descriptor}
        with AuditWriter("-", on_result=results.append, **options) as writer, capture_logs() as logs:
            while results.count("failed") < 20:
                writer.write(make_record(len(results)))
            # What is logged would wait, too.
            before = len(logs)
            drain(reader)
            writer.write(make_record(len(results)))
        assert before <= 1
        assert results[-1] == "written"

    def test_a_line_that_was_printed_in_part_is_closed(self, stalled: tuple[int, int]) -> None:
        """However many lines find no room behind it. A record is never so long: the stream is tried alone."""
        reader, descriptor = stalled
        stream = AuditStream(descriptor)
        for line in (b"x" * 2_000_000, b"second"):
            with pytest.raises(BlockingIOError):
                stream.append(line)
        printed = drain(reader)
        stream.append(b"third")
        printed += drain(reader)
        stream.close()
        torn, last = printed.splitlines()
        assert 0 < len(torn) < 2_000_000
        assert last == b"third"

    def test_does_not_block_a_process_that_prints_to_it(self) -> None:
        done = subprocess.Popen(
            [sys.executable, "-m", "tests.audit.stalled_output"],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        with done:
            # It is not read before the process has ended.
            assert done.wait(timeout=60) == 0


class TestHead:
    def test_is_that_of_the_last_record(self, log: Log) -> None:
        with log.writer() as writer:
            for number in (1, 2):
                writer.write(make_record(number))
                kept = read_head(head_path(log.path))
                assert kept == ChainHead(number, writer.head) == ChainHead(number, digest(log.lines()[-1]))

    def test_that_is_deleted_comes_back_with_the_next_process(self, log: Log) -> None:
        log.write(1)
        head_path(log.path).unlink()
        log.write(2)
        assert read_head(head_path(log.path)) == ChainHead(2, digest(log.lines()[-1]))

    def test_that_lags_behind_after_a_crash_is_no_fault(self, log: Log) -> None:
        log.write(1)
        stale = head_path(log.path).read_bytes()
        log.write(2)
        head_path(log.path).write_bytes(stale)
        assert log.verify().faults == []
        log.write(3)
        assert (log.verify().faults, log.verify().records) == ([], 3)

    @pytest.mark.parametrize(("left", "reported"), [(2, "2 records between"), (0, "4 records before")])
    def test_keeps_a_cut_off_end_to_be_found_after_a_restart(self, log: Log, left: int, reported: str) -> None:
        log.write(1, 2, 3, 4)
        log.path.write_bytes(b"".join(line + b"\n" for line in log.lines()[:left]))
        with capture_logs() as logs:
            log.write(5)
        assert [(entry["event"], entry["last"], entry["last_written"]) for entry in logs] == [
            ("audit file lacks records that were written", left, 4)
        ]
        (fault,) = log.verify().faults
        assert fault.detail.startswith(f"cut out: {reported}")

    def test_of_another_record_with_the_number_of_the_last_is_followed(self, log: Log) -> None:
        """The last record was altered, or put in the place of the one that was written."""
        log.write(1)
        written = ChainHead(1, "f" * 64)
        head_path(log.path).write_text(f"{written.sequence:020} {written.hash}\n")
        with capture_logs() as logs:
            log.write(2)
        assert [entry["event"] for entry in logs] == ["audit file lacks records that were written"]
        assert orjson.loads(log.lines()[-1])["previous"] == written.hash

    @pytest.mark.parametrize("sequence", [1, 3])
    def test_an_altered_number_is_found_and_not_continued(self, log: Log, sequence: int) -> None:
        log.write(1, 2)
        head_path(log.path).write_text(f"{sequence:020} {digest(log.lines()[-1])}\n")
        (fault,) = log.verify().faults
        assert (fault.path, fault.value) == ("head", sequence)
        assert fault.detail.startswith(f"altered: the record of this hash ({log.path}:2) has the number 2; ")
        log.write(3)
        assert (orjson.loads(log.lines()[-1])["sequence"], log.verify().faults) == (3, [])

    def test_the_rest_of_a_longer_line_does_not_matter(self, log: Log) -> None:
        log.write(1)
        with head_path(log.path).open("ab") as file:
            file.write(b"%020d\n" % 3)
        assert read_head(head_path(log.path)) == ChainHead(1, digest(log.lines()[-1]))

    def test_invalid_head_is_overwritten(self, log: Log) -> None:
        log.write(1)
        head_path(log.path).write_bytes(b"x")
        log.write(2)
        with pytest.raises(ValueError, match="holds no sequence and hash"):
            read_head(log.path)
        assert (log.verify().faults, log.verify().records) == ([], 2)

    def test_failure_to_save_is_logged_once_and_loses_no_record(self, log: Log) -> None:
        head_path(log.path).mkdir()
        with capture_logs() as logs:
            log.write(1, 2)
        assert [entry["event"] for entry in logs] == ["audit head cannot be kept"]
        assert log.results == ["written", "written"]

    def test_repeated_failure_to_save_is_logged_again(self, log: Log) -> None:
        with log.writer() as writer, capture_logs() as logs:
            for number in range(2):
                head_path(log.path).mkdir()
                writer.write(make_record(number))
                head_path(log.path).rmdir()
                writer.write(make_record(number))
                head_path(log.path).unlink()
                # The file is closed when the log is created again.
                log.path.unlink()
        assert [entry["event"] for entry in logs] == ["audit head cannot be kept"] * 2


def test_nothing_stays_open_behind_a_writer_that_is_closed(log: Log) -> None:
    log.write(1)
    before = len(list(Path("/proc/self/fd").iterdir()))
    log.write(2)
    assert len(list(Path("/proc/self/fd").iterdir())) == before

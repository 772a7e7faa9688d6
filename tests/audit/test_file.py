"""The outputs for records while a disk is full, a reader stalls, or a stream is broken."""

import errno
import fcntl
import gc
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from tests.audit.written_log import Log
from tests.support.programs.audit_records import encode, make_record
from webhook.audit.chain import verify
from webhook.audit.file import AuditFile, AuditStream
from webhook.audit.lines import digest
from webhook.audit.reading import Entry, read
from webhook.audit.rotation import Retention
from webhook.audit.writer import AuditWriter
from webhook.documents.field import InvalidInput

LINE_BYTES = len(encode(make_record(), 1, "0" * 64)) + 1


def full(_: bytes) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestTrouble:
    @pytest.mark.slow
    def test_on_a_full_disk_records_go_to_standard_error_and_the_file_stays_whole(self, log: Log) -> None:
        limit_bytes = 5 * LINE_BYTES + LINE_BYTES // 2
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.programs.full_disk", str(log.path), str(limit_bytes)],
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

    @pytest.mark.slow
    def test_a_restart_on_a_full_disk_hides_no_record(self, log: Log) -> None:
        """The numbers of the records on standard error are not given again."""
        command = [
            sys.executable,
            "-m",
            "tests.support.programs.full_disk",
            str(log.path),
            str(5 * LINE_BYTES + LINE_BYTES // 2),
        ]
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

    @pytest.mark.slow
    def test_does_not_block_a_process_that_prints_to_it(self) -> None:
        done = subprocess.Popen(
            [sys.executable, "-m", "tests.support.programs.stalled_output"],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        with done:
            # It is not read before the process has ended.
            assert done.wait(timeout=60) == 0


def opened(path: Path) -> AuditFile:
    return AuditFile(path, max_bytes=0, retention=Retention(1, 0, 0))


def test_file_that_another_writer_has_open_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    """The lock is exclusive: readers take none, and two writers would break the chain."""
    path = tmp_path / "audit.jsonl"
    first = opened(path)
    with pytest.raises(InvalidInput, match="another process writes this file"):
        opened(path)
    first.append(encode(make_record(), 1, "0" * 64))
    with pytest.raises(InvalidInput, match="another process writes this file"):
        opened(path)
    first.close()
    opened(path).close()


def test_file_that_another_process_rotates_while_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock would be on the rotated file, which the other process does not write any more."""
    path, flock = tmp_path / "audit.jsonl", fcntl.flock

    def rotate_and_lock(descriptor: int, operation: int) -> None:
        path.rename(f"{path}.1")
        path.touch()
        flock(descriptor, operation)

    with monkeypatch.context() as other:
        other.setattr(fcntl, "flock", rotate_and_lock)
        with pytest.raises(InvalidInput, match="another process writes this file"):
            opened(path)
    opened(path).close()


def test_a_rotation_whose_new_file_cannot_be_locked_changes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records go on in the file, and the next rotation is tried again."""
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, max_bytes=1, retention=Retention(1, 0, 0))
    lines = [encode(make_record(number), number, "0" * 64) for number in (1, 2, 3)]
    file.append(lines[0])

    def locked(*_: object) -> None:
        raise OSError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))

    with monkeypatch.context() as other:
        other.setattr(fcntl, "flock", locked)
        with pytest.raises(BlockingIOError):
            file.make_room(10)
    file.append(lines[1])
    assert [each.name for each in tmp_path.iterdir()] == ["audit.jsonl"]
    assert path.read_bytes().splitlines() == lines[:2]

    file.make_room(10)
    file.append(lines[2])
    assert (path.read_bytes(), Path(f"{path}.1").read_bytes().splitlines()) == (lines[2] + b"\n", lines[:2])
    file.close()


def test_nothing_stays_open_of_a_file_that_is_refused_or_not_rotated(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(path, max_bytes=1, retention=Retention(1, 0, 0))
    file.append(encode(make_record(), 1, "0" * 64))
    (tmp_path / "audit.jsonl.1").mkdir()
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))

    for refused in (path, Path("/dev/null")):
        with pytest.raises(InvalidInput):
            opened(refused)
    with pytest.raises(IsADirectoryError):
        file.make_room(10)

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_line_that_is_written_in_part_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "audit.jsonl", os.write
    file = opened(path)
    lines = [encode(make_record(number), number, "0" * 64) for number in (1, 2, 3)]
    file.append(lines[0])

    def write_a_part(descriptor: int, data: bytes) -> int:
        if len(data) < LINE_BYTES // 2:
            full(data)
        return write(descriptor, data[:20])

    with monkeypatch.context() as short:
        short.setattr(os, "write", write_a_part)
        with pytest.raises(OSError, match="No space left"):
            file.append(lines[1])
    assert path.read_bytes() == lines[0] + b"\n"
    file.append(lines[2])
    file.close()
    assert path.read_bytes().splitlines() == [lines[0], lines[2]]


def test_stream_that_is_closed_leaves_nothing_open_and_can_still_be_written() -> None:
    reader, descriptor = make_pipe()
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    stream = AuditStream(descriptor)
    stream.append(b"first")
    for _ in range(2):
        stream.close()
    after = len(list(Path("/proc/self/fd").iterdir()))
    stream.append(b"second")
    printed = drain(reader)
    for each in (reader, descriptor):
        os.close(each)
    assert after == before
    assert printed == b"first\nsecond\n"

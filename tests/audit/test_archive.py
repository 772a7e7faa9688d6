"""An archive of audit files holds what the files of one moment held, and is read without trust in its headers."""

import io
import tarfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.audit_records import START, chain_lines, make_record, write_lines
from webhook.audit.archive import Archive, write_archive
from webhook.audit.record import LARGEST_BYTES
from webhook.documents.field import InvalidInput

HEAD = b"%020d %b\n" % (3, b"a" * 64)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """An audit file with two rotated files of an hour each, and a head."""
    path = tmp_path / "audit.jsonl"
    lines = chain_lines([make_record(hour * 3600) for hour in range(3)])
    for number, line in zip((2, 1, 0), lines, strict=True):
        write_lines(tmp_path / f"audit.jsonl.{number}" if number else path, [line])
    (tmp_path / "audit.jsonl.head").write_bytes(HEAD)
    return path


def packed(path: Path, since: datetime | None = None) -> bytes:
    output = io.BytesIO()
    write_archive(path, output, since)
    return output.getvalue()


def read(content: bytes, folder: Path) -> tuple[dict[str, bytes], str]:
    """The files of an archive, and why it may lack some."""
    file = folder / "archive"
    file.write_bytes(content)
    with file.open("rb") as stream:
        archive = Archive(stream)
        return {member.name: archive.open(member).read() for member in archive.members}, archive.problem


def unpacked(content: bytes, folder: Path) -> dict[str, bytes]:
    files, problem = read(content, folder)
    assert problem == ""
    return files


def test_the_files_come_back_in_the_order_of_their_records(log: Path) -> None:
    files = unpacked(packed(log), log.parent)

    assert [*files] == ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
    assert files == {name: log.with_name(name).read_bytes() for name in files}


def test_tar_reads_it(log: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(packed(log))) as archive:
        assert archive.getnames() == ["audit.jsonl.head", "audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
        assert {member.mode for member in archive.getmembers()} == {0o640}
        assert (head := archive.extractfile("audit.jsonl.head")) is not None
        assert head.read() == HEAD


def test_rotated_files_that_end_before_are_left_out(log: Path) -> None:
    assert [*unpacked(packed(log, since=START + timedelta(hours=1)), log.parent)] == ["audit.jsonl.1", "audit.jsonl"]
    assert [*unpacked(packed(log, since=START + timedelta(hours=9)), log.parent)] == ["audit.jsonl"]


def test_files_before_one_that_is_left_out_are_left_out_unread(log: Path) -> None:
    log.with_name("audit.jsonl.2").write_bytes(b"no record\n")

    assert [*unpacked(packed(log, since=START + timedelta(hours=9)), log.parent)] == ["audit.jsonl"]


@pytest.mark.parametrize(("seconds", "is_kept"), [(60, True), (61, False)])
def test_a_file_that_ends_within_the_longest_admission_before_is_kept(log: Path, seconds: int, is_kept: bool) -> None:
    """A later answer can belong to an earlier request."""
    files = unpacked(packed(log, since=START + timedelta(hours=1, seconds=seconds)), log.parent)

    assert ("audit.jsonl.1" in files) == is_kept


def test_an_archive_that_ends_early_lacks_the_oldest_records(log: Path) -> None:
    content = packed(log)
    whole = unpacked(content, log.parent)

    cut, problem = read(content[: content.index(b"audit.jsonl.2") - 700], log.parent)

    assert problem == "it ends within 'audit.jsonl.1'; read or copy it again"
    assert [*cut] == ["audit.jsonl.1", "audit.jsonl"]
    assert cut["audit.jsonl"] == whole["audit.jsonl"]
    assert whole["audit.jsonl.1"].startswith(cut["audit.jsonl.1"])


def test_files_that_are_renamed_while_they_are_opened_are_opened_again(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.with_name("audit.jsonl.head").unlink()
    contents = {log.with_name(f"audit.jsonl{suffix}").read_bytes() for suffix in ("", ".1", ".2")}
    opened, rotations = Path.open, iter([1])

    def rotate_behind_the_first(path: Path, mode: str) -> Any:
        file = opened(path, mode)
        if path == log and next(rotations, None):
            for number in (2, 1):
                path.with_name(f"audit.jsonl.{number}").rename(path.with_name(f"audit.jsonl.{number + 1}"))
            path.rename(path.with_name("audit.jsonl.1"))
            path.touch()
        return file

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", rotate_behind_the_first)
        content = packed(log)

    files = unpacked(content, log.parent)
    assert [*files] == ["audit.jsonl.3", "audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]
    assert {*files.values()} == {*contents, b""}


def test_the_head_is_not_newer_than_the_files(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the newest record, written after the files were opened, would seem to be cut off."""
    head, opened = log.with_name("audit.jsonl.head"), Path.open

    def write_a_record(path: Path, mode: str) -> Any:
        if path == log:
            head.write_bytes(b"%020d %b\n" % (4, b"b" * 64))
        return opened(path, mode)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", write_a_record)
        content = packed(log)

    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert (member := archive.extractfile("audit.jsonl.head")) is not None
        assert member.read() == HEAD


def test_a_file_that_shrinks_ends_in_empty_lines(log: Path) -> None:
    whole = log.read_bytes()
    log.with_name("audit.jsonl.head").unlink()

    class Output(io.BytesIO):
        def write(self, data: Any, /) -> int:
            log.write_bytes(whole[:100])
            return super().write(data)

    output = Output()
    write_archive(log, output)

    assert unpacked(output.getvalue(), log.parent)["audit.jsonl"] == whole[:100] + b"\n" * (len(whole) - 100)


@pytest.mark.parametrize("name", ["absent.jsonl", ".", "/"])
def test_a_file_that_does_not_exist_is_an_error(name: str) -> None:
    with pytest.raises(InvalidInput, match="there is no such file; give the FILE of `serve --audit`"):
        packed(Path(name))


def member(name: str, kind: bytes = tarfile.REGTYPE, size_bytes: int = 0) -> bytes:
    header = tarfile.TarInfo(name)
    header.type, header.size = kind, size_bytes
    return header.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "content",
    [
        b"<html>" * 100,
        member("../audit.jsonl"),
        member("audit.jsonl", tarfile.SYMTYPE),
        member("audit.jsonl", tarfile.XHDTYPE),
        member("audit.jsonl", tarfile.GNUTYPE_LONGNAME),
        member("audit.jsonl", size_bytes=-1),
    ],
    ids=["no archive", "a path", "a link", "an extended header", "a long name", "a negative size"],
)
def test_what_the_program_does_not_write_is_left_out(log: Path, content: bytes) -> None:
    whole = packed(log)
    files = unpacked(whole, log.parent)

    assert read(content, log.parent)[0] == {}
    after_the_others, problem = read(whole[: -2 * tarfile.BLOCKSIZE] + content, log.parent)
    assert after_the_others == files
    assert problem.startswith("no archive of audit files: ")


@pytest.mark.parametrize("content", [b"", member("audit.jsonl.head")], ids=["nothing", "a head"])
def test_an_archive_holds_at_least_one_file(tmp_path: Path, content: bytes) -> None:
    problem = read(content + bytes(2 * tarfile.BLOCKSIZE), tmp_path)[1]
    assert problem.startswith("no archive of audit files: it holds none; ")


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    most = b"".join(member(f"audit.jsonl.{number}") for number in range(1100))

    assert len(unpacked(most + bytes(2 * tarfile.BLOCKSIZE), tmp_path)) == 1100
    files, problem = read(most + member("audit.jsonl"), tmp_path)
    assert len(files) == 1100
    assert problem.startswith("no archive of audit files: it holds more than 1100; ")


@pytest.mark.parametrize("size_bytes", [5, 2**63, 2**70])
def test_a_size_beyond_the_end_is_that_of_what_is_there(tmp_path: Path, size_bytes: int) -> None:
    content = member("audit.jsonl", size_bytes=size_bytes) + b"one\n"

    assert read(content, tmp_path) == ({"audit.jsonl": b"one\n"}, "it ends within 'audit.jsonl'; read or copy it again")


@pytest.mark.parametrize("last", [b"", b"t", b"t" * 70_000], ids=["no byte", "one byte", "more than a record has"])
def test_of_a_file_that_is_cut_off_whole_lines_are_read(tmp_path: Path, last: bytes) -> None:
    content = member("audit.jsonl", size_bytes=2**20) + b"one\ntwo\n" + last

    files, problem = read(content, tmp_path)

    assert files["audit.jsonl"].startswith(b"one\ntwo\n")
    assert len(files["audit.jsonl"]) <= max(8, 8 + len(last) - LARGEST_BYTES)
    assert problem == "it ends within 'audit.jsonl'; read or copy it again"


def test_an_archive_is_whole_if_its_end_is_there(log: Path) -> None:
    content = packed(log)
    files = unpacked(content, log.parent)

    for missing in (2, 3):
        assert read(content[: -missing * tarfile.BLOCKSIZE], log.parent)[1].endswith("; read or copy it again")
    assert read(content[: -2 * tarfile.BLOCKSIZE], log.parent) == (files, "it ends early; read or copy it again")
    assert read(b"", log.parent) == ({}, "it ends early; read or copy it again")


def test_a_head_counts_only_with_the_file_of_the_newest_record(log: Path) -> None:
    content = packed(log)
    end = content.index(b"\n", content.index(b'{"time"'))

    def heads(size_bytes: int) -> dict[str, bytes]:
        (log.parent / "archive").write_bytes(content[:size_bytes])
        with (log.parent / "archive").open("rb") as file:
            return Archive(file).heads

    assert heads(end) == {}
    assert heads(len(content)) == heads(end + 1) == {"audit.jsonl.head": HEAD}

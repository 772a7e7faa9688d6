"""The files of an audit log."""

import os
from pathlib import Path

import pytest

from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from webhook.audit.reading import read, rotated_files
from webhook.audit.sources import Download, Sources, _File
from webhook.documents.field import InvalidInput


def test_rotated_files_come_oldest_first(tmp_path: Path) -> None:
    for name in ("audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.10", "audit.jsonl.new", "other.jsonl.3"):
        (tmp_path / name).touch()
    files = rotated_files(tmp_path / "audit.jsonl")
    assert [Path(file).name for file in files] == ["audit.jsonl.10", "audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"]


def test_a_name_with_brackets_is_no_pattern(tmp_path: Path) -> None:
    for name in ("audit[1].jsonl", "audit[1].jsonl.1", "audit1.jsonl.2"):
        (tmp_path / name).touch()
    files = rotated_files(tmp_path / "audit[1].jsonl")
    assert [Path(file).name for file in files] == ["audit[1].jsonl.1", "audit[1].jsonl"]


def test_rotated_files_of_none_are_none(tmp_path: Path) -> None:
    assert rotated_files(tmp_path / "audit.jsonl") == []


@pytest.mark.parametrize("is_file", [True, False])
def test_a_source_without_a_record_is_an_error(tmp_path: Path, is_file: bool) -> None:
    """A pipe is found to have none only as it is read."""
    reader, writer = os.pipe()
    os.write(writer, b"hello\n")
    os.close(writer)
    (tmp_path / "other").write_text("hello\n")
    name = str(tmp_path / "other") if is_file else f"/dev/fd/{reader}"

    with pytest.raises(InvalidInput) as refused, Sources.of_files([name]) as sources:
        list(sources.entries(lambda _: None))

    os.close(reader)
    (error,) = refused.value.errors
    assert (error.path, error.detail.partition(";")[0]) == (name, "holds no audit record")


def test_records_of_several_files_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    names = []
    for name, seconds in (("b", (2, 5)), ("a", (1, 3, 4))):
        lines = chain_lines(make_record(number) for number in seconds)
        names.append(str(write_lines(tmp_path / name, [*lines, b"torn"])))
    torn: list[str] = []

    with Sources.of_files([*names, names[0]]) as sources:
        found = [entry.record.decision for entry in sources.entries(lambda line: torn.append(line.place))]

    assert found == [f"d{number:04}" for number in range(1, 6)]
    assert sorted(torn) == [f"{names[1]}:4", f"{names[0]}:3"]


@pytest.mark.parametrize(
    ("numbers", "is_cut"), [((1, 2, 3), False), ((2, 3), True), ((3,), True), ((), False)], ids=str
)
def test_a_printed_log_without_its_first_record_is_cut(tmp_path: Path, numbers: tuple[int, ...], is_cut: bool) -> None:
    lines = chain_lines(make_record(number) for number in (1, 2, 3))
    path = write_lines(tmp_path / "log", [b"listening", *(lines[number - 1] for number in numbers), b"stopped"])
    with Sources.of_replicas([Download("replica-a", path)]) as sources:
        found = [entry.record.decision for entry in sources.entries(lambda _: None)]
        assert found == [f"d{number:04}" for number in numbers]
        assert {name: each.decision for name, each in sources.cut_logs.items()} == (
            {"replica-a": f"d{numbers[0]:04}"} if is_cut else {}
        )


@pytest.mark.parametrize(
    ("content", "is_wrong"),
    [
        pytest.param(b"", False, id="empty"),
        pytest.param(b'{"time":"2026', False, id="a record that is being written"),
        pytest.param(b'{"time":"2026\n', True, id="a line that is no record"),
        pytest.param(b'no record\n{"time":"2026', True, id="a line that is no record, then one that is being written"),
    ],
)
def test_only_whole_lines_show_that_a_file_has_no_records(tmp_path: Path, content: bytes, is_wrong: bool) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(content)
    with path.open("rb") as stream:
        sources = Sources()
        assert [*sources._lines_of(_File("audit.jsonl", stream))] == [
            *read("audit.jsonl", content.splitlines(keepends=True))
        ]
    assert (bool(sources.without_records), sources.has_records) == (is_wrong, False)

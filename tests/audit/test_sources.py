"""The files of an audit log."""

import os
from pathlib import Path

import pytest

from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from webhook.audit.reading import rotated_files
from webhook.audit.sources import Sources
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

"""The files of an audit log."""

from pathlib import Path

from webhook.audit.reading import rotated_files


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

"""Files are written completely or not at all."""

import os
from pathlib import Path
from typing import IO

import pytest

from webhook.cli.output.atomic_file import check_writable, write_atomically
from webhook.documents.field import InvalidInput


def test_a_new_file_has_its_content(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new", "--output", lambda file: file.write(b"content"))

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("new", "content")]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")

    def full(file: IO[bytes]) -> None:
        file.write(b"new")
        raise OSError(28, "No space left on device")

    with pytest.raises(InvalidInput, match="cannot be written: No space left on device"):
        write_atomically(tmp_path / "old", "--output", full)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "old")]


def test_a_link_still_leads_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", "--output", lambda file: file.write(b"content"))

    assert (tmp_path / "file").read_text() == (tmp_path / "link").read_text() == "content"
    assert (tmp_path / "link").is_symlink()


def test_a_device_is_written_to_and_not_replaced() -> None:
    terminal, device = os.openpty()
    try:
        path = Path(os.ttyname(device))
        check_writable(path, "--output")
        write_atomically(path, "--output", lambda file: file.write(b"content"))

        assert os.read(terminal, 100) == b"content"
        assert path.is_char_device()
    finally:
        os.close(device)
        os.close(terminal)


@pytest.mark.parametrize(("name", "problem"), [("absent/file", "No such file or directory"), (".", "Is a directory")])
def test_a_place_for_no_file_is_found_before_the_work(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        check_writable(tmp_path / name, "--output")


def test_the_new_content_is_prepared_in_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename is atomic in one file system only."""
    moves, replace_file = list[tuple[Path, Path]](), Path.replace

    def note(path: Path, target: Path) -> Path:
        moves.append((path.parent, target))
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", note)
    write_atomically(tmp_path / "new", "--output", lambda file: file.write(b"content"))

    assert moves == [(tmp_path, tmp_path / "new")]

"""Records that a server adds are printed as they come; the decision ID is short enough for 80 columns."""

import io
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click
import pytest
from rich.console import Console

from tests.support.programs.audit_records import INFEASIBLE, chain_lines, make_record, write_lines
from tests.support.programs.command import Run, run_here
from webhook.audit.reading import FollowedFile, InvalidLine
from webhook.cli.output.screen import print_table
from webhook.cli.records import audit_following
from webhook.cli.records.audit_text import LIST_COLUMNS, list_row

_PLACED = {2: INFEASIBLE, 3: INFEASIBLE}
LINES = chain_lines(
    [make_record(number, **({"placement": _PLACED[number]} if number in _PLACED else {})) for number in range(5)]
)


def places(followed: FollowedFile) -> list[tuple[str, bytes, bool]]:
    """Return the place and the text of each new line, and whether it is cut off."""
    return [
        (each.place.rpartition("/")[2], each.line, isinstance(each, InvalidLine) and each.cut_off)
        for each in followed.new_lines()
    ]


def test_whole_lines_are_read_as_they_are_added(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"1\n2\n3")
    with FollowedFile(path) as followed, path.open("ab") as server:
        assert places(followed) == [("audit.jsonl:1", b"1", False), ("audit.jsonl:2", b"2", False)]
        assert places(followed) == []
        server.write(b"3\n\n4\r5\n")
        server.flush()
        assert places(followed) == [("audit.jsonl:3", b"33", False), ("audit.jsonl:5", b"4\r5", False)]


@pytest.mark.parametrize("text", [b"2\n", b"2"], ids=["whole", "cut off"])
def test_no_line_is_lost_when_the_file_is_rotated(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"1\n")
    with FollowedFile(path) as followed:
        assert places(followed) == [("audit.jsonl:1", b"1", False)]
        with path.open("ab") as server:
            server.write(text)
        path.rename(tmp_path / "audit.jsonl.1")
        is_whole = text.endswith(b"\n")
        assert places(followed) == ([("audit.jsonl:2", b"2", False)] if is_whole else [])
        path.write_bytes(b"3\n")
        cut_off = [] if is_whole else [("audit.jsonl:2", b"2", True)]
        assert places(followed) == [*cut_off, ("audit.jsonl:1", b"3", False)]
        assert places(followed) == []


def test_a_file_that_was_emptied_is_read_from_its_beginning(tmp_path: Path) -> None:
    """As by logrotate with `copytruncate`."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"first\nhalf of")
    with FollowedFile(path) as followed:
        assert places(followed) == [("audit.jsonl:1", b"first", False)]
        os.truncate(path, 0)
        assert places(followed) == []
        with path.open("ab") as server:
            server.write(b"next\n")
        assert places(followed) == [("audit.jsonl:1", b"next", False)]


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    keeper = os.open(path, os.O_RDWR)
    os.write(keeper, b"1\n2")
    with FollowedFile(path) as followed:
        os.close(keeper)
        assert places(followed) == [("pipe:1", b"1", False)]
        assert places(followed) == []


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return partial(run_here, "audit", "list", "--follow")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that sets what happens in the pauses of the command; then the command ends."""

    def follow(*pauses: Callable[[], None]) -> None:
        coming: Iterator[Callable[[], None]] = iter(pauses)

        def pause() -> None:
            happen = next(coming, None)
            if happen is None:
                raise click.exceptions.Exit(0)
            happen()

        monkeypatch.setattr(audit_following, "_pause", pause)

    return follow


def test_list_goes_on_with_the_selected_records(run: Run, tmp_path: Path, pauses: Callable[..., None]) -> None:
    file = tmp_path / "audit.jsonl"
    write_lines(file, LINES[:3])

    def added() -> None:
        with file.open("ab") as server:
            server.write(b"\n".join(LINES[3:]) + b"\n")

    pauses(added)

    outcome = run("--verdict", "Infeasible", "-o", "json")

    assert outcome.output.encode().splitlines() == [LINES[2], LINES[3]]


def test_the_text_has_one_head(run: Run, tmp_path: Path, pauses: Callable[..., None]) -> None:
    file = tmp_path / "audit.jsonl"
    write_lines(file, LINES[:2])
    pauses(partial(write_lines, file, LINES[:4]))

    found = run().output.splitlines()

    assert [line.split()[0] for line in found] == ["TIME", *(f"2026-05-01T08:00:0{n}Z" for n in range(4))]


@pytest.mark.parametrize("arguments", [("-",), ("a.jsonl", "b.jsonl"), ("--context", "c")])
def test_only_one_file_is_followed(run: Run, arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments)

    assert (outcome.code, outcome.output) == (2, "")
    assert "--follow reads one audit file" in outcome.errors


def test_80_columns_have_verdict_note_and_a_decision_that_show_takes() -> None:
    record = make_record(0, decision="0f6b2d1c-77aa-4c1d-9a51-0242ac120002", placement=INFEASIBLE, dry_run=True)
    screen = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)

    print_table(screen, LIST_COLUMNS, [list_row(record)])

    assert isinstance(screen.file, io.StringIO)
    head, row, *_ = screen.file.getvalue().splitlines()
    assert [title for title in ("OUTCOME", "VERDICT", "POD", "DECISION", "NOTE") if title not in head] == []
    assert "0f6b2d1c  dry run" in row
    assert len(row) <= 80


def test_a_line_that_is_no_record_is_reported_and_the_next_ones_are_printed(
    run: Run, tmp_path: Path, pauses: Callable[..., None]
) -> None:
    file = tmp_path / "audit.jsonl"
    write_lines(file, [b"no record", LINES[0]])
    pauses(partial(write_lines, file, [b"no record", LINES[0], b"{}", LINES[1]]))

    outcome = run("-o", "json")

    assert outcome.output.encode().splitlines() == LINES[:2]
    reported = [line.partition(": not an audit record, left out: ")[0] for line in outcome.errors.splitlines()]
    assert reported == ["warning: audit.jsonl:1", "warning: audit.jsonl:3"]

"""The `audit` commands read archives of `audit export` that were copied from replicas."""

from pathlib import Path

import orjson
import pytest

from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from tests.support.programs.command import Run, run
from webhook.audit.archive import write_archive
from webhook.audit.lines import digest

__all__ = ["run"]


def copied(folder: Path, replica: str, *numbers: int) -> Path:
    """Return the archive of an audit file with these admissions, all but the last rotated, and a head."""
    files = folder / f"{replica}-files"
    files.mkdir()
    lines = chain_lines([make_record(number, replica=replica) for number in numbers])
    write_lines(files / "audit.jsonl.1", lines[:-1])
    path = write_lines(files / "audit.jsonl", lines[-1:])
    (files / "audit.jsonl.head").write_text(f"{len(lines):020} {digest(lines[-1])}\n")
    with (folder / f"{replica}.tar").open("wb") as output:
        write_archive(path, output)
    return folder / f"{replica}.tar"


@pytest.fixture
def archives(tmp_path: Path) -> list[Path]:
    """Those of two replicas, which took admissions 0 to 5."""
    return [copied(tmp_path, "a", 0, 2, 5), copied(tmp_path, "b", 1, 3, 4)]


def test_records_of_archives_are_read_in_the_order_of_time(archives: list[Path], run: Run) -> None:
    listed = run("audit", "list", "-o", "json", *archives)

    assert (listed.code, listed.errors) == (0, "")
    decisions = [orjson.loads(line)["decision"] for line in listed.output.splitlines()]
    assert decisions == [f"d{number:04}" for number in range(6)]
    assert run("audit", "summary", *archives).output.startswith("6 records\n")
    assert f"Record 1 of its chain, {archives[1]}/audit.jsonl.1:1" in run("audit", "show", "d0001", *archives).output


def test_an_archive_is_verified_with_its_head(archives: list[Path], run: Run) -> None:
    verified = run("audit", "verify", *archives)
    assert (verified.code, verified.errors) == (0, "")
    assert verified.output.startswith("intact: 6 records in 2 chains\n")
    assert "note" not in verified.output

    archives[0].write_bytes(archives[0].read_bytes().replace(b"worker-5", b"worker-6"))
    altered = run("audit", "verify", *archives)
    assert altered.code == 2
    assert altered.errors.startswith(f'Error: {archives[0]}/audit.jsonl:1: Invalid value: "d0005"; altered: ')


def test_an_archive_that_was_cut_off_is_named(archives: list[Path], run: Run) -> None:
    archives[0].write_bytes(archives[0].read_bytes()[:-2000])

    listed = run("audit", "list", "-o", "json", *archives)

    assert (listed.code, len(listed.output.splitlines())) == (1, 5)
    assert listed.errors == (
        f"warning: {archives[0]}: not all of its audit files was read: "
        "it ends within 'audit.jsonl.1'; read or copy it again\n"
    )


def test_a_file_that_was_cut_off_is_listed_but_not_verified_if_newer_files_follow(
    archives: list[Path], run: Run
) -> None:
    content = archives[0].read_bytes()
    archives[0].write_bytes(content[: content.index(b'"decision":"d0002"')])

    verified = run("audit", "verify", "-o", "json", archives[0])
    listed = run("audit", "list", "-o", "json", archives[0])

    assert (verified.code, listed.code) == (1, 1)
    assert [chain["files"] for chain in orjson.loads(verified.output)["chains"]] == [[f"{archives[0]}/audit.jsonl"]]
    assert [orjson.loads(line)["decision"] for line in listed.output.splitlines()] == ["d0000", "d0005"]


def test_archives_and_audit_files_are_not_read_together(archives: list[Path], tmp_path: Path, run: Run) -> None:
    outcome = run("audit", "list", archives[0], tmp_path / "a-files" / "audit.jsonl")

    assert outcome.code == 2
    assert "give archives of `audit export`, or audit files, but not both" in outcome.errors


def test_an_archive_without_records_is_named_and_hides_no_other(archives: list[Path], run: Run) -> None:
    archives[0].write_bytes(archives[0].read_bytes().replace(b'"time"', b'"mite"'))

    listed = run("audit", "list", "-o", "json", *archives)

    assert (listed.code, len(listed.output.splitlines())) == (1, 3)
    for file in ("audit.jsonl", "audit.jsonl.1"):
        assert f"warning: {archives[0]}/{file}: holds no audit record; " in listed.errors

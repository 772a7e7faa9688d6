"""`demo`: run seven examples."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.objects.manifests import ROOT
from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from tests.support.programs.command import run_alone
from tests.support.programs.programs import forked, write_program
from webhook.audit.record import parse_line
from webhook.cli.output.program import as_called


@pytest.mark.slow
def test_the_demo_prints_seven_examples_and_keeps_the_audit_log(tmp_path: Path) -> None:
    log, earlier = tmp_path / "audit.jsonl", chain_lines([make_record()])
    write_lines(log, earlier)

    outcome = run_alone("demo", "--audit", log)

    assert (outcome.code, outcome.errors) == (0, "")
    assert re.findall(r"^(\d)\. ", outcome.output, re.MULTILINE) == ["1", "2", "3", "4", "5", "6", "7"]
    assert str(log) in outcome.output
    assert "\x1b" not in outcome.output

    records = [parse_line(line) for line in log.read_bytes().splitlines()[len(earlier) :]]
    assert [record.outcome for record in records] == [*["Patched"] * 4, "Denied", "Bypassed", "Patched"]
    verdicts = [record.placement.verdict for record in records if record.placement]
    assert verdicts == ["Feasible", "Feasible", "Feasible", "Infeasible", "Feasible"]
    assert "The sample cluster: " in outcome.output
    assert "outcomes  1 Bypassed, 1 Denied, 5 Patched" in outcome.output
    assert "verdicts  4 Feasible, 1 Infeasible" in outcome.output
    absent = "scheduler binpack-scheduler: no sign that it runs: no Lease and no bound pod names it"
    assert records[0].warnings == ()
    assert [record.name for record in records if absent in "".join(record.warnings)] == ["finetune-0"]
    assert absent in outcome.output
    command = forked()
    assert f"read on   {command} audit show {records[0].decision} {log}\n" in outcome.output
    assert f"          {command} audit verify {log}\n" in outcome.output
    assert len(re.findall(r"^   verdict   ", outcome.output, re.MULTILINE)) == len(verdicts)
    assert len(re.findall(r"^   why       ", outcome.output, re.MULTILINE)) == verdicts.count("Feasible")
    for record in records:
        if record.placement and record.placement.node:
            assert f"Feasible on {record.placement.node}" in outcome.output
            assert re.search(rf"^   why       {record.placement.node} ", outcome.output, re.MULTILINE)
        for rule in record.rules:
            for edit in rule.edits:
                assert edit in outcome.output


def demo(program: str | Path, folder: Path, *arguments: str, path: Path | None = None) -> str:
    (folder / "tmp").mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(folder / "tmp")}
    if path:
        environment["PATH"] = os.pathsep.join([str(path), environment["PATH"]])
    ran = subprocess.run([program, "demo", *arguments], cwd=folder, env=environment, capture_output=True, check=True)
    return ran.stdout.decode()


@pytest.mark.slow
def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    program = write_program(tmp_path, "placement-webhook")
    before = {*tmp_path.rglob("*"), tmp_path / "tmp"}

    output = demo(program, tmp_path)

    assert {*tmp_path.rglob("*")} == before
    assert f"   file      not kept; to keep it: {program} demo --keep\n" in output


@pytest.mark.slow
def test_the_demo_keeps_the_audit_log_if_asked(tmp_path: Path) -> None:
    output = demo(write_program(tmp_path, "placement-webhook"), tmp_path, "--keep")

    (log,) = (tmp_path / "tmp").rglob("*.jsonl")
    assert f"   file      {log}\n" in output
    assert len(log.read_bytes().splitlines()) == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "called", "shown"),
    [
        pytest.param("placement-webhook", "placement-webhook", "placement-webhook", id="in the path"),
        pytest.param("placement-webhook", "bin/placement-webhook", "bin/placement-webhook", id="by a path"),
        pytest.param("kubectl-placement", "bin/kubectl-placement", "kubectl placement", id="by kubectl"),
    ],
)
def test_the_demo_names_the_command_as_it_was_called(tmp_path: Path, name: str, called: str, shown: str) -> None:
    (tmp_path / "bin").mkdir()
    program = write_program(tmp_path / "bin", name)
    by_name = "/" not in called
    path = tmp_path / "bin" if by_name else None

    output = demo(program if by_name else called, tmp_path, "--audit", "a b.jsonl", path=path)

    assert f"             {shown} audit verify 'a b.jsonl'\n" in output


def test_the_command_of_a_module_is_named_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/srv/webhook/__main__.py", "demo"])

    assert as_called() == f"{Path(sys.executable).name} -m webhook"


READ_ONLY = """
import errno, os, sys, tempfile

def refuse(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        if not str(arguments[0]).startswith(("/proc/", *memory)) and not isinstance(arguments[0], int):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), arguments[0])
    if event == "os.mkdir" and not str(arguments[0]).startswith(("/proc/", *memory)):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), arguments[0])

memory = tuple(sys.argv.pop(1).split())
sys.addaudithook(refuse)
from webhook.cli import root
root._SHARED_MEMORY = memory[0] if memory else "/none"
root.main()
"""


def read_only(folder: Path, memory: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command where no file can be written, but for those in the folder `memory`, if any."""
    command = [sys.executable, "-c", READ_ONLY, memory, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_demo_runs_where_no_file_can_be_written(tmp_path: Path) -> None:
    done = read_only(tmp_path, "", "demo")

    assert (done.returncode, done.stderr) == (0, "")
    assert "outcomes  1 Bypassed, 1 Denied, 5 Patched" in done.stdout
    assert "file      not kept" in done.stdout


@pytest.mark.slow
def test_what_needs_a_file_has_one_in_memory_or_a_clear_error(tmp_path: Path) -> None:
    without = read_only(tmp_path, "", "demo", "--keep")
    assert (without.returncode, without.stdout) == (1, "")
    assert without.stderr == "Error: TMPDIR: no folder for temporary files can be written; set it to one that can\n"

    memory = tmp_path / "shm"
    memory.mkdir()
    kept = read_only(tmp_path, str(memory), "demo", "--keep")
    assert (kept.returncode, kept.stderr) == (0, "")
    (log,) = memory.rglob("*.jsonl")
    assert len(log.read_bytes().splitlines()) == 7

"""`placement-webhook` accepts every command in the documents, and commands after `$ ` print the documented output.

The commands run the code of this tree, not an installed package.

An example file is a YAML block whose first line names it (`# train.yaml`). In the output of a command, `…` matches any
text on its line, and a line with only `…` matches any lines.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.docs.markdown import (
    DOCUMENTS,
    DOCUMENTS_TO_RUN,
    MONITORING,
    OPERATIONS,
    ROOT,
    Block,
    blocks,
    name_of,
    printed_as_shown,
    rows,
    span_of,
    spans,
    spans_of,
    steps,
    write_named_files,
)
from tests.support.programs.command import understand
from tests.support.programs.programs import write_program
from webhook.cli.root import root

PROGRAM = "placement-webhook"


def commands(block: Block) -> list[str]:
    """Return the command lines of a console block: those after `$ `, or all lines without one."""
    text = re.sub(r"\\\n\s*", "", block.text)
    lines = text.splitlines()
    asked = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return asked or lines


def words_of_calls(command: str) -> Iterator[list[str]]:
    """Yield the words of each call of a program in a shell command line, without those of its redirections."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    call: list[str] = []
    is_file = False
    for token in [*lexer, ";"]:
        if set(token) <= set("|&;<>()"):
            if call and not is_file:
                yield call
            call, is_file = [], token in ("<", ">", ">>")
        else:
            call.append(token)


def calls(command: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of the program in a shell command line."""
    return (call[1:] for call in words_of_calls(command) if Path(call[0]).name == PROGRAM)


ALL_CALLS = [
    pytest.param(call, id=f"{block.place} {shlex.join(call)}")
    for document in DOCUMENTS
    for block in blocks(document, "console", "sh")
    for command in commands(block)
    for call in calls(command)
]
# The calls of blocks without output, which no test of this folder runs, by the place of the block.
OTHER_CALLS = [
    (block.place, call)
    for document in DOCUMENTS
    for block in blocks(document, "console", "sh")
    for command in (() if steps(block) else commands(block))
    for call in words_of_calls(command)
    if not re.match(r"\w+=", call[0]) and Path(call[0]).name != PROGRAM
]
MESSAGES = {
    span_of(row[0])
    for page, heading in ((OPERATIONS, "Troubleshooting"), (MONITORING, "Logs"))
    for row in rows(page, heading)
}
COMMANDS = root.list_commands(click.Context(root))
NAMED = [
    pytest.param(span.removeprefix(f"{PROGRAM} "), id=f"{name_of(document)} {span}")
    for document in DOCUMENTS
    for span in dict.fromkeys(spans(document))
    if span.startswith(f"{PROGRAM} ") or (" " in span and span.split()[0] in COMMANDS and span not in MESSAGES)
]
WITH_STEPS = [document for document in DOCUMENTS_TO_RUN if any(steps(block) for block in blocks(document, "console"))]


@pytest.mark.parametrize("call", ALL_CALLS)
def test_command_is_understood(call: list[str]) -> None:
    understand(call)


def test_the_page_on_tests_says_what_becomes_of_commands_that_are_not_run() -> None:
    table = rows(ROOT / "docs" / "testing.md", "Commands of the documents")
    named = {span for programs, _ in table for span in spans_of(programs)}
    assert {call[0] for _, call in OTHER_CALLS} - named == set()


def test_the_files_of_kubectl_and_helm_are_in_the_repository() -> None:
    words = [(place, word) for place, call in OTHER_CALLS if call[0] in ("kubectl", "helm") for word in call]
    assert [(place, word) for place, word in words if word.startswith("deploy/") and not (ROOT / word).exists()] == []


@pytest.mark.parametrize("span", NAMED)
def test_command_in_prose_exists(span: str) -> None:
    names = [word for word in span.split() if not word.startswith("-")]
    command: click.Command = root
    for name in names:
        if isinstance(command, click.Group):
            found = command.get_command(click.Context(command), name)
            assert found is not None, name
            command = found
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in span.split() if word.startswith("--")} <= known


@pytest.mark.slow
@pytest.mark.parametrize("document", WITH_STEPS, ids=name_of)
def test_commands_print_what_is_shown(document: Path, tmp_path: Path, programs: Path) -> None:
    for folder in ("webhook", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    write_named_files(document, tmp_path)
    for block in blocks(document, "console"):
        exit_code = 0
        for step in steps(block):
            ran = run(f"(exit {exit_code}); {step.command}", tmp_path, programs)
            exit_code = ran.returncode
            assert printed_as_shown(ran.stdout, step.shown), f"{block.place}: {step.command}\n{ran.stdout}"


@pytest.mark.slow
def test_demo_prints_what_is_shown(tmp_path: Path, programs: Path) -> None:
    (demo,) = [step for block in blocks(ROOT / "README.md", "text") for step in steps(block)]
    ran = run(f"{PROGRAM} demo", tmp_path, programs)

    assert demo.command == "make demo"
    assert "\t@$(BIN)/placement-webhook demo\n" in (ROOT / "Makefile").read_text()
    assert printed_as_shown(ran.stdout, demo.shown), ran.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `placement-webhook`, which runs this tree."""
    folder = tmp_path_factory.mktemp("programs")
    write_program(folder, PROGRAM)
    return folder


def run(command: str, folder: Path, programs: Path) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "120", "TERM": "dumb"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_every_command_of_the_program_is_in_the_readme() -> None:
    assert sorted(name for row in rows(ROOT / "README.md", "Commands") for name in spans_of(row[0])) == COMMANDS

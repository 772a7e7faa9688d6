"""The command as a whole: help, version, usage errors and internal errors."""

import errno
import gc
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import click
import pytest
from packaging.requirements import Requirement

from tests.support.programs.cluster_files import TRAINING, as_list
from tests.support.programs.command import Run
from webhook.cli.inputs import session
from webhook.cli.output.terminal import OutputError
from webhook.cli.root import COMMANDS, PACKAGES, LazyGroup, _print_completions, root
from webhook.documents.field import InvalidInput, required


def commands() -> list[str]:
    return LazyGroup().list_commands(click.Context(root))


def test_a_command_is_a_module_or_package_and_a_row() -> None:
    own = {
        module.name
        for folder in ("webhook.cli.commands", *(f"{each}.cli" for each in {*PACKAGES.values()}))
        for module in iter_modules(import_module(folder).__path__)
        if isinstance(getattr(import_module(f"{folder}.{module.name}"), module.name, None), click.Command)
    }

    assert own == set(COMMANDS)


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command(run: Run, flag: str) -> None:
    outcome = run(flag)

    assert outcome.code == 0
    for name, text in COMMANDS.items():
        assert re.search(rf"\n  {name} +{re.escape(text)}\n", outcome.output), name


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("command", commands())
def test_every_command_has_help(run: Run, command: str, flag: str) -> None:
    outcome = run(command, flag)

    assert outcome.code == 0
    assert outcome.output.startswith(f"Usage: placement-webhook {command} ")
    assert outcome.errors == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "Usage: placement-webhook [OPTIONS] COMMAND"),
        (("frobnicate",), "Error: No such command 'frobnicate'."),
        (("--frobnicate",), "Error: No such option"),
        (("mutate", "--frobnicate"), "Error: No such option"),
        (("mutate",), "Error: Missing option '-f' / '--filename'."),
        (("mutate", "-f"), "Error: Option '-f' requires an argument."),
        (("mutate", "-f", "x", "extra"), "Error: Got unexpected extra argument (extra); files follow -f"),
        (("check", "pod.yaml"), "Error: Got unexpected extra argument (pod.yaml); files follow -f"),
        (("check", "pod/web"), "(pod/web); `placement-webhook explain pod/web` reports on an object of the cluster"),
        (("policy", "export", "p.yaml"), "Error: Got unexpected extra argument (p.yaml); files follow --policy"),
        (("mutate", "-f", "x", "-o", "xml"), "Error: Invalid value for '-o' / '--output': 'xml' is not one of"),
        (
            ("check", "-f", "x", "--cluster", "c", "--context", "d"),
            "Error: --cluster is a file: leave --kubeconfig and --context out.",
        ),
        (("policy",), "Usage: placement-webhook policy [OPTIONS] COMMAND"),
        (("policy", "check"), "Error: Missing argument 'FILE…'."),
        (("serve",), "Error: Missing option '--tls-dir'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage_is_reported_with_code_2(run: Run, arguments: tuple[str, ...], expected: str) -> None:
    outcome = run(*arguments)

    assert (outcome.code, outcome.output) == (2, "")
    assert expected in outcome.errors


def test_an_internal_error_is_code_1_with_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(session, "read_manifests", broken)

    outcome = run("mutate", "-f", "x")

    assert (outcome.code, outcome.output) == (1, "")
    assert "ZeroDivisionError" in outcome.errors
    assert outcome.errors.endswith("Error: internal error in placement-webhook; please report the traceback above.\n")


@pytest.mark.slow
def test_a_closed_pipe_ends_the_command_without_an_error(tmp_path: Path) -> None:
    """`placement-webhook mutate … | head -1`"""
    (tmp_path / "pods.json").write_text(as_list(*[TRAINING] * 300))
    with subprocess.Popen(
        [sys.executable, "-m", "webhook", "mutate", "-f", str(tmp_path / "pods.json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == b"apiVersion: v1\n"
        command.stdout.close()
        errors = command.stderr.read()

    assert (command.returncode, errors) == (0, b"")


def test_no_release_of_click_is_allowed_that_does_not_import() -> None:
    """Before 8.4, `click.ParamType` takes no type argument, so that each command ends in a TypeError."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (allowed,) = (each.specifier for each in map(Requirement, project["dependencies"]) if each.name == "click")

    assert [each for each in ("8.1.8", "8.3.1", "8.4.0", "8.5.1") if allowed.contains(each)] == ["8.4.0", "8.5.1"]


def test_commands_are_completed_by_their_beginning_with_their_texts() -> None:
    found = root.shell_complete(click.Context(root), "re")

    names = ("reclaim", "replay", "report")
    assert [(each.value, each.help) for each in found] == [(name, COMMANDS[name]) for name in names]
    assert [each.value for each in root.shell_complete(click.Context(root), "--ver")] == ["--version"]


@pytest.mark.parametrize("is_enabled", [True, False], ids=["a command", "an unknown command"])
def test_garbage_is_collected_after_a_command_was_imported(is_enabled: bool) -> None:
    assert (LazyGroup().get_command(click.Context(root), "version" if is_enabled else "none") is not None) is is_enabled

    assert gc.isenabled()


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        # With these, output that is not written yet is discarded.
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (click.Abort(), 130, "Interrupted.\n"),
        (click.ClickException("a: Error: b"), 1, "Error: a: Error: b\n"),
        (click.ClickException("a\nError: b"), 1, "Error: a\\nError: b\n"),
        (InvalidInput([required("a", "x"), required("b", "y")]), 2, "Error: a: Required value: x\nError: b: "),
        (OutputError("full"), 1, "Error: standard output cannot be written: full\n"),
    ],
    ids=[
        "Ctrl-C",
        "abort",
        "usage",
        "usage of two lines",
        "input",
        "output",
    ],
)
def test_each_error_has_its_code_and_its_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    discarded: list[int] = []
    monkeypatch.setattr("webhook.cli.root.discard_output", lambda: discarded.append(1))
    monkeypatch.setattr(root, "invoke", fail)
    outcome = run("version")

    assert outcome.code == code
    assert outcome.errors.lstrip("\n").startswith(text)
    assert discarded == [1] * isinstance(error, (KeyboardInterrupt, click.Abort, OutputError))


@pytest.mark.parametrize(
    ("filename", "last"),
    [
        (None, "Error: TMPDIR: no folder for temporary files can be written; set it to one that can"),
        ("gone", "Error: internal error in placement-webhook; please report the traceback above."),
    ],
)
def test_only_a_missing_folder_for_temporary_files_is_reported_as_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, filename: str | None, last: str
) -> None:
    def none_found() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    def fail(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), filename)

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "gettempdir", none_found)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(root, "invoke", fail)
    outcome = run("version")

    assert (outcome.code, outcome.errors.splitlines()[-1]) == (1, last)


@pytest.mark.parametrize(("arguments", "wanted"), [([], "check\t"), (["ver"], "version\t"), (["none"], ":4")])
def test_kubectl_completes_the_last_argument_also_if_there_is_none(
    arguments: list[str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _print_completions(arguments)

    out = capsys.readouterr().out
    assert wanted in out
    assert out.endswith(":4\n")

"""Shell completion: bash, zsh and fish get commands, flags, values and file names."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.programs.programs import write_program
from webhook.cli.root import COMMANDS

pytestmark = pytest.mark.slow  # each test runs the program

VARIABLE = "_PLACEMENT_WEBHOOK_COMPLETE"


def complete(folder: Path, shell: str, line: str) -> list[str]:
    """Return the answers of the program to the shell, which completes the last word of `line`."""
    program = write_program(folder, "placement-webhook")
    *_, incomplete = words = line.split(" ")
    asked = {VARIABLE: f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    if shell == "fish":
        asked["COMP_CWORD"] = incomplete
    ran = subprocess.run([program], env=os.environ | asked, capture_output=True, text=True, check=True)
    return [each for each in ran.stdout.splitlines() if each]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_for_the_program(tmp_path: Path, shell: str) -> None:
    program = write_program(tmp_path, "placement-webhook")

    ran = subprocess.run([program], env=os.environ | {VARIABLE: f"{shell}_source"}, capture_output=True, check=True)

    assert f"{VARIABLE}={shell}_complete".encode() in ran.stdout
    assert ran.stderr == b""


def test_bash_completes_in_a_shell(tmp_path: Path) -> None:
    write_program(tmp_path, "placement-webhook")
    script = f"""
        eval "$({VARIABLE}=bash_source placement-webhook)"
        COMP_WORDS=(placement-webhook po); COMP_CWORD=1
        _placement_webhook_completion placement-webhook
        echo "${{COMPREPLY[@]}}"
    """
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])

    ran = subprocess.run(
        ["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "policy\n"


def test_all_commands_are_completed(tmp_path: Path) -> None:
    assert complete(tmp_path, "bash", "placement-webhook ") == [f"plain,{name}" for name in sorted(COMMANDS)]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("placement-webhook check -o ", ["plain,text", "plain,json"]),
        ("placement-webhook check -f po", ["file,po"]),
        ("placement-webhook policy check po", ["file,po"]),
        ("placement-webhook audit list au", ["file,au"]),
        ("placement-webhook check --max", ["plain,--max-nodes"]),
        ("placement-webhook check --kubeconfig absent --context ", []),
    ],
)
def test_flags_values_and_files_are_completed(tmp_path: Path, line: str, wanted: list[str]) -> None:
    assert complete(tmp_path, "bash", line) == wanted

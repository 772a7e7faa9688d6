"""The programs of the package in a folder for $PATH, running the code of this tree."""

import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def write_program(folder: Path, name: str, entry: str = "main") -> Path:
    """Return a program that calls this function of `webhook.cli`, as the one that pip makes."""
    program = folder / name
    lines = [
        f"#!{sys.executable} -P",
        "import sys",
        f"sys.path.insert(0, {str(ROOT)!r})",
        f"from webhook.cli import {entry}",
        f"{entry}()",
    ]
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    assert " " not in shlex.quote(sys.executable)
    return program

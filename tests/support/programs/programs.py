"""The programs of the package in a folder for $PATH, running the code of this tree."""

import functools
import shlex
import sys
import tempfile
from pathlib import Path

from tests.support.programs.fork_server import CLIENT, server_path

MAIN = "webhook.cli:main"


def write_program(folder: Path, name: str, entry: str = MAIN) -> Path:
    """Return a program that calls the function of this module, as the one that pip makes."""
    program = folder / name
    program.write_text(CLIENT.format(python=sys.executable, path=server_path(), entry=entry))
    program.chmod(0o755)
    assert " " not in shlex.quote(sys.executable)
    return program


@functools.cache
def forked(entry: str = MAIN) -> str:
    """Return the path of `placement-webhook`, or of another entry, which forks from a process with its modules."""
    return str(write_program(Path(tempfile.mkdtemp(prefix="programs-")), "placement-webhook", entry))

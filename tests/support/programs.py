"""The programs of the package in a folder for $PATH, running the code of this tree."""

import functools
import shlex
import sys
import tempfile
from pathlib import Path

from tests.support.fork_server import CLIENT, server_path


def write_program(folder: Path, name: str, entry: str = "main") -> Path:
    """Return a program that calls this function of `webhook.cli`, as the one that pip makes."""
    program = folder / name
    program.write_text(CLIENT.format(python=sys.executable, path=server_path(), entry=entry))
    program.chmod(0o755)
    assert " " not in shlex.quote(sys.executable)
    return program


@functools.cache
def forked() -> str:
    """Return the path of `placement-webhook`, which forks from a process with its modules."""
    return str(write_program(Path(tempfile.mkdtemp(prefix="programs-")), "placement-webhook"))

"""One program of the control plane as a process, which does not outlive the test run."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

from tests.controlplane.polling import wait_for

_TAIL_LINES = 25

# The kernel kills the program when the thread that started it ends, however that comes (PR_SET_PDEATHSIG is 1).
# The check of the parent closes the gap before that is agreed.
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class StartFailed(Exception):  # noqa: N818 - says what happened
    """A program ended or did not become ready; carries the end of its log."""


class HeldPort:
    """A free port on loopback that is reserved until it is closed.

    A program that sets SO_REUSEPORT or SO_REUSEADDR, as servers do, can listen on it while it is held. So no other
    process can take it before the program listens or while it restarts. Nothing is ever delivered to a socket that does
    not listen.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            self._socket.setsockopt(socket.SOL_SOCKET, option, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()


class Process:
    """A running program, with further variables of the `environment`; its output goes to `log`."""

    def __init__(
        self,
        program: Path,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name = program.name
        self.log = log
        command = [str(program), *arguments]
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def wait_ready(self, ready: Callable[[], bool]) -> None:
        """Return when `ready` says so.

        Raises:
            StartFailed: the program ended, or was not ready in time.
        """

        def ready_or_ended() -> bool:
            if self._process.poll() is not None:
                raise StartFailed(f"{self.name}: ended with {self._process.returncode}\n{self._tail()}")
            return ready()

        try:
            wait_for(ready_or_ended, self.name, deadline_seconds=60)
        except TimeoutError as late:
            raise StartFailed(f"{self.name}: not ready in time\n{self._tail()}") from late

    def stop(self) -> None:
        """Kill the process: its data is temporary, and a graceful end of the API server takes seconds."""
        self._process.kill()
        self._process.wait()

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        return "\n".join([f"the end of {self.log}:", *lines])

"""Runs of the program that are forked from a process with the modules loaded: imports take most of a short run.

A client sends its arguments, folder, environment and the three standard streams to a fork, forwards signals to it, and
exits with its code. What depends on how the interpreter starts needs a process of its own (`run_alone`).
"""

import atexit
import contextlib
import functools
import gc
import importlib
import marshal
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[3]
_MOST_BYTES = 2**20

# It imports only built-in modules: `json`, `signal` and `socket` would double its processor time.
CLIENT = """\
#!{python} -IS
import _signal, _socket, marshal, os, sys
SIGNALS = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGUSR1)
_signal.pthread_sigmask(_signal.SIG_BLOCK, SIGNALS)  # until they can be forwarded
server = _socket.socket(_socket.AF_UNIX)
server.connect({path!r})
given = marshal.dumps([{entry!r}, sys.argv, os.getcwd(), dict(os.environ)])
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
sent = server.sendmsg([given], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(given[sent:])
server.shutdown(_socket.SHUT_WR)
fork = int(server.recv(16) or sys.exit("the fork server has ended"))
for number in SIGNALS:
    _signal.signal(number, lambda number, _: os.kill(fork, number))
_signal.pthread_sigmask(_signal.SIG_UNBLOCK, SIGNALS)
code = int(server.recv(16))
if code < 0:  # ended by a signal
    _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@functools.cache
def server_path() -> str:
    """Start the server, once in this process, and return the path of its socket."""
    folder = tempfile.mkdtemp(prefix="fork-server-")
    path = str(Path(folder) / "socket")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.support.programs.fork_server", path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(process.kill)
    return path


def _serve(path: str) -> NoReturn:
    """Answer clients until the process that started this one ends."""
    code: list[int] = []
    atexit.register(_leave, code)  # the first to be registered is the last to run
    commands = importlib.import_module("webhook.cli.commands")
    for module in pkgutil.walk_packages(commands.__path__, f"{commands.__name__}."):
        importlib.import_module(module.name)
    for name, package in importlib.import_module("webhook.cli.root").PACKAGES.items():
        importlib.import_module(f"{package}.cli.{name}")
    gc.collect()
    gc.freeze()  # so that a collection in a fork copies no page of the modules
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no fork of this process is waited for
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(64)
        print("ready", flush=True)
        while server in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _answer(connection, code)
            connection.close()
    sys.exit(0)


def _answer(connection: socket.socket, code_at_exit: list[int]) -> NoReturn:
    """Run the program in a fork of this one, and send its exit code. It is killed if the client ends before."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    given, descriptors, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
    while data := connection.recv(_MOST_BYTES):
        given += data
    entry, arguments, folder, environment = marshal.loads(given)
    child = os.fork()
    if child == 0:
        connection.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = arguments
        # Streams that do not close their descriptors: the program replaces them by its own.
        streams = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww"))
        sys.stdin, sys.stdout, sys.stderr = streams
        module, function = entry.split(":")
        try:
            sys.exit(getattr(importlib.import_module(module), function)())
        except SystemExit as left:
            if left.code is None or isinstance(left.code, int):
                code_at_exit.append(left.code or 0)
            raise
    connection.send(f"{child:16}".encode())
    ended = os.pidfd_open(child)
    hangup = select.poll()
    hangup.register(connection, select.POLLHUP)
    hangup.register(ended, select.POLLIN)
    if [number for number, _ in hangup.poll()] == [connection.fileno()]:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        connection.send(str(code).encode())
    os._exit(0)


def _leave(code: list[int]) -> None:
    """Exit with the code of a fork, if it has one, as its last exit handler.

    The interpreter would destroy all modules, which copies nearly every page of the fork. An error of a stream is left
    to the interpreter, which reports it.
    """
    if code:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code[0] & 0xFF)


if __name__ == "__main__":
    _serve(sys.argv[1])

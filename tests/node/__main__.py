"""`make node` and `make node-down`: one real node on this machine. `check` reports whether it can run one."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.controlplane.binaries import MissingPrograms
from tests.controlplane.cache import cache_folder
from tests.controlplane.go_command import BuildFailed
from tests.controlplane.polling import Stopwatch
from tests.node.running.machine import MissingMachine, lacking_privileges, require_machine
from tests.node.running.node import Node
from tests.node.running.programs import node_programs
from tests.node.running.remains import remove_node

_USAGE = "usage: python -m tests.node up|down|check"


def node_folder(name: str) -> Path:
    """Return the folder of the files of a node."""
    return cache_folder(os.environ).parent / "node" / name


def main(arguments: list[str]) -> int:
    """Run the command; return its exit code."""
    commands: dict[str, Callable[[], int]] = {"up": _up, "down": _down, "check": _check}
    if len(arguments) != 1 or arguments[0] not in commands:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        return commands[arguments[0]]()
    except (MissingMachine, MissingPrograms, BuildFailed) as missing:
        print(f"node: {missing}", file=sys.stderr)
        return 1


def _check() -> int:
    require_machine(builds_image=True)
    return 0


def _up() -> int:
    require_machine()
    began = Stopwatch()

    def progress(line: str) -> None:
        print(f"node: {began.seconds:5.1f} s  {line}", file=sys.stderr, flush=True)

    programs = node_programs(os.environ, progress)
    began = Stopwatch()
    node = Node(programs, node_folder("node"), progress, held=False)
    node.create()
    enter = f"nsenter --net=/proc/{node.namespaces.pid}/ns/net"
    print(f"{enter} env KUBECONFIG={node.kubeconfig} {programs['kubectl']} get nodes")
    return 0


def _down() -> int:
    if lacking := lacking_privileges():
        raise MissingMachine(lacking)
    folder = node_folder("node")
    if not folder.exists():
        print("node: there is none", file=sys.stderr)
        return 0
    remove_node(folder)
    print("node: removed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

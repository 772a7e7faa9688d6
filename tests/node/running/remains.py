"""The record of what a node changes outside of its namespaces, by which it is removed, also after a crash."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.node.running.namespaces import (
    Namespaces,
    kernel_settings,
    remove_cgroup,
    remove_folder,
    restore_kernel_settings,
)

_FILE = "state.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def record_machine(folder: Path, cgroup: str) -> None:
    """Record the cgroup of a node and the kernel's settings, before anything is started the first time."""
    _write(folder, {"boot": _BOOT.read_text(), "cgroup": cgroup, "kernelSettings": kernel_settings()})


def record_process(folder: Path, namespaces: Namespaces) -> None:
    """Record the process 1 of a node."""
    state = json.loads((folder / _FILE).read_text())
    _write(folder, state | {"pid": namespaces.pid, "started": namespaces.started})


def remove_node(folder: Path) -> None:
    """Remove the node whose files are in `folder`, whether it runs, is off, or crashed; nothing if there is none.

    After another boot, its process is gone and the kernel has its own settings again.
    """
    with suppress(FileNotFoundError):
        state = json.loads((folder / _FILE).read_text())
        if state["boot"] == _BOOT.read_text():
            namespaces = Namespaces(state.get("pid", 0))
            if namespaces.started == state.get("started"):
                namespaces.end()
            restore_kernel_settings(state["kernelSettings"])
            remove_cgroup(state["cgroup"])
    remove_folder(folder)


def _write(folder: Path, state: dict[str, Any]) -> None:
    (folder / _FILE).write_text(json.dumps(state))

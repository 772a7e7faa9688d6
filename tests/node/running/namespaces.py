"""The namespaces of a node: its mounts, network, processes and names, which all end with its process 1.

If process 1 is killed, the kernel ends every program and container of the node and removes its mounts and its network.
Files in one folder and empty cgroups are left.
"""

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO

from tests.controlplane.polling import wait_for
from tests.node.running.machine import cgroup_hierarchies, cgroup_mounts

KUBELET_FOLDER = Path("/var/lib/kubelet")
"""Kubelets expect device plugins and DRA drivers below it, also with another --root-dir."""

_CNI_FOLDER = Path("/var/lib/cni")
_CLONE_NEWNET = 0x40000000
_ENTERED = ("--mount", "--net", "--pid", "--uts", "--ipc")
# Kubelets set them for the whole machine.
# Source: k8s.io/kubernetes/pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables
_KERNEL_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)

# Arguments: the folder of the node, its address, its name, and the program that becomes process 1. The tmpfs on /run
# hides the sockets of the machine's own engine. There may be no dummy link in the kernel, so the node's link is one end
# of a veth pair. Its default route leads nowhere, but without one no address of a Service is routed.
_SETUP = """
set -eu
mount --make-rshared /
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/netns /run/lock
mount --bind "$1/kubelet" /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
mount --bind "$1/var-log" /var/log
mount --bind "$1/var-lib-cni" /var/lib/cni
hostname "$3"
ip link set lo up
ip link add node0 type veth peer name nowhere
ip link set nowhere up
ip address add "$2/24" dev node0
ip link set node0 up
ip route add default dev node0
sysctl -qw net.ipv4.ip_forward=1
for bridge in /proc/sys/net/bridge/bridge-nf-call-iptables; do [ ! -e $bridge ] || echo 1 > $bridge; done
exec "$4"
"""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces of the process `pid`, which is process 1 of them."""

    pid: int

    def command(self, *command: str | Path) -> list[str]:
        """Return the command that runs `command` in the namespaces."""
        return ["nsenter", f"--target={self.pid}", *_ENTERED, "--wd=/", "--", *map(str, command)]

    @contextmanager
    def network(self) -> Iterator[None]:
        """Let this thread, and the threads and processes that it starts, use the network of the node."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _enter_network(f"/proc/{self.pid}/ns/net")
            try:
                yield
            finally:
                _set_network(own)
        finally:
            os.close(own)

    def end(self) -> None:
        """Kill process 1, and with it whatever runs in the namespaces; return when it is gone."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: self.started is None, "the end of the node")

    @property
    def started(self) -> str | None:
        """The time at which process 1 started, in ticks since the boot; None if it does not run."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in ("Z", "X") else fields[19]


def new_namespaces(
    folder: Path, address: str, name: str, process_one: Path, log: IO[bytes], *, held: bool
) -> tuple[Namespaces, "subprocess.Popen[bytes]"]:
    """Return new namespaces with the network of a node, whose files are in `folder`, and the parent of process 1.

    If `held`, they end with this process.
    """
    for each in (folder / "kubelet", folder / "var-log", folder / "var-lib-cni", KUBELET_FOLDER, _CNI_FOLDER):
        each.mkdir(parents=True, exist_ok=True)
    flags = ("--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--mount-proc", "--kill-child")
    setup = ("sh", "-c", _SETUP, "sh", str(folder), address, name, str(process_one))
    unshare = subprocess.Popen(
        ["unshare", *flags, *setup],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=_die_with_parent if held else None,
    )

    def process_1() -> int | None:
        if unshare.poll() is not None:
            raise ChildProcessError(f"the namespaces of the node ended: see {log.name}")
        found = children(unshare.pid)
        ready = found and Path(f"/proc/{found[0]}/exe").resolve() == process_one.resolve()
        return found[0] if ready else None

    return Namespaces(wait_for(process_1, "process 1 of the node")), unshare


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def make_cgroup(name: str) -> None:
    """Make the root of the pods' cgroups in each hierarchy."""
    for mounted in cgroup_hierarchies():
        (mounted / name).mkdir(exist_ok=True)


def remove_cgroup(name: str) -> None:
    """Remove the cgroups below the root of the pods, which no process is in any more."""
    # runc makes it also in the hierarchy of cgroup v2 that systems with v1 have beside it.
    for mounted in cgroup_mounts():
        for folder, _, _ in os.walk(mounted / name, topdown=False):
            wait_for(partial(_removed, Path(folder)), f"the cgroup {folder} to be empty")


def kernel_settings() -> dict[str, str]:
    """Return the settings of the machine's kernel that a kubelet changes."""
    paths = {name: Path("/proc/sys") / name for name in _KERNEL_SETTINGS}
    return {name: path.read_text() for name, path in paths.items() if path.exists()}


def restore_kernel_settings(settings: Mapping[str, str]) -> None:
    """Write back what a kubelet changed."""
    for name, value in settings.items():
        path = Path("/proc/sys") / name
        if path.read_text() != value:
            path.write_text(value)


def run(
    command: Sequence[str],
    *,
    stdin: str | None = None,
    check: bool = True,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Return the outcome of a command.

    Raises:
        CalledProcessError: it failed, and `check` was left on; with its output as a note.
    """
    outcome = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if check and outcome.returncode != 0:
        failure = subprocess.CalledProcessError(outcome.returncode, command, outcome.stdout, outcome.stderr)
        failure.add_note(outcome.stdout + outcome.stderr)
        raise failure
    return outcome


def remove_folder(folder: Path) -> None:
    """Remove the files of a node, which nothing has mounted any more."""
    if folder.exists():
        shutil.rmtree(folder)
    for mounted_over in (KUBELET_FOLDER, _CNI_FOLDER):
        with suppress(OSError):  # the machine may have a kubelet of its own
            mounted_over.rmdir()


def _enter_network(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _set_network(descriptor)
    finally:
        os.close(descriptor)


def _set_network(descriptor: int) -> None:
    # os.setns exists from Python 3.12 on.
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)

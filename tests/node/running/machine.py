"""The needs of a real node, and which of them this machine lacks."""

import os
import shutil
import sys
from pathlib import Path

CNI_PLUGINS = Path("/usr/lib/cni")
"""The folder of Debian's package containernetworking-plugins."""

# Program: Debian's package.
_PROGRAMS = {
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "sysctl": "procps",
}
_IMAGE_PROGRAMS = {"docker": "docker.io", "debootstrap": "debootstrap"}
# Of kube-router.
_POLICY_PROGRAMS = {"ipset": "ipset"}
_CNI_PLUGINS = ("bridge", "host-local", "loopback", "portmap")
# The numbers of the capabilities in the kernel's capability.h.
_NEEDED = {"CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12}
_CAP_SYS_RESOURCE = 24


class MissingMachine(Exception):  # noqa: N818 - a finding: the short form of the tests reports it
    """This machine cannot run a node; says in one line what is missing and what to do."""


def require_machine(*, builds_image: bool = False, enforces_policies: bool = False) -> None:
    """Return if this machine can run a node.

    With `builds_image`, it must be able to build the image, and with `enforces_policies` to enforce NetworkPolicies.

    Raises:
        MissingMachine: the system, a privilege or a program is missing.
    """
    if sys.platform != "linux":
        raise MissingMachine(f"a node needs Linux: this is {sys.platform}")
    if lacking := lacking_privileges():
        raise MissingMachine(f"a node needs root with {' and '.join(_NEEDED)}: {lacking}")
    needed = _PROGRAMS | (_IMAGE_PROGRAMS if builds_image else {}) | (_POLICY_PROGRAMS if enforces_policies else {})
    packages = {package for program, package in needed.items() if shutil.which(program, path=search_path()) is None}
    if any(not (CNI_PLUGINS / plugin).exists() for plugin in _CNI_PLUGINS):
        packages.add("containernetworking-plugins")
    if packages:
        raise MissingMachine(f"a node needs more programs: apt-get install {' '.join(sorted(packages))}")
    if not cgroup_mounts():
        raise MissingMachine("a node needs a mounted cgroup file system below /sys/fs/cgroup")


def may_lower_oom_scores() -> bool:
    """Return whether processes may lower their oom_score_adj, as runc does for sandboxes."""
    return _has(_CAP_SYS_RESOURCE)


def cgroup_hierarchies() -> list[Path]:
    """Return the mount points of the cgroup hierarchies that have controllers: one of cgroup v2, or several of v1."""
    return _mounts("cgroup") or _mounts("cgroup2")


def cgroup_mounts() -> list[Path]:
    """Return the mount points of all cgroup hierarchies."""
    return _mounts("cgroup", "cgroup2")


def _mounts(*kinds: str) -> list[Path]:
    fields = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return [Path(each[1]) for each in fields if each[2] in kinds]


def _has(capability: int) -> bool:
    status = Path("/proc/self/status").read_text()
    (effective,) = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return bool(int(effective, 16) >> capability & 1)


def lacking_privileges() -> str:
    """Return what to do about missing privileges; empty if nothing is missing."""
    if os.geteuid() != 0:
        return "run it as root"
    lacking = [name for name, bit in _NEEDED.items() if not _has(bit)]
    return f"this process lacks {', '.join(lacking)}" if lacking else ""


def search_path() -> str:
    """Return the folders in which the programs are looked for."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

"""Where the programs of the control plane are: in KUBEBUILDER_ASSETS, else built once and kept.

`python -m tests.controlplane.binaries` finds or builds them and prints their folder. KUBEBUILDER_ASSETS is the
name that envtest gave to the folder of these programs. It usually has no kube-scheduler and no
kube-controller-manager; what it lacks comes from the build. A build takes about five minutes on two cores and 4 GB
in Go's own caches.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.build import PROGRAMS, built, is_built, pinned_minor
from tests.controlplane.cache import Progress, cache_folder
from tests.controlplane.go_command import BuildFailed

ASSETS = "KUBEBUILDER_ASSETS"
REQUIRED = "REQUIRE_CONTROL_PLANE"

_OF_THE_RELEASE = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
_WAY_IN = f"set {ASSETS} to a folder that has {', '.join(PROGRAMS)} of Kubernetes 1.{pinned_minor()}"


class MissingPrograms(Exception):  # noqa: N818 - a finding: tests skip on it
    """Programs that are neither in KUBEBUILDER_ASSETS nor could be built; says which, why, and the remedy."""


def find_or_build(environ: Mapping[str, str], progress: Progress) -> dict[str, Path]:
    """Return the path of each of PROGRAMS.

    Raises:
        MissingPrograms: KUBEBUILDER_ASSETS names a folder of no use, or the build failed.
    """
    found = _assets(environ[ASSETS]) if environ.get(ASSETS) else {}
    lacking = [program for program in PROGRAMS if program not in found]
    if lacking:
        try:
            folder = built(cache_folder(environ), environ, progress)
        except (BuildFailed, OSError) as failure:
            lacked = f"{', '.join(lacking)} not in {ASSETS}={environ[ASSETS]}, and " if found else ""
            raise MissingPrograms(f"{lacked}the build failed: {failure}; {_WAY_IN}") from failure
        found |= {program: folder / program for program in lacking}
    return found


def are_there(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the programs need no build."""
    try:
        found = _assets(environ[ASSETS]) if environ.get(ASSETS) else {}
    except MissingPrograms:
        return False
    return len(found) == len(PROGRAMS) or is_built(cache_folder(environ), environ)


def _assets(value: str) -> dict[str, Path]:
    folder = Path(value).absolute()
    found = {program: folder / program for program in PROGRAMS if os.access(folder / program, os.X_OK)}
    if not folder.is_dir():
        fault = "not a folder"
    elif not found:
        fault = "none of the programs is there"
    else:
        fault = "; ".join(filter(None, map(_fault, found.values())))
    if fault:
        raise MissingPrograms(f"{ASSETS}: Invalid value: {value!r}; {fault}: {_WAY_IN}, or unset it")
    return found


def _fault(program: Path) -> str | None:
    """Return the reason why a program is unusable, such as another release, which has other messages and APIs."""
    if program.name not in _OF_THE_RELEASE:
        return None
    try:
        output = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False).stdout
    except OSError as failure:
        return f"{program.name} does not run here ({failure.strerror})"
    version = re.match(r"Kubernetes v1\.(\d+)", output)
    if version and int(version.group(1)) >= pinned_minor():
        return None
    return f"{program.name} says {output.strip()!r}, but 1.{pinned_minor()} or newer is needed"


def main() -> int:
    """Print the folder of the programs (more than one where KUBEBUILDER_ASSETS lacks some)."""
    try:
        programs = find_or_build(os.environ, lambda line: print(f"control plane: {line}", file=sys.stderr, flush=True))
    except MissingPrograms as missing:
        print(f"control plane: {missing}", file=sys.stderr)
        return 1
    for folder in dict.fromkeys(path.parent for path in programs.values()):
        print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

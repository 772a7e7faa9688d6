"""A stand-in for the base of the Dockerfile where no registry can be reached: Debian trixie with its own Python.

debootstrap makes it of the packages of Debian, from the mirror that apt of this machine uses. It has the layout of
python:slim: `python`, `python3` and pip in /usr/local. Its size and its build of Python are others.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.cache import Progress, made_whole
from tests.node.images.engine import ISOLATED, Engine, NoImage

_DOCKERFILE = Path(__file__).with_name("stand_in_base") / "Dockerfile"
_PACKAGES = "python3,python3-pip-whl,ca-certificates"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_PIP = Path("/etc/pip.conf")

# pip and ensurepip come from Debian's wheels, so nothing is downloaded, and pip can be uninstalled as in python:slim.
_LAYOUT = """
rm /usr/lib/python3*/EXTERNALLY-MANAGED
wheel=$(ls /usr/share/python-wheels/pip-*.whl)
python3 "$wheel/pip" install --no-index --no-compile --root-user-action=ignore --quiet "$wheel"
rm -r /usr/share/python-wheels
ln -s /usr/bin/python3 /usr/local/bin/python
ln -s /usr/bin/python3 /usr/local/bin/python3
rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /usr/share/doc /usr/share/man /usr/share/locale /usr/share/info
find / -xdev -name __pycache__ -prune -exec rm -r {} +
python3 --version
"""

# In the namespaces of its own: debootstrap mounts /proc in the folder and leaves it there when it is killed.
_MAKE = """
set -e
debootstrap --variant=minbase --include="$PACKAGES" trixie "$FOLDER/root" $MIRROR >"$FOLDER/debootstrap.log" 2>&1 \
    || { tail -n 3 "$FOLDER/debootstrap.log" >&2; exit 1; }
chroot "$FOLDER/root" sh -ec "$LAYOUT" >"$FOLDER/python-version"
umount "$FOLDER/root/proc" 2>/dev/null || true
tar --numeric-owner --one-file-system -C "$FOLDER/root" -cf "$FOLDER/root.tar" .
rm -r --one-file-system "$FOLDER/root"
"""

RECIPE = hashlib.sha256(f"{_PACKAGES}{_LAYOUT}{_MAKE}{_DOCKERFILE.read_text()}".encode()).hexdigest()[:16]
"""Changes with what the stand-in is made of."""

BUILD_STAND_IN = f"placement-webhook-stand-in-build:{RECIPE}"
"""The stand-in of the build stage: it has the pip.conf of this machine, which may hold credentials of an index."""


@dataclass(frozen=True, slots=True)
class Base:
    """The image that the stages of the Dockerfile start from: `final`, and `build` for the stage that installs."""

    final: str
    build: str
    shown: str


def make_stand_in(engine: Engine, environ: Mapping[str, str], folder: Path, progress: Progress) -> Base:
    """Return the stand-in, made once: kept in `folder` as an archive and in the engine as an image.

    Raises:
        NoImage: debootstrap is missing or failed, or this process is not root.
    """
    kept = folder / f"stand-in-{RECIPE}"
    if not kept.exists():
        _debootstrap(kept, environ, progress)
    version = (kept / "python-version").read_text().split()[-1]
    final = f"placement-webhook-stand-in:{RECIPE}"
    if not engine.has(final):
        engine("import", "--change", f"ENV PATH={_PATH}", str(kept / "root.tar"), final)
    arguments = ("--build-arg", f"STAND_IN={final}", "--tag", BUILD_STAND_IN)
    _build_stage(engine, folder / "engine" / "stand-in-context", arguments)
    shown = f"a stand-in, Debian trixie with its own Python {version}, not the base of the Dockerfile"
    return Base(final, BUILD_STAND_IN, shown)


def _debootstrap(target: Path, environ: Mapping[str, str], progress: Progress) -> None:
    if shutil.which("debootstrap") is None:
        raise NoImage("no registry answers and debootstrap is not installed: set PYTHON_IMAGE, or install debootstrap")
    if os.geteuid() != 0:
        raise NoImage("no registry answers, and only root can make a stand-in of it: set PYTHON_IMAGE, or run as root")
    progress(f"making the stand-in base in {target}: about two minutes, once")
    with made_whole(target) as unfinished:
        given = {"FOLDER": str(unfinished), "MIRROR": _mirror(), "PACKAGES": _PACKAGES, "LAYOUT": _LAYOUT}
        outcome = subprocess.run(
            [*ISOLATED, "sh", "-c", _MAKE],
            env={**environ, **given, "PATH": f"{environ.get('PATH', '')}:{_PATH}", "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
        if outcome.returncode:
            raise NoImage(f"debootstrap: {' '.join(outcome.stderr.split())[-400:]}")


def _mirror() -> str:
    """Return the first Debian mirror of apt of this machine; empty for debootstrap's own."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Origin: Debian", "Created-By: Packages"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    except FileNotFoundError:
        return ""
    return listed[0] if listed else ""


def _build_stage(engine: Engine, context: Path, arguments: tuple[str, ...]) -> None:
    """Build the base of the build stage: the stand-in with the CA bundle and pip.conf of this machine."""
    shutil.rmtree(context, ignore_errors=True)
    (context / "machine").mkdir(parents=True)
    try:
        for path in (_AUTHORITIES, _PIP):
            if path.is_file():
                copy = context / "machine" / path.relative_to("/")
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
        engine.build(*arguments, "--file", str(_DOCKERFILE), str(context))
    finally:
        shutil.rmtree(context)

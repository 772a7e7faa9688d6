"""The files of a release, each written by one function.

All but the image are the same for the same commit: SOURCE_DATE_EPOCH is the time in archives, by default that of the
commit.
"""

import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.controlplane.cache import Progress
from tests.node.images.image import BASE, base_of_the_dockerfile, build_image
from tests.node.running.archive import ARCHITECTURES
from tests.support.objects.manifests import DEPLOY, ROOT

VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SUMS = "SHA256SUMS"
EPOCH = "SOURCE_DATE_EPOCH"
MANIFESTS: Mapping[str, Path] = {
    **{path.parent.name: path.parent for path in sorted(DEPLOY.glob("overlays/*/kustomization.yaml"))},
    "placementpolicies": DEPLOY / "crd",
    "monitoring": DEPLOY / "monitoring",
}
"""The folder of the kustomization that each file of manifests is made of."""


def epoch(environ: Mapping[str, str]) -> int:
    """Return SOURCE_DATE_EPOCH, else the time of the commit, else that of a tree without git."""
    if environ.get(EPOCH):
        return int(environ[EPOCH])
    command = ["git", "log", "-1", "--format=%ct"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(commit.stdout) if commit.returncode == 0 else int(ROOT.joinpath("pyproject.toml").stat().st_mtime)


def write_packages(output: Path, time: int) -> None:
    """Write the sdist and the wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(output.absolute())]
    subprocess.run(command, cwd=ROOT, env={**os.environ, EPOCH: str(time)}, stdout=subprocess.DEVNULL, check=True)


def write_chart(output: Path, time: int) -> Path:
    """Write the chart in the layout of `helm package`: NAME-VERSION.tgz with all files below NAME, Chart.yaml first."""
    chart = DEPLOY / "chart"
    paths = [path for path in chart.rglob("*") if path.is_file()]
    paths.sort(key=lambda path: (path.name != "Chart.yaml", path))
    target = output / f"placement-webhook-{VERSION}.tgz"
    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in paths:
            entry = tarfile.TarInfo(f"placement-webhook/{path.relative_to(chart)}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, time, 0o644
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return target


def write_manifests(output: Path, kubectl: Path, repository: str = "") -> None:
    """Write the objects of each overlay, with the image of `repository` if it is given.

    A release of GitHub has no folders, so all files are beside each other.
    """
    for name, source in MANIFESTS.items():
        rendered = _rendered(kubectl, source)
        if repository:
            rendered = rendered.replace(f"image: placement-webhook:{VERSION}", f"image: {repository}:{VERSION}")
        (output / manifests_name(name)).write_text(rendered)


@cache
def _rendered(kubectl: Path, source: Path) -> str:
    return subprocess.run([str(kubectl), "kustomize", str(source)], capture_output=True, text=True, check=True).stdout


def manifests_name(overlay: str) -> str:
    """Return the name of the file with the objects of an overlay."""
    return f"placement-webhook-{VERSION}-{overlay}.yaml"


def write_image(output: Path, environ: Mapping[str, str], progress: Progress, *, stand_in: bool = False) -> None:
    """Write the image for the architecture of this machine; a stand-in base, if one is allowed, is part of the name.

    Raises:
        NoImage: there is no engine, the base cannot be pulled and no stand-in is allowed, or the build failed.
    """
    if not stand_in:
        environ = {**environ, BASE: environ.get(BASE) or base_of_the_dockerfile()}
    image = build_image(environ, progress)
    progress(f"{image.reference}, {image.bytes / 2**20:.0f} MiB, base: {image.base}")
    machine = ARCHITECTURES.get(platform.machine(), platform.machine())
    base = "-stand-in-base" if image.base.startswith("a stand-in") else ""
    target = output / f"placement-webhook-{VERSION}-image{base}-linux-{machine}.tar.gz"
    with image.archive.open("rb") as archive, gzip.open(target, "wb", compresslevel=4) as packed:
        shutil.copyfileobj(archive, packed, 2**20)


def write_sums(output: Path) -> None:
    """Write the checksums of all files, for `sha256sum --check`."""
    paths = sorted(path for path in output.iterdir() if path.name not in (SUMS, ".gitignore"))
    lines = []
    for path in paths:
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (output / SUMS).write_text("".join(lines))

"""The image of the Dockerfile, built once for each state of what it is made of, and kept as an archive.

`python -m tests.node.images.image` finds or builds it and prints the archive, the base and the size. The base is the
one that the Dockerfile names, where its registry can be reached; PYTHON_IMAGE names another. Where no registry
answers, a stand-in takes its place (`tests/node/images/stand_in_base.py`), and the output says so.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.controlplane.cache import Progress, cache_folder, locked, made_whole
from tests.node.images.engine import Engine, NoImage, answers, running_engine
from tests.node.images.stand_in_base import BUILD_STAND_IN, RECIPE, Base, make_stand_in
from tests.support.objects.manifests import ROOT

BASE = "PYTHON_IMAGE"

_BASE_LABEL = "org.opencontainers.image.base.name"
_STAGE = "placement-webhook-build-stage"
_ARCHIVE, _FACTS = "image.tar", "image.json"
_KEPT = 3


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """The image in `archive`, as `docker save` writes it. `bytes` is its size on a node."""

    archive: Path
    reference: str
    base: str
    bytes: int


def build_image(environ: Mapping[str, str], progress: Progress) -> BuiltImage:
    """Return the image, built if its sources have changed since the last three builds.

    Raises:
        NoImage: an engine, a base or the rights are missing, or a step of the Dockerfile failed.
    """
    folder = cache_folder(environ) / "image"
    target = folder / f"built-{_key(environ)}"
    if not target.exists():
        with locked(folder, progress):
            if not target.exists():
                _build(target, environ, progress)
    facts = json.loads((target / _FACTS).read_text())
    return BuiltImage(archive=target / _ARCHIVE, **facts)


@contextmanager
def loaded_image(environ: Mapping[str, str], progress: Progress) -> Iterator[tuple[Engine, BuiltImage]]:
    """Return an engine that has the image, for the time of the context; nothing else builds meanwhile.

    Raises:
        NoImage: see `build_image`.
    """
    image = build_image(environ, progress)
    with engine_with(image.archive, environ, progress) as engine:
        yield engine, image


@contextmanager
def engine_with(archive: Path, environ: Mapping[str, str], progress: Progress) -> Iterator[Engine]:
    """Return an engine that has the image of an archive; nothing else builds meanwhile.

    Raises:
        NoImage: there is no engine, or it does not take the archive.
    """
    folder = cache_folder(environ) / "image"
    with locked(folder, progress), running_engine(environ, folder / "engine", progress) as engine:
        engine("load", "--quiet", "--input", str(archive))
        yield engine


def keep_in_running_docker(image: BuiltImage, environ: Mapping[str, str], progress: Progress) -> None:
    """Load the image into the docker that runs, if one does and does not have it, as `docker build` would leave it."""
    log = image.archive.parents[1] / "engine" / "build.log"
    running = Engine(environ, log, private=False)
    if answers(environ) and not running.has(image.reference):
        progress(f"loading {image.reference} into docker")
        running("load", "--quiet", "--input", str(image.archive))


def _build(target: Path, environ: Mapping[str, str], progress: Progress) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    reference = f"placement-webhook:{version}"
    # The stage is made of the stand-in, so it goes first.
    with running_engine(environ, target.parent / "engine", progress) as engine, engine.passing(_STAGE, BUILD_STAND_IN):
        base = _base(engine, environ, target.parent, progress)
        progress(f"building {reference} on {base.shown}")
        stages = ("--build-arg", f"PYTHON_IMAGE={base.final}", "--build-arg", f"BUILD_IMAGE={base.build}")
        arguments = (*stages, "--build-arg", f"VERSION={version}", str(ROOT))
        # With names, both stages stay when what has none is removed: the next build takes its layers from them.
        engine.build("--target", "build", "--tag", _STAGE, *arguments, progress=progress)
        engine.build("--tag", reference, "--label", f"{_BASE_LABEL}={base.shown}", *arguments, progress=progress)
        if engine.private:
            engine("image", "prune", "--force")
        size = int(engine("image", "inspect", "--format", "{{.Size}}", reference))
        with made_whole(target) as unfinished:
            engine("save", reference, "--output", str(unfinished / _ARCHIVE))
            facts = asdict(BuiltImage(Path(), reference, base.shown, size))
            del facts["archive"]
            (unfinished / _FACTS).write_text(json.dumps(facts))
    older = sorted(target.parent.glob("built-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for superseded in older[_KEPT:]:
        shutil.rmtree(superseded)


def _base(engine: Engine, environ: Mapping[str, str], folder: Path, progress: Progress) -> Base:
    """Return the base of the Dockerfile, or of PYTHON_IMAGE, or the stand-in where it cannot be pulled."""
    named = environ.get(BASE) or base_of_the_dockerfile()
    try:
        if not engine.has(named):
            progress(f"pulling {named}")
            engine("pull", "--quiet", named)
    except NoImage as failure:
        if environ.get(BASE):
            raise
        progress(f"{failure}; a stand-in is the base instead")
        return make_stand_in(engine, environ, folder, progress)
    return Base(named, named, named)


def base_of_the_dockerfile() -> str:
    """Return the base that the Dockerfile names.

    Raises:
        NoImage: it names none.
    """
    found = re.search(r"^ARG PYTHON_IMAGE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    if found is None:
        raise NoImage("Dockerfile: no line `ARG PYTHON_IMAGE=…`")
    return found.group(1)


def _key(environ: Mapping[str, str]) -> str:
    content = hashlib.sha256(f"{RECIPE} {environ.get(BASE, '')}".encode())
    for path in _sources():
        content.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode())
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    """Return the files that a build sees: the Dockerfile and what .dockerignore lets through."""
    ignored = ROOT / ".dockerignore"
    let_through = re.findall(r"^!(\S+)$", ignored.read_text(), re.MULTILINE)
    for name in ("Dockerfile", ignored.name, *let_through):
        found = ROOT / name
        inside = (path for path in found.rglob("*") if path.is_file() and path.suffix != ".pyc")
        yield from sorted(inside) if found.is_dir() else [found]


def main() -> int:
    """Print the archive, the base and the size of the image."""

    def progress(line: str) -> None:
        print(f"image: {line}", file=sys.stderr, flush=True)

    try:
        image = build_image(os.environ, progress)
        keep_in_running_docker(image, os.environ, progress)
    except NoImage as missing:
        print(f"image: {missing}", file=sys.stderr)
        return 1
    print(f"{image.archive}\n{image.reference}, {image.bytes / 2**20:.0f} MiB, base: {image.base}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

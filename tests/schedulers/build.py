"""Build the schedulers from their Go modules, as the control plane is built, and keep the files of their modules."""

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.controlplane.cache import Progress, cache_folder, locked, made_whole
from tests.controlplane.go_command import BuildFailed, GoCommand
from tests.controlplane.toolchain import NoToolchain, find_or_install

_MODULES = Path(__file__).parent / "golang"
_FILES = "files"


@dataclass(frozen=True, slots=True)
class LocalCopy:
    """A dependency that is built from a copy with one more file: `addition`, put into the folder `package`.

    go.mod replaces the module by the folder `copy`. `sum` is what go.sum would state of the module.
    """

    module: str
    sum: str
    copy: str
    addition: str
    package: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """The programs of a scheduler and the folders or files of its module that tests read.

    The Go module is `name` in the folder `modules`. Its `tool` lines name the main packages, or its own main package is
    the program `name`. A build takes up to `minutes` on two cores. If the variable `version` is named, it is set to the
    version of the module.
    """

    name: str
    module: str
    files: tuple[str, ...]
    local_copy: LocalCopy | None = None
    modules: Path = field(default=_MODULES, repr=False)
    minutes: int = field(default=9, repr=False)
    version: str = field(default="", repr=False)


VOLCANO = Recipe(
    "volcano",
    "volcano.sh/volcano",
    (
        "config/crd/volcano/bases",
        "config/crd/jobflow/bases",
        "installer/helm/chart/volcano/config/volcano-scheduler.conf",
    ),
    LocalCopy(
        module="volcano.sh/apis@v1.14.0",
        sum="h1:Rf8wzGFmgzbyg85GO0CxapDDEk/VM3D7QbjbI/sH+OQ=",
        copy="apis",
        addition="queue_allocation_gate.go",
        package="pkg/apis/scheduling/v1beta1",
    ),
)
KAI = Recipe("kai", "github.com/NVIDIA/KAI-scheduler", ("deployments/kai-scheduler/crds",))
KUEUE = Recipe("kueue", "sigs.k8s.io/kueue", ("config/components/crd/bases", "config/components/webhook"))
COSCHEDULING = Recipe(
    "coscheduling", "sigs.k8s.io/scheduler-plugins", ("config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",)
)
KARPENTER = Recipe("karpenter", "sigs.k8s.io/karpenter", ("pkg/apis/crds", "kwok/apis/crds"))
RECIPES = (VOLCANO, KAI, KUEUE, COSCHEDULING, KARPENTER)


@dataclass(frozen=True, slots=True)
class Built:
    """The folder of a scheduler's programs and files."""

    folder: Path

    def program(self, name: str) -> Path:
        """Return the program of this name."""
        return self.folder / name

    def file(self, path: str) -> Path:
        """Return the file or folder of the module, by its path in the module."""
        return self.folder / _FILES / path


def built(recipe: Recipe, environ: Mapping[str, str], progress: Progress) -> Built:
    """Return the programs of the scheduler, built if this version of them never was.

    They are in the cache of the control plane's programs. The key of their folder is a hash of the Go module and of
    the recipe.

    Raises:
        BuildFailed: there is no Go toolchain, a module was refused, or it does not compile.
    """
    cache = cache_folder(environ)
    target = cache / f"{recipe.name}-{_key(recipe)}-{platform.system()}-{platform.machine()}".lower()
    if not target.exists():
        with locked(cache, progress):
            if not target.exists():
                _build(recipe, target, environ, progress)
    return Built(target)


def _key(recipe: Recipe) -> str:
    content = hashlib.sha256(repr(recipe).encode())
    for path in sorted(each for each in (recipe.modules / recipe.name).rglob("*") if each.is_file()):
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def _build(recipe: Recipe, target: Path, environ: Mapping[str, str], progress: Progress) -> None:
    definition = (recipe.modules / recipe.name / "go.mod").read_text()
    try:
        go = find_or_install(_pinned(r"^go (\S+)$", definition), target.parent, environ, progress)
    except NoToolchain as missing:
        raise BuildFailed(str(missing)) from missing
    version = _pinned(rf"^(?:require|\s)\s*{re.escape(recipe.module)} (v\S+)", definition)
    progress(f"building {recipe.module} {version} into {target}: up to {recipe.minutes} minutes on two cores, once")
    with tempfile.TemporaryDirectory(prefix=f"placement-webhook-{recipe.name}-") as folder, made_whole(target) as made:
        module = Path(folder) / "module"
        shutil.copytree(recipe.modules / recipe.name, module)
        run = GoCommand(go, module, {**environ, "GOFLAGS": "-mod=readonly"}, progress)
        if recipe.local_copy:
            _copy_with_addition(recipe.local_copy, module, run)
        source = _downloaded(recipe.module, run)[0]
        packages = re.findall(r"^(?:tool (?!\()|\s+(?=\S+/cmd/))(\S+)$", definition, re.MULTILINE) or ["."]
        stamp = f" -X {recipe.version}={version}" if recipe.version else ""
        arguments = ("-v", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w{stamp}", "-o", f"{made}{os.sep}")
        run("build", *arguments, *packages, doing=f"compiling {recipe.name}")
        for path in recipe.files:
            _copy(source / path, made / _FILES / path)
    progress(f"built {recipe.name}")


def _copy_with_addition(local: LocalCopy, module: Path, run: GoCommand) -> None:
    """Make the folder that go.mod replaces the dependency by; not pinned by go.sum, so its hash is compared here."""
    source, actual = _downloaded(local.module, run)
    if actual != local.sum:
        raise BuildFailed(f"Go module {local.module}: its hash is {actual}, but {local.sum} is pinned")
    _copy(source, module / local.copy)
    package = module / local.copy / local.package
    package.chmod(0o755)
    (module / local.addition).rename(package / local.addition)


def _downloaded(module: str, run: GoCommand) -> tuple[Path, str]:
    """Return the folder of a module in Go's cache, and its hash."""
    lines = run("mod", "download", "-json", module, doing=f"fetching {module}")
    found = json.loads("".join(lines[lines.index("{") :]))
    return Path(found["Dir"]), str(found["Sum"])


def _copy(source: Path, target: Path) -> None:
    """Copy a file or folder of Go's cache, where all is read-only, into one that can be deleted."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copyfile(source, target)
        return
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def _pinned(pattern: str, definition: str) -> str:
    found = re.search(pattern, definition, re.MULTILINE)
    if found is None:
        raise BuildFailed(f"go.mod: no line matches {pattern}")
    return found.group(1)

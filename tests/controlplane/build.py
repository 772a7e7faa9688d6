"""Build the control plane's programs from their Go modules, with progress output."""

import hashlib
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.cache import Progress, locked, made_whole
from tests.controlplane.go_command import BuildFailed, GoCommand
from tests.controlplane.toolchain import NoToolchain, find_or_install

GO_MODULE = Path(__file__).parent / "golang"
RELEASE = "CONTROL_PLANE_RELEASE"
_SERVERS = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
PROGRAMS = (*_SERVERS, "kubectl")

_KUBERNETES = r"^\s*k8s\.io/kubernetes (v\S+)$"


def module_file(environ: Mapping[str, str]) -> Path:
    """Return the go.mod of the release that CONTROL_PLANE_RELEASE names, such as "1.36"; the newest one if unset.

    Raises:
        BuildFailed: there is no module file of that release.
    """
    release = environ.get(RELEASE, "")
    older = {path.stem: path for path in sorted(GO_MODULE.glob("1.*.mod"))}
    newest = GO_MODULE / "go.mod"
    files = {"": newest, **older, f"1.{_minor(newest)}": newest}
    if release not in files:
        raise BuildFailed(f"{RELEASE}: Unsupported value: {release!r}: supported values: {', '.join(files)[2:]}")
    return files[release]


def pinned_minor(environ: Mapping[str, str] = os.environ) -> int:
    """N of the Kubernetes release 1.N of the control plane, see `module_file`."""
    return _minor(module_file(environ))


def _minor(module: Path) -> int:
    return int(_pinned(_KUBERNETES, module).split(".")[1])


def built(cache: Path, environ: Mapping[str, str], progress: Progress) -> Path:
    """Return the folder of the five programs, built if this version of them never was.

    The servers are one binary under four names. The key of the folder is a hash of the Go module, so another release,
    which has module files of its own beside the same code, is another folder. The sums pin every module by its hash,
    hence no checksum database is asked.

    Raises:
        BuildFailed: there is no Go toolchain, a module was refused, or it does not compile.
    """
    module = module_file(environ)
    target = cache / _key(module)
    if not target.exists():
        with locked(cache, progress):
            if not target.exists():
                _build(target, module, environ, progress)
    return target


def is_built(cache: Path, environ: Mapping[str, str]) -> bool:
    """Return whether `built` would find the programs."""
    return (cache / _key(module_file(environ))).exists()


def _key(module: Path) -> str:
    content = hashlib.sha256()
    for path in (module, module.with_suffix(".sum"), *sorted(GO_MODULE.rglob("main.go"))):
        content.update(path.read_bytes())
    return f"{content.hexdigest()[:16]}-{platform.system()}-{platform.machine()}".lower()


def _build(target: Path, module: Path, environ: Mapping[str, str], progress: Progress) -> None:
    try:
        go = find_or_install(_pinned(r"^go (\S+)$", module), target.parent, environ, progress)
    except NoToolchain as missing:
        raise BuildFailed(str(missing)) from missing
    version = _pinned(_KUBERNETES, module)
    stamp = "k8s.io/component-base/version"
    stamps = f"-s -w -X {stamp}.gitVersion={version} -X {stamp}.gitMajor=1 -X {stamp}.gitMinor={_minor(module)}"
    run = GoCommand(go, GO_MODULE, {**environ, "GOFLAGS": f"-mod=readonly -modfile={module.name}"}, progress)
    progress(f"building Kubernetes {version} into {target}: about five minutes on two cores, once")
    # The largest one alone first: without a network that is one timeout instead of two hundred.
    run("mod", "download", "k8s.io/kubernetes", doing="fetching k8s.io/kubernetes")
    packages = len(run("list", "-deps", "./...", doing="fetching modules"))
    with made_whole(target) as unfinished:
        for package, name in ((".", "controlplane"), ("./kubectl", "kubectl")):
            arguments = ("-v", "-trimpath", "-buildvcs=false", "-ldflags", stamps, "-o", str(unfinished / name))
            run("build", *arguments, package, doing=f"compiling {name}, {packages} packages at most")
        for program in _SERVERS:
            (unfinished / program).symlink_to("controlplane")
    progress("built")


def _pinned(pattern: str, module: Path) -> str:
    found = re.search(pattern, module.read_text(), re.MULTILINE)
    if found is None:
        raise BuildFailed(f"{module}: no line matches {pattern}")
    return found.group(1)

"""`make release-changes FROM=1.36.2 TO=1.37.2`: what a new release of Kubernetes changes for the scorer.

Prints the sources of kube-scheduler and of its libraries that differ, each with the modules here that cite it in a
`Source:` paragraph, and the feature gates whose default differs.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from tests.controlplane.cache import cache_folder
from tests.controlplane.toolchain import NoToolchain, find_or_install

ROOT = Path(__file__).parents[2]
_LEAST_GO = "1.26.0"
# The folders of each module whose behaviour is modelled. The versions of the others than kubernetes begin with 0.
_FOLDERS = {
    "k8s.io/kubernetes": ("pkg/scheduler",),
    "k8s.io/dynamic-resource-allocation": (
        "cel",
        "deviceclass",
        "resourceclaim",
        "resourceslice/tracker",
        "structured",
    ),
    "k8s.io/component-helpers": ("nodedeclaredfeatures", "resource", "scheduling", "storage"),
    "k8s.io/kube-scheduler": ("config/v1", "extender/v1"),
}
_LEFT_OUT = re.compile(r"_test\.go$|/testing/|/zz_generated|^zz_generated|/internal/experimental/")
_CITED = re.compile(r"(?:[\w.-]+/)*\w+\.go\b")
_GATES = "pkg/features/kube_features.go"
_GATE = re.compile(r"\n\t(?:\w+\.)?(\w+): \{\n(.*?)\n\t\},", re.DOTALL)
# A default for a higher compatibility version is not that of a new cluster.
_DEFAULT = re.compile(r"Default: (true|false)(?!.*MinCompatibilityVersion)")


def changed_files(before: Path, after: Path) -> Iterator[str]:
    """Yield the paths of the Go files below two folders that differ, without tests and generated code."""
    names = {path.relative_to(folder).as_posix() for folder in (before, after) for path in folder.rglob("*.go")}
    for name in sorted(names):
        if not _LEFT_OUT.search(name) and _content(before / name) != _content(after / name):
            yield name


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def citations(text: str) -> set[str]:
    """Return the Go files that `text` cites; a name without a folder is in the folder of the citation before it."""
    found = set[str]()
    folder = PurePosixPath()
    for cited in _CITED.findall(text):
        path = PurePosixPath(cited)
        if len(path.parts) > 1:
            folder = path.parent
        found.add(str(path if len(path.parts) > 1 else folder / path))
    return found


def citing_modules(root: Path) -> dict[str, set[str]]:
    """Return the modules of the webhook and of `packages/` by each Go file that they cite."""
    citing: dict[str, set[str]] = {}
    for module in sorted(path for folder in ("packages", "webhook") for path in (root / folder).rglob("*.py")):
        for cited in citations(module.read_text()):
            citing.setdefault(cited, set()).add(module.relative_to(root).as_posix())
    return citing


def of_file(path: str, citing: Mapping[str, set[str]]) -> list[str]:
    """Return the modules that cite the Go file `path`, by its full path or by its last parts."""
    return sorted(
        {module for cited, modules in citing.items() if f"/{path}".endswith(f"/{cited}") for module in modules}
    )


def gate_defaults(source: str) -> dict[str, bool]:
    """Return the newest default of each feature gate in the source of the gates."""
    defaults = {name: _DEFAULT.findall(specs) for name, specs in _GATE.findall(source)}
    return {name: found[-1] == "true" for name, found in defaults.items() if found}


def _sources(module: str, version: str) -> Path:
    """Return the folder of a module's sources, downloaded through the Go module proxy if need be."""
    go = find_or_install(_LEAST_GO, cache_folder(os.environ), os.environ, lambda line: print(line, file=sys.stderr))
    command = [str(go), "mod", "download", "-json", f"{module}@{version}"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, cwd=os.sep)
    found = json.loads(outcome.stdout or "{}")
    if outcome.returncode or "Dir" not in found:
        raise FileNotFoundError(found.get("Error") or outcome.stderr.strip())
    return Path(found["Dir"])


def _print_module(module: str, before: str, after: str, citing: Mapping[str, set[str]]) -> None:
    versions = [f"v{each}" if module == "k8s.io/kubernetes" else f"v0{each[1:]}" for each in (before, after)]
    folders = [_sources(module, version) for version in versions]
    for folder in _FOLDERS[module]:
        for name in changed_files(*[each / folder for each in folders]):
            path = f"{module}/{folder}/{name}"
            print(path, *(f"    {each}" for each in of_file(path, citing)), sep="\n")
    if module == "k8s.io/kubernetes":
        old, new = (gate_defaults((each / _GATES).read_text()) for each in folders)
        for gate in sorted(old.keys() | new.keys()):
            if old.get(gate, False) != new.get(gate, False):
                print(f"gate {gate}: {'on' if new.get(gate) else 'off' if gate in new else 'gone'}")


def main(before: str, after: str) -> int:
    """Print the changes between two releases, such as 1.36.2 and 1.37.2."""
    citing = citing_modules(ROOT)
    try:
        for module in _FOLDERS:
            _print_module(module, before, after, citing)
    except (FileNotFoundError, NoToolchain) as failure:
        print(f"release changes: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

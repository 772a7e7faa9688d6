"""The image runs as a node runs it: read-only, without a network, rights or a user of its own."""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.cache import cache_folder
from tests.controlplane.polling import wait_for
from tests.node.images.engine import Engine, NoImage, running_engine
from tests.node.images.image import BuiltImage, build_image, loaded_image
from webhook.cli.root import COMMANDS

MOST_BYTES = 350 * 2**20
RESTRICTED = (
    "--rm",
    "--network=none",
    "--read-only",
    "--cap-drop=ALL",
    "--user=65532",
    "--security-opt=no-new-privileges",
)
BUILDER = """
import os, signal, sys
from pathlib import Path
from tests.node.images.engine import running_engine
with running_engine(os.environ, Path(sys.argv[1]), lambda line: None):
    print("running", flush=True)
    signal.pause()
"""


def quiet(line: str) -> None:
    """Print nothing."""


@pytest.fixture(scope="module")
def image() -> Iterator[tuple[Engine, BuiltImage]]:
    """An engine that has the image. The image was built before the first test (conftest.py)."""
    with loaded_image(os.environ, quiet) as loaded:
        yield loaded


def run(image: tuple[Engine, BuiltImage], *arguments: str, entry_point: str = "placement-webhook") -> str:
    engine, built = image
    return engine("run", *RESTRICTED, f"--entrypoint={entry_point}", built.reference, *arguments)


def python(image: tuple[Engine, BuiltImage], program: str) -> str:
    return run(image, "-c", program, entry_point="python")


def test_image_is_small(image: tuple[Engine, BuiltImage]) -> None:
    assert image[1].bytes <= MOST_BYTES


def test_every_command_runs(image: tuple[Engine, BuiltImage]) -> None:
    loop = 'for each in "$@"; do placement-webhook $each --help || { echo "$each"; exit 1; }; done'
    printed = run(image, "-c", loop, "sh", "", *COMMANDS, entry_point="sh")

    assert printed.count("Usage: placement-webhook") == len(COMMANDS) + 1


def test_nothing_that_the_packages_import_is_missing(image: tuple[Engine, BuiltImage]) -> None:
    walk = """
import certs, pkgutil, placement_console, placement_doctor, placement_planner, placement_reclaim, webhook
packages = webhook, certs, placement_console, placement_doctor, placement_planner, placement_reclaim
found = [each.name for package in packages
         for each in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in found:
    try:
        name.endswith("__main__") or __import__(name)
    except ModuleNotFoundError as missing:
        print(missing.name)
"""
    assert python(image, walk) == ""


def test_modules_of_a_start_have_their_bytecode(image: tuple[Engine, BuiltImage]) -> None:
    """Compiling them takes more than half of a start, each time, because the root file system is read-only."""
    lacking = """
import os, sys, webhook.serving.app, webhook.cli.root
print([name for name, module in sys.modules.items() for cached in [getattr(module, "__cached__", None)]
       if cached and "/opt/placement-webhook/" in cached and not os.path.exists(cached)])
"""
    assert python(image, lacking) == "[]"


def test_demo_runs(image: tuple[Engine, BuiltImage]) -> None:
    assert "free GPUs" in run(image, "demo")


def test_nothing_can_be_installed_or_compiled(image: tuple[Engine, BuiltImage]) -> None:
    look = """
import importlib.util, shutil
print([name for name in ("pip", "ensurepip") if importlib.util.find_spec(name)],
      [name for name in ("pip", "pip3", "gcc", "cc", "c++", "ld", "make") if shutil.which(name)])
"""
    assert python(image, look) == "[] []"


def test_nothing_of_the_building_machine_is_in_it(image: tuple[Engine, BuiltImage]) -> None:
    assert python(image, "import os; print(os.path.exists('/etc/pip.conf'), os.path.exists('/src'))") == "False False"


def test_unchanged_sources_are_not_built_again(image: tuple[Engine, BuiltImage]) -> None:
    def built_again(line: str) -> None:
        raise AssertionError(line)

    assert build_image(os.environ, built_again) == image[1]


def test_docker_that_runs_keeps_no_image_of_the_build(image: tuple[Engine, BuiltImage]) -> None:
    engine, built = image
    running = dataclasses.replace(engine, private=False)
    passing, absent = "placement-webhook-passing:test", "placement-webhook-passing:absent"

    with running.passing(absent, passing):
        engine("tag", built.reference, passing)
        assert engine.has(passing)

    assert (engine.has(passing), engine.has(built.reference)) == (False, True)


@pytest.fixture
def no_docker() -> dict[str, str]:
    return os.environ | {"DOCKER_HOST": "unix:///nowhere/docker.sock"}


@pytest.fixture
def engine_folder() -> Iterator[Path]:
    """A folder of a private dockerd beside that of the builds, for the time of a test."""
    folder = cache_folder(os.environ) / "image" / "killed-engine"
    yield folder
    shutil.rmtree(folder)


def test_private_dockerd_ends_with_a_killed_builder(no_docker: dict[str, str], engine_folder: Path) -> None:
    folder = engine_folder
    builder = subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(folder)], env=no_docker, stdout=subprocess.PIPE, text=True
    )
    assert builder.stdout is not None
    assert builder.stdout.readline() == "running\n"
    assert dockerds(folder)
    builder.send_signal(signal.SIGKILL)
    builder.communicate()
    wait_for(lambda: not dockerds(folder), "the end of dockerd")

    with running_engine(no_docker, folder, quiet) as engine:
        assert engine.private
        assert engine("images", "--quiet") == ""
    assert not dockerds(folder)


def dockerds(folder: Path) -> list[str]:
    """Return the processes that name the folder, except this one's children that have ended."""
    commands = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    return [command.decode() for command in commands if b"dockerd" in command and str(folder).encode() in command]


def test_missing_docker_is_one_line_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoImage, match=r"^docker is not installed: install it, .*`$"), contextlib.ExitStack() as stack:
        stack.enter_context(running_engine(os.environ, tmp_path, quiet))

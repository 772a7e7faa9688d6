"""One real node for all tests of this folder, with the image of the project; collected only if TEST_NODE is set."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.binaries import MissingPrograms
from tests.controlplane.cache import cache_folder
from tests.controlplane.go_command import BuildFailed
from tests.controlplane.polling import Stopwatch
from tests.node.images.engine import NoImage
from tests.node.images.image import build_image
from tests.node.installation import CARD, CARDS, Installation
from tests.node.running.machine import MissingMachine, require_machine
from tests.node.running.node import Node
from tests.node.running.programs import (
    DRA_EXAMPLE_DRIVER,
    KUBE_ROUTER,
    KWOK,
    Programs,
    node_programs,
    program_paths,
)
from tests.node.shell import Shell

ASKED = "TEST_NODE"

collect_ignore_glob = [] if os.environ.get(ASKED, "0") != "0" else ["test_*_on_node.py"]

# The programs that only some tests need, by the fixture that runs them.
_PROGRAM_OF = {"devices": DRA_EXAMPLE_DRIVER, "enforced": KUBE_ROUTER, "simulated_nodes": KWOK}
_BEGAN = Stopwatch()
_PROGRAMS = pytest.StashKey[Programs]()
_IMAGE = pytest.StashKey[Path]()


def _progress(line: str) -> None:
    print(f"node: {_BEGAN.seconds:6.1f} s  {line}", file=sys.stderr, flush=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the programs and the image if a test needs them: longer than a test may take."""
    own = [item for item in session.items if item.nodeid.startswith("tests/node/")]
    asked = {name for item in own for name in getattr(item, "fixturenames", ())}
    if not {"real_node", "image"} & asked or session.config.option.collectonly:
        return
    try:
        if "real_node" in asked:
            require_machine(enforces_policies="enforced" in asked)
            programs = session.config.stash[_PROGRAMS] = node_programs(os.environ, _progress)
            for name in _PROGRAM_OF.keys() & asked:
                programs.paths.update(program_paths(_PROGRAM_OF[name], os.environ, _progress))
        image = build_image(os.environ, _progress)
    except (MissingMachine, MissingPrograms, BuildFailed, NoImage) as missing:
        pytest.exit(f"node: {missing}", returncode=2)
    session.config.stash[_IMAGE] = image.archive
    _progress(f"{image.reference}, {image.bytes / 2**20:.0f} MiB, base: {image.base}")


@pytest.fixture(scope="session")
def real_node(pytestconfig: pytest.Config) -> Iterator[Node]:
    """A cluster of one node with eight cards and the image of the webhook."""
    folder = cache_folder(os.environ).parent / "node" / "tests"
    with Node(pytestconfig.stash[_PROGRAMS], folder, _progress) as running:
        running.load_image(pytestconfig.stash[_IMAGE])
        running.add_cards(CARD, CARDS)
        _progress("the node has the image and its cards")
        yield running


@pytest.fixture
def installation(real_node: Node, tmp_path: Path) -> Iterator[Installation]:
    """The node, without the webhook; the test uses its network."""
    with real_node.network():
        yield Installation(real_node, Shell(real_node, tmp_path / "project"))

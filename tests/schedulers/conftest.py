"""The real schedulers beside the control plane; collected by `make test-schedulers` alone, since they must be built."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.schedulers import kai as kai_program
from tests.schedulers import volcano as volcano_program
from tests.schedulers.build import KAI, RECIPES, VOLCANO, Built, built
from tests.schedulers.kai import Kai
from tests.schedulers.volcano import Volcano
from tests.support.registered import Webhook, registered_as_shipped

SCHEDULERS = "TEST_SCHEDULERS"

_BUILT = pytest.StashKey[dict[str, Built]]()

collect_ignore_glob = [] if os.environ.get(SCHEDULERS, "0") != "0" else ["test_*.py"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the schedulers of the selected tests: longer than a test may take."""
    asked = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    found = {}
    for recipe in RECIPES:
        if recipe.name in asked and not session.config.option.collectonly:
            found[recipe.name] = built(recipe, os.environ, lambda line: print(line, file=sys.stderr, flush=True))
    session.config.stash[_BUILT] = found


@pytest.fixture
def volcano(cluster: Cluster, pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Volcano]:
    """The real Volcano, running for the test."""
    with volcano_program.running(cluster, pytestconfig.stash[_BUILT][VOLCANO.name], tmp_path) as started:
        yield started


@pytest.fixture
def kai(cluster: Cluster, pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Kai]:
    """The real KAI, running for the test."""
    with kai_program.running(cluster, pytestconfig.stash[_BUILT][KAI.name], tmp_path) as started:
        yield started


@pytest.fixture
def webhook(cluster: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    """The webhook with the built-in policy, which sends training pods to Volcano."""
    with registered_as_shipped(cluster, tmp_path) as registered:
        yield registered

"""The real schedulers beside the control plane; collected by `make test-schedulers` alone, since they must be built."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.go_command import BuildFailed
from tests.schedulers.build import RECIPES, Built, Recipe, built
from tests.schedulers.installed import coscheduling as coscheduling_program
from tests.schedulers.installed import kai as kai_program
from tests.schedulers.installed import karpenter as karpenter_program
from tests.schedulers.installed import kueue as kueue_program
from tests.schedulers.installed import volcano as volcano_program
from tests.schedulers.installed.coscheduling import Coscheduling
from tests.schedulers.installed.kai import Kai
from tests.schedulers.installed.karpenter import Karpenter
from tests.schedulers.installed.kueue import Kueue
from tests.schedulers.installed.volcano import Volcano
from tests.support.on_cluster.registered import Webhook, registered_as_shipped

SCHEDULERS = "TEST_SCHEDULERS"

_BUILT = pytest.StashKey[dict[str, Built]]()

collect_ignore_glob = [] if os.environ.get(SCHEDULERS, "0") != "0" else ["*test_*.py"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the schedulers of the selected tests: longer than a test may take."""
    asked = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    found = {}
    for recipe in RECIPES:
        if f"{recipe.name}_programs" in asked and not session.config.option.collectonly:
            found[recipe.name] = _built(recipe)
    session.config.stash[_BUILT] = found


def _built(recipe: Recipe) -> Built:
    try:
        return built(recipe, os.environ, lambda line: print(line, file=sys.stderr, flush=True))
    except (BuildFailed, OSError) as failure:
        pytest.exit(f"{recipe.name}: the build failed: {failure}", returncode=2)


def _programs(recipe: Recipe) -> Callable[[pytest.Config], Built]:
    @pytest.fixture(name=f"{recipe.name}_programs")
    def programs(pytestconfig: pytest.Config) -> Built:
        """The programs and files of the scheduler."""
        return pytestconfig.stash[_BUILT][recipe.name]

    return programs


volcano_programs, kai_programs, kueue_programs, coscheduling_programs, karpenter_programs = map(_programs, RECIPES)


@pytest.fixture
def volcano(cluster: Cluster, volcano_programs: Built, tmp_path: Path) -> Iterator[Volcano]:
    """The real Volcano, running for the test."""
    with volcano_program.running(cluster, volcano_programs, tmp_path) as started:
        yield started


@pytest.fixture
def volcano_with_domains(cluster: Cluster, volcano_programs: Built, tmp_path: Path) -> Iterator[Volcano]:
    """The real Volcano with its plugin for HyperNodes, running for the test."""
    plugins = ("network-topology-aware",)
    with volcano_program.running(cluster, volcano_programs, tmp_path, plugins=plugins) as started:
        yield started


@pytest.fixture
def kai(cluster: Cluster, kai_programs: Built, tmp_path: Path) -> Iterator[Kai]:
    """The real KAI, running for the test."""
    with kai_program.running(cluster, kai_programs, tmp_path) as started:
        yield started


@pytest.fixture
def kai_admission(cluster: Cluster, kai_programs: Built, tmp_path: Path) -> Iterator[Object]:
    """The fields of a webhook that calls the real admission of KAI, which runs for the test."""
    with kai_program.admission_running(cluster, kai_programs, tmp_path) as fields:
        yield fields


@pytest.fixture
def kueue(cluster: Cluster, kueue_programs: Built, tmp_path: Path) -> Iterator[Kueue]:
    """The real Kueue, running for the test."""
    with kueue_program.running(cluster, kueue_programs, tmp_path) as started:
        yield started


@pytest.fixture
def coscheduling(cluster: Cluster, coscheduling_programs: Built, tmp_path: Path) -> Iterator[Coscheduling]:
    """The real Coscheduling plugin in a kube-scheduler, running for the test."""
    with coscheduling_program.running(cluster, coscheduling_programs, tmp_path) as started:
        yield started


@pytest.fixture
def karpenter(cluster: Cluster, karpenter_programs: Built, tmp_path: Path) -> Iterator[Karpenter]:
    """The real Karpenter, running for the test."""
    with karpenter_program.running(cluster, karpenter_programs, tmp_path) as started:
        yield started


@pytest.fixture
def webhook(cluster: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    """The webhook with the built-in policy, which sends training pods to Volcano."""
    with registered_as_shipped(cluster, tmp_path) as registered:
        yield registered

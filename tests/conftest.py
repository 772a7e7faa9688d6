"""What all tests share: the control plane, and how a run goes without one."""

import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.controlplane.binaries import REQUIRED, MissingPrograms, find_or_build
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane

Programs = dict[str, Path]

_PROGRAMS = pytest.StashKey[Programs | MissingPrograms]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the control plane, before `-m` selects."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.control_plane)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the programs if a selected test needs them: a build takes longer than a test may."""
    needing = [item for item in session.items if item.get_closest_marker("control_plane")]
    if not needing or session.config.option.collectonly:
        return
    programs = _programs(session.config)
    if isinstance(programs, MissingPrograms) and os.environ.get(REQUIRED, "0") == "0":
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=f"no control plane: {programs}"))


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane of this run, with its scheduler running."""
    programs = _programs(pytestconfig)
    if isinstance(programs, MissingPrograms):
        pytest.fail(f"no control plane: {programs}", pytrace=False)
    with ControlPlane(programs, tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    """An empty cluster; whatever was made in it is gone after the test."""
    made = Cluster(control_plane)
    try:
        yield made
    finally:
        made.remove_everything()


def _programs(config: pytest.Config) -> Programs | MissingPrograms:
    if _PROGRAMS not in config.stash:
        try:
            config.stash[_PROGRAMS] = find_or_build(os.environ, lambda line: _tell(config, line))
        except MissingPrograms as missing:
            config.stash[_PROGRAMS] = missing
    return config.stash[_PROGRAMS]


def _tell(config: pytest.Config, line: str) -> None:
    """Write to the terminal, which pytest keeps for itself while it captures."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        print(f"control plane: {line}", file=sys.stderr, flush=True)

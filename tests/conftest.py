"""What all tests share: the control plane, kube-scheduler's own tables, and how a run goes without them."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.controlplane.binaries import REQUIRED, MissingPrograms, find_or_build
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.monitoring.programs import MissingPrometheus, find_or_download
from tests.support.effort import register_profiles
from tests.support.workloads import serve_custom_kinds
from tests.upstream.extraction import ExtractionFailed, extracted

register_profiles()

Programs = dict[str, Path]

_PROGRAMS = pytest.StashKey[Programs | MissingPrograms]()
_PROMETHEUS = pytest.StashKey[Programs | MissingPrometheus]()
_TABLES = pytest.StashKey[Path | ExtractionFailed]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need programs of others, or what is extracted from their sources, before `-m` selects."""
    for item in items:
        if {"control_plane_programs", "upstream_tables", "prometheus"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.control_plane)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the programs and extract the tables if a selected test needs them: longer than a test may take."""
    marked = [item for item in session.items if item.get_closest_marker("control_plane")]
    if not marked or session.config.option.collectonly:
        return
    # Prometheus is no part of the control plane, and some tests need it alone.
    on_prometheus = [item for item in marked if _needs(item, "prometheus")]
    needing = [item for item in marked if item not in on_prometheus or _needs(item, "control_plane_programs")]
    programs = _programs(session.config) if needing else None
    if isinstance(programs, MissingPrograms):
        _leave_out(needing, f"no control plane: {programs}")
    needing = [item for item in marked if _needs(item, "upstream_tables")]
    tables = _tables(session.config) if needing else None
    if isinstance(tables, ExtractionFailed):
        _leave_out(needing, f"no tables of kube-scheduler: {tables}")
    prometheus = _prometheus(session.config) if on_prometheus else None
    if isinstance(prometheus, MissingPrometheus):
        _leave_out(on_prometheus, f"no Prometheus: {prometheus}")


def _needs(item: pytest.Item, *fixtures: str) -> bool:
    return not {*fixtures}.isdisjoint(getattr(item, "fixturenames", ()))


def _leave_out(items: Iterable[pytest.Item], reason: str) -> None:
    for item in items if os.environ.get(REQUIRED, "0") == "0" else ():
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def control_plane_programs(pytestconfig: pytest.Config) -> Programs:
    """The programs of a control plane, by name."""
    programs = _programs(pytestconfig)
    if isinstance(programs, MissingPrograms):
        pytest.fail(f"no control plane: {programs}", pytrace=False)
    return programs


@pytest.fixture(scope="session")
def control_plane(control_plane_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane of this run, with its scheduler running."""
    with ControlPlane(control_plane_programs, tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture(scope="session")
def prometheus(pytestconfig: pytest.Config) -> Programs:
    """The programs prometheus and promtool."""
    programs = _prometheus(pytestconfig)
    if isinstance(programs, MissingPrometheus):
        pytest.fail(f"no Prometheus: {programs}", pytrace=False)
    return programs


@pytest.fixture(scope="session")
def custom_kinds(control_plane: ControlPlane) -> None:
    """Minimal CustomResourceDefinitions of the kinds that create pods; they stay until the control plane ends."""
    serve_custom_kinds(control_plane)


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    """An empty cluster; all its objects are deleted after the test."""
    made = Cluster(control_plane)
    try:
        yield made
    finally:
        made.remove_everything()


@pytest.fixture(scope="session")
def upstream_tables(pytestconfig: pytest.Config) -> Path:
    """The folder with what kube-scheduler's plugins answered in their own tests."""
    tables = _tables(pytestconfig)
    if isinstance(tables, ExtractionFailed):
        pytest.fail(f"no tables of kube-scheduler: {tables}", pytrace=False)
    return tables


def _tables(config: pytest.Config) -> Path | ExtractionFailed:
    if _TABLES not in config.stash:
        try:
            config.stash[_TABLES] = extracted(os.environ, lambda line: _tell(config, line))
        except ExtractionFailed as failed:
            config.stash[_TABLES] = failed
    return config.stash[_TABLES]


def _prometheus(config: pytest.Config) -> Programs | MissingPrometheus:
    if _PROMETHEUS not in config.stash:
        try:
            config.stash[_PROMETHEUS] = find_or_download(os.environ, lambda line: _tell(config, line))
        except MissingPrometheus as missing:
            config.stash[_PROMETHEUS] = missing
    return config.stash[_PROMETHEUS]


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

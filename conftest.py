"""What all tests share: the control plane, kube-scheduler's own tables, and how a run goes without them."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from xdist.remote import Producer

from tests.console.browser import MissingChromium, TestBrowser, find_browser
from tests.controlplane.binaries import REQUIRED, MissingPrograms, are_there, find_or_build
from tests.controlplane.build import pinned_minor
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.monitoring.programs import MissingPrometheus, find_or_download
from tests.support.distribution import Distribution, distribute, run_with_few_reports
from tests.support.effort import register_profiles
from tests.support.objects.workloads import serve_custom_kinds
from tests.support.programs.prepared import Prepared, prepare_in_background
from tests.upstream.extraction import ExtractionFailed, extracted
from webhook.watch.api_server import ClientConfig

register_profiles()

# What is collected stays until the end: `pytest_collection_finish` freezes it.
gc.disable()

# That of the default formats the variables of each frame, which takes more than a second.
structlog.get_config()["processors"][-1] = structlog.dev.ConsoleRenderer(
    exception_formatter=structlog.dev.plain_traceback
)

# A shell ignores SIGINT in what it runs in the background, and the programs that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

Programs = dict[str, Path]

_PROGRAMS = Prepared("control plane", find_or_build, MissingPrograms)
_PROMETHEUS = Prepared("Prometheus", find_or_download, MissingPrometheus)
_CHROMIUM = Prepared("chromium", find_browser, MissingChromium)
_TABLES = Prepared("tables of kube-scheduler", extracted, ExtractionFailed)
# By the fixture with what is prepared; in the order in which it is.
_PREPARED: dict[str, Prepared[Any]] = {
    "browser": _CHROMIUM,
    "control_plane_programs": _PROGRAMS,
    "prometheus": _PROMETHEUS,
    "upstream_tables": _TABLES,
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need programs of others, or what is extracted from their sources, before `-m` selects."""
    for item in items:
        if _needs(item, "browser"):
            item.add_marker(pytest.mark.browser)
        if _needs(item, "control_plane_programs", "upstream_tables", "prometheus"):
            item.add_marker(pytest.mark.control_plane)
    if getattr(config.option, "loadgroup", False):
        distribute(items, lambda item: _needs(item, "control_plane"), is_there=are_there())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Distribution | None:
    """Let the tests of a file, or of a control plane, share a process."""
    return Distribution(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to find or build what the selected tests need, while those run that need none of it."""
    if session.config.option.collectonly:
        return
    # The tests themselves are garbage at no time: a collection need not visit them again.
    gc.collect()
    gc.freeze()
    gc.enable()
    needed = {prepared: None for item in session.items for prepared in _needed(item)}
    prepare_in_background(prepared for prepared in _PREPARED.values() if prepared in needed)


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Wait for what the test needs before its time counts, and skip it where that is missing and need not be there."""
    for prepared in _needed(item):
        reason = prepared.failure(item.config)
        if reason and os.environ.get(REQUIRED, "0") == "0":
            item.add_marker(pytest.mark.skip(reason=reason))
    return (yield)


@pytest.hookimpl(specname="pytest_runtest_protocol", tryfirst=True)
def pytest_run_with_few_reports(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Report less to the process that prints than pytest does."""
    return run_with_few_reports(item, nextitem)


def _needs(item: pytest.Item, *fixtures: str) -> bool:
    return not {*fixtures}.isdisjoint(getattr(item, "fixturenames", ()))


def _needed(item: pytest.Item) -> list[Prepared[Any]]:
    return [prepared for fixture, prepared in _PREPARED.items() if _needs(item, fixture)]


@pytest.fixture(scope="session", autouse=True)
def _no_public_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let tests and their programs trust no authority of the system, whose certificates take 25 ms to read each time.

    No test connects to a host beyond loopback. What is built or downloaded for the tests is there before the first.
    """
    no_authorities = tmp_path_factory.mktemp("authorities") / "none.pem"
    no_authorities.touch()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(no_authorities))
        patched.setenv("SSL_CERT_DIR", str(no_authorities.parent))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_proxies() -> Iterator[None]:
    """Let the clients of API servers look for no proxy and no .netrc, for which each request waits for two threads."""
    read = ClientConfig.read

    async def read_without_proxies(self: ClientConfig) -> tuple[Any, str]:
        configuration, cluster = await read(self)
        configuration.client_session_kwargs = {**(configuration.client_session_kwargs or {}), "trust_env": False}
        return configuration, cluster

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ClientConfig, "read", read_without_proxies)
        yield


@pytest.fixture(scope="session")
def control_plane_programs(pytestconfig: pytest.Config) -> Programs:
    """The programs of a control plane, by name."""
    return _PROGRAMS.of(pytestconfig)


@pytest.fixture(scope="session")
def control_plane(control_plane_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane of this run, with its scheduler running."""
    folder = tmp_path_factory.mktemp("control-plane")
    # Beta, and off by default, in 1.35.
    is_beta = pinned_minor() == 35
    features = ("MutatingAdmissionPolicy",) if is_beta else ()
    served = ("admissionregistration.k8s.io/v1beta1",) if is_beta else ()
    with ControlPlane(control_plane_programs, folder, features=features, served=served) as running:
        yield running


@pytest.fixture(scope="session")
def prometheus(pytestconfig: pytest.Config) -> Programs:
    """The programs prometheus and promtool."""
    return _PROMETHEUS.of(pytestconfig)


@pytest.fixture(scope="session")
def browser(pytestconfig: pytest.Config) -> Iterator[TestBrowser]:
    """The browser of this run, for the tests of the console."""
    with TestBrowser(_CHROMIUM.of(pytestconfig)) as running:
        yield running


@pytest.fixture(scope="session")
def custom_kinds(control_plane: ControlPlane) -> None:
    """Minimal CustomResourceDefinitions of the kinds that create pods; they stay until the control plane ends."""
    serve_custom_kinds(control_plane)


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    """An empty cluster; all its objects are deleted after the test."""
    yield from _emptied(control_plane)


@pytest.fixture(scope="module")
def shared_cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    """An empty cluster for the tests of one file; all its objects are deleted after the last."""
    yield from _emptied(control_plane)


def _emptied(control_plane: ControlPlane) -> Iterator[Cluster]:
    made = Cluster(control_plane)
    try:
        yield made
    finally:
        made.remove_everything()


@pytest.fixture(scope="session")
def upstream_tables(pytestconfig: pytest.Config) -> Path:
    """The folder with what kube-scheduler's plugins answered in their own tests."""
    return _TABLES.of(pytestconfig)

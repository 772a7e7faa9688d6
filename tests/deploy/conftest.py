"""Helm, built before the first test that needs it, and kinds of operators that the manifests use."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.go_command import BuildFailed
from tests.deploy.helm import Helm, build
from tests.support.on_cluster.kinds import serving_kinds
from tests.support.programs.prepared import Prepared

_HELM = Prepared("helm", build, BuildFailed, OSError)


@pytest.hookimpl(tryfirst=True, wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Find or build Helm before the time of the first test that needs it counts: longer than a test may take."""
    if "helm" in getattr(item, "fixturenames", ()):
        _HELM.failure(item.config)
    return (yield)


@pytest.fixture(scope="session")
def helm(
    control_plane_programs: dict[str, Path], pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Helm:
    """Helm; where no control plane can be built, its tests are skipped as those of the control plane."""
    return Helm(_HELM.of(pytestconfig), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def cert_manager_kinds(control_plane: ControlPlane) -> Iterator[None]:
    """Issuer and Certificate, as kinds that hold anything."""
    with serving_kinds(control_plane.client, "cert-manager.io", ("Issuer", "Certificate")):
        yield


@pytest.fixture(scope="module")
def operator_kinds(control_plane: ControlPlane) -> Iterator[None]:
    """ServiceMonitor and PrometheusRule, as kinds that hold anything; promtool tests what the rules state."""
    with serving_kinds(control_plane.client, "monitoring.coreos.com", ("ServiceMonitor", "PrometheusRule")):
        yield

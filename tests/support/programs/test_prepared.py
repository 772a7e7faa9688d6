"""What tests need is prepared in the environment of the run, not in that of a test."""

from collections.abc import Mapping

import pytest

from tests.controlplane.cache import Progress
from tests.support.programs.prepared import Prepared


def test_it_is_prepared_in_the_environment_before_tests_change_it(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    def authorities(environ: Mapping[str, str], _: Progress) -> str:
        return environ["SSL_CERT_FILE"]

    monkeypatch.setenv("SSL_CERT_FILE", "those of the system")
    prepared = Prepared("authorities", authorities)
    monkeypatch.setenv("SSL_CERT_FILE", "none")

    assert prepared.of(pytestconfig) == "those of the system"

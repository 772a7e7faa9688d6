"""Fixtures of the tests of the commands."""

from tests.cli.fake_cluster import api, kubeconfig
from tests.cli.records.sample_records import audit, lines
from tests.support.programs.command import run

__all__ = ["api", "audit", "kubeconfig", "lines", "run"]

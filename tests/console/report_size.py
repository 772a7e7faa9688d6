"""The size of a report."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.console.example_cluster import write_cluster
from webhook.cli.console.report import report_of
from webhook.cli.console.sources import fixed_sources
from webhook.cli.inputs.session import Session


def report_bytes(nodes: int) -> int:
    """Return the size of the report of a cluster of `nodes` nodes."""
    with TemporaryDirectory() as folder:
        cluster = write_cluster(Path(folder) / "cluster.json", nodes)
        return len(report_of(fixed_sources(Session(cluster=str(cluster), needs_pods=False)), "2026-11-23T12:00:00Z"))

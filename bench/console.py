"""Measure what the console costs in a browser, by the size of the cluster: `make bench-console`."""

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from placement_console.page import fixed_sources
from placement_console.report_file import report_of
from tests.console.browser import TestBrowser, find_chromium
from tests.console.example_cluster import write_cluster
from tests.console.figures import measure
from webhook.cli.inputs.session import Session

_SIZES = (100, 1000, 5000)
_HEAD = (
    "nodes | first state | until the map is drawn | of it page | of it server | update of the map | of it page | "
    "server a minute | report"
)


def _report_bytes(nodes: int) -> int:
    with TemporaryDirectory() as folder:
        cluster = write_cluster(Path(folder) / "cluster.json", nodes)
        return len(report_of(fixed_sources(Session(cluster=str(cluster), needs_pods=False)), "2026-11-23T12:00:00Z"))


def main() -> None:
    """Print a row for each size; the columns `of it` are processor time."""
    print(f"| {_HEAD} |")
    with TestBrowser(find_chromium(os.environ, print)) as browser:
        for nodes in _SIZES:
            found = measure(browser, nodes, time.thread_time)
            cells = (
                f"{nodes:,}",
                f"{found.state_bytes / 1024:,.0f} KiB",
                f"{found.first_milliseconds / 1000:.2f} s",
                f"{found.first_page_milliseconds / 1000:.2f} s",
                f"{found.served_seconds:.2f} s",
                f"{found.update_milliseconds:.0f} ms",
                f"{found.update_page_milliseconds:.0f} ms",
                f"{found.minute_seconds:.1f} s",
                f"{_report_bytes(nodes) / 1024:,.0f} KiB",
            )
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

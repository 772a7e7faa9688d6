"""Measure what the page Cluster costs: `python -m tests.console.figures` prints the table of docs/console.md."""

import asyncio
import os
import time
from dataclasses import dataclass

from tests.console.browser import TestBrowser, find_chromium, until
from tests.console.example_cluster import cluster_objects, pod
from tests.console.followed import Followed, console_following
from tests.console.report_size import report_bytes

SIZES = (100, 1000, 5000)
_CHANGES, _INTERVAL_SECONDS = 50, 0.1
_LAST_MAP = "performance.getEntriesByName('map').at(-1)"
_DRAWN = f"(() => {{ const map = {_LAST_MAP}; return map ? map.startTime + map.duration : 0; }})()"
_CHANGED = "performance.getEntriesByName('change').at(-1)?.startTime ?? 0"


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds from the start of the page until the map is drawn, and from a change until it is drawn again.

    `nodes_drawn` is the number of nodes that one drawing touches. `server_seconds` is the processor time of the server
    in a minute in which one page is open and ten pods a second change; `state_bytes` is the size of the first state.
    """

    nodes: int
    first_milliseconds: float
    update_milliseconds: float
    nodes_drawn: int
    state_bytes: int
    server_seconds: float = 0.0


def measure(browser: TestBrowser, nodes: int, *, with_server: bool = False) -> Figures:
    """Return the figures for a cluster of `nodes` nodes with 8 cards."""
    view = Followed(cluster_objects(nodes, cards_each=8))

    async def look() -> Figures:
        async with console_following(view) as address, browser.page() as page:
            received: list[int] = []
            client = await page.context.new_cdp_session(page)
            await client.send("Network.enable")
            client.on("Network.dataReceived", lambda event: received.append(event["encodedDataLength"]))
            await page.goto(address)
            await page.wait_for_selector(".group canvas")
            first = await _later(page, _DRAWN, 0.0)
            state_bytes = sum(received)
            changed, name = await page.evaluate(_CHANGED), next(iter(view.snapshot().rows))
            view.apply(pod("team-new", "arrival", 1, name, type="training"))
            changed = await _later(page, _CHANGED, changed)
            drawn = await _later(page, _DRAWN, changed)
            touched = await page.evaluate(f"{_LAST_MAP}.detail.nodes")
            seconds = await _server_seconds(view, name) if with_server else 0.0
            return Figures(nodes, first, drawn - changed, touched, state_bytes, seconds)

    return browser.run(look, 240)


async def _later(page: object, expression: str, than: float) -> float:
    """Return the value of the expression once it is larger."""
    found = [than]

    async def check() -> bool:
        found[0] = await page.evaluate(expression)  # type: ignore[attr-defined] # a page of Playwright
        return found[0] > than

    await until(check, expression)
    return found[0]


async def _server_seconds(view: Followed, node: str) -> float:
    """Return the processor time of a minute, by a part of it: the server runs in this thread."""
    began = time.thread_time()
    for number in range(_CHANGES):
        view.apply(pod("team-new", f"arrival-{number}", 1, node, type="training"))
        await asyncio.sleep(_INTERVAL_SECONDS)
    return (time.thread_time() - began) * 60 / (_CHANGES * _INTERVAL_SECONDS)


def main() -> None:
    """Print a row for each size."""
    with TestBrowser(find_chromium(os.environ, print)) as browser:
        for nodes in SIZES:
            found, report = measure(browser, nodes, with_server=True), report_bytes(nodes)
            print(
                f"| {nodes:,} | {found.state_bytes / 1024:,.0f} KiB | {found.first_milliseconds / 1000:.2f} s | "
                f"{found.update_milliseconds:.0f} ms | {found.server_seconds:.1f} s | {report / 1024:,.0f} KiB |"
            )


if __name__ == "__main__":
    main()

"""What the page Cluster costs, by the clocks of the browser and one that is given."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.console.browser import TestBrowser, until
from tests.console.example_cluster import cluster_objects, pod
from tests.console.followed import Followed, console_following

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

_CHANGES, _INTERVAL_SECONDS = 50, 0.1
_LAST_MAP = "performance.getEntriesByName('map').at(-1)"
# A map without nodes is drawn before the first state is there.
_DRAWN = f"(() => {{ const map = {_LAST_MAP}; return map?.detail.nodes ? map.startTime + map.duration : 0; }})()"
_CHANGED = "performance.getEntriesByName('change').at(-1)?.startTime ?? 0"


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds from the start of the page until the map is drawn, and from a change until it is drawn again.

    Those of `page` are the processor time of the page in these, which a busy machine changes little. `nodes_drawn` is
    the number of nodes that one drawing touches, `state_bytes` the size of the first state. `served_seconds` is the
    processor time of the server for the first of these, `minute_seconds` that of a minute in which one page is open and
    ten pods a second change.
    """

    nodes: int
    first_milliseconds: float
    first_page_milliseconds: float
    update_milliseconds: float
    update_page_milliseconds: float
    nodes_drawn: int
    state_bytes: int
    served_seconds: float
    minute_seconds: float


def measure(browser: TestBrowser, nodes: int, seconds: Callable[[], float] | None = None) -> Figures:
    """Return the figures for a cluster of `nodes` nodes with 8 cards.

    `seconds` returns the processor time of its thread; without it that of the server is not measured.
    """
    view, clock = Followed(cluster_objects(nodes, cards_each=8)), seconds or (lambda: 0.0)

    async def look() -> Figures:
        async with console_following(view) as address, browser.page() as page:
            received: list[int] = []
            client = await page.context.new_cdp_session(page)
            await client.send("Network.enable")
            await client.send("Performance.enable", {"timeDomain": "threadTicks"})
            client.on("Network.dataReceived", lambda event: received.append(event["encodedDataLength"]))
            begin = clock()
            await page.goto(address)
            first = await _later(page, _DRAWN, 0.0)
            served, working, state_bytes = clock() - begin, await _working(client), sum(received)
            name = next(iter(view.snapshot().rows))
            view.apply(pod("team-new", "arrival", 1, name, type="training"))
            changed = await _later(page, _CHANGED, await page.evaluate(_CHANGED))
            drawn = await _later(page, _DRAWN, changed)
            again, touched = await _working(client) - working, await page.evaluate(f"{_LAST_MAP}.detail.nodes")
            minute = await _minute(view, name, clock) if seconds else 0.0
            await client.detach()
            return Figures(nodes, first, working, drawn - changed, again, touched, state_bytes, served, minute)

    return browser.run(look, 240)


async def _later(page: "Page", expression: str, than: float) -> float:
    """Return the value of the expression once it is larger."""
    found = [than]

    async def check() -> bool:
        found[0] = await page.evaluate(expression)
        return found[0] > than

    await until(check, expression)
    return found[0]


async def _working(client: "CDPSession") -> float:
    """Return the processor time of the page in milliseconds."""
    metrics = (await client.send("Performance.getMetrics"))["metrics"]
    return 1000 * sum(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


async def _minute(view: Followed, node: str, clock: Callable[[], float]) -> float:
    """Return the processor time of the server in a minute, by a part of it."""
    begin = clock()
    for number in range(_CHANGES):
        view.apply(pod("team-new", f"arrival-{number}", 1, node, type="training"))
        await asyncio.sleep(_INTERVAL_SECONDS)
    return (clock() - begin) * 60 / (_CHANGES * _INTERVAL_SECONDS)

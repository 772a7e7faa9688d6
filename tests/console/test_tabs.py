"""All tabs of a browser share one stream of events: one that is seen reads it, and passes the events on."""

from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from placement_console import feed
from tests.console.browser import TestBrowser, until
from tests.console.example_cluster import gpu_node, pod
from tests.console.followed import Followed, console_following

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

_TABS = 20
# Twenty tabs load at once.
_MOST_SECONDS = 120.0
_SEEN = """(seen) => {
  Object.defineProperty(document, "hidden", { value: !seen, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def _view() -> Followed:
    return Followed([gpu_node("node-1", "training", "NVIDIA-H20", {"nvidia.com/gpu": 8})])


class _Streams:
    """Counts the streams of events that the server has opened, and those that are open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened, self.open = 0, 0
        serve = feed.Feed.serve

        async def counted(own: feed.Feed, request: web.Request) -> web.StreamResponse:
            self.opened, self.open = self.opened + 1, self.open + 1
            try:
                return await serve(own, request)
            finally:
                self.open -= 1

        monkeypatch.setattr(feed.Feed, "serve", counted)

    async def are(self, number: int) -> None:
        """Wait until `number` streams are open."""

        async def check() -> bool:
            return self.open == number

        await until(check, f"{number} open streams")


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> _Streams:
    return _Streams(monkeypatch)


async def _tabs(context: "BrowserContext", address: str, number: int = _TABS) -> "list[Page]":
    tabs = [await context.new_page() for _ in range(number)]
    for each in tabs:
        each.set_default_timeout(_MOST_SECONDS * 1000)
        await each.goto(address, wait_until="commit")
    return tabs


async def _show(free: int, *tabs: "Page") -> None:
    for each in tabs:
        await each.locator(".summary", has_text=f", {free} free").wait_for()


def test_each_of_twenty_tabs_shows_a_change(browser: TestBrowser, streams: _Streams) -> None:
    view = _view()

    async def use() -> tuple[int, int]:
        async with console_following(view) as address, browser.page() as page:
            tabs = await _tabs(page.context, address)
            await _show(8, *tabs)
            view.apply(pod("team-a", "runs", 3, "node-1"))
            await _show(5, *tabs)
            return streams.opened, streams.open

    assert browser.run(use, _MOST_SECONDS) == (1, 1)


def test_the_next_tab_takes_over_from_one_that_is_closed_or_hidden(browser: TestBrowser, streams: _Streams) -> None:
    view = _view()

    async def use() -> tuple[str, int]:
        async with console_following(view) as address, browser.page() as page:
            tabs = []
            # They ask for the lock in this order.
            for _ in range(3):
                tabs += await _tabs(page.context, address, 1)
                await _show(8, tabs[-1])
            first, second, third = tabs
            await first.close()
            view.apply(pod("team-a", "runs", 3, "node-1"))
            await _show(5, second, third)
            await second.evaluate(_SEEN, False)
            view.apply(pod("team-a", "also", 4, "node-1"))
            await _show(1, third)
            hidden = str(await second.locator(".summary").text_content())
            await second.evaluate(_SEEN, True)
            await _show(1, second)
            await streams.are(1)
            return hidden, streams.opened

    hidden, opened = browser.run(use)

    assert hidden == "1 node, 8 cards, 5 free"
    assert opened == 3


def test_no_stream_is_open_while_all_tabs_are_hidden(browser: TestBrowser, streams: _Streams) -> None:
    view = _view()

    async def use() -> int:
        async with console_following(view) as address, browser.page() as page:
            tabs = await _tabs(page.context, address, 2)
            await _show(8, *tabs)
            for each in tabs:
                await each.evaluate(_SEEN, False)
            await streams.are(0)
            opened = streams.opened
            view.apply(pod("team-a", "runs", 3, "node-1"))
            for each in tabs:
                await each.evaluate(_SEEN, True)
            await _show(5, *tabs)
            return streams.opened - opened

    assert browser.run(use) == 1


def test_a_tab_that_is_refused_shows_the_reason_and_tries_again(
    browser: TestBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_MOST_CLIENTS", 0)

    async def use() -> tuple[str | None, str | None]:
        async with console_following(_view()) as address, browser.page() as page:
            # The page that is watched for errors stays empty: chromium logs an answer of 503 as one.
            (tab,) = await _tabs(page.context, address, 1)
            await tab.wait_for_selector(".message.error")
            reason = await tab.locator(".status").text_content()
            monkeypatch.undo()
            await _show(8, tab)
            return reason, await tab.locator(".status").text_content()

    assert browser.run(use) == ("0 browsers are connected already; trying again", "testlive")

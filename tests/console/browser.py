"""A browser for the tests of the console: the system's chromium, driven by Playwright in a thread of its own.

Playwright's event loop runs in that thread together with the servers of the tests, because tests of this process call
`asyncio.run`, which a loop in the main thread would forbid.
"""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tests.controlplane.cache import Progress

if TYPE_CHECKING:
    from playwright.async_api import Browser, Locator, Page, Playwright

T = TypeVar("T")

# In a container, chromium has no rights for its sandbox; the pages are our own. One process renders all of them: a
# start of another takes longer than most pages.
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--renderer-process-limit=1",
]
_START_SECONDS, _MOST_SECONDS = 60.0, 60.0
_WAIT_MILLISECONDS = 15_000
DESK, PHONE = (1280, 800), (390, 844)


class MissingChromium(Exception):  # noqa: N818 - a finding: tests skip on it
    """There is no chromium in PATH; says the remedy."""


def find_chromium(environ: Mapping[str, str], _: Progress) -> Path:
    """Return the program that users have.

    Raises:
        MissingChromium: none is installed.
    """
    return _first_of(("chromium", "chromium-browser"), environ)


def find_browser(environ: Mapping[str, str], _: Progress) -> Path:
    """Return the program of the tests: chromium without a window takes three quarters of the processor time.

    Raises:
        MissingChromium: none is installed.
    """
    return _first_of(("chromium-headless-shell", "chromium", "chromium-browser"), environ)


def _first_of(names: Iterable[str], environ: Mapping[str, str]) -> Path:
    for name in names:
        if found := shutil.which(name, path=environ.get("PATH")):
            return Path(found)
    raise MissingChromium("put it into PATH, such as by apt-get install chromium-headless-shell, or chromium")


class TestBrowser:
    """A running browser. `run` runs a coroutine function in its thread."""

    __test__ = False

    def __init__(self, chromium: Path) -> None:
        self._chromium = chromium
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        # By language. A new context takes a second of processor time, and a used one half of that for a new page.
        self._free: dict[str, Page] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._start, _START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(self._stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float = _MOST_SECONDS) -> T:
        """Return the result of `work()`."""
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work(), seconds), self._loop)
        return future.result()

    @asynccontextmanager
    async def page(
        self, size: tuple[int, int] = DESK, *, dark: bool = False, language: str = "en-US"
    ) -> "AsyncIterator[Page]":
        """Open an empty page. What the page logs as an error, and requests to others, fail the test at the end.

        The page is kept for later tests, unless the test fails. No other page has its context meanwhile.
        """
        page = self._free.pop(language, None) or await self._new_page(language)
        try:
            await page.set_viewport_size({"width": size[0], "height": size[1]})
            await page.emulate_media(color_scheme="dark" if dark else "light")
            async with _watched(page):
                yield page
            await _forget(page)
        except BaseException as error:
            with suppress(Exception):
                error.add_note(f"{page.url} shows: {await page.locator('body').inner_text(timeout=1000)}")
            await page.context.close()
            raise
        if self._free.setdefault(language, page) is not page:
            await page.context.close()

    async def _new_page(self, language: str) -> "Page":
        assert self._browser is not None
        context = await self._browser.new_context(locale=language, reduced_motion="reduce")
        page = await context.new_page()
        page.set_default_timeout(_WAIT_MILLISECONDS)
        return page

    async def _start(self) -> None:
        # Imported here: every run of the tests imports this module.
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(executable_path=self._chromium, args=_ARGUMENTS)

    async def _stop(self) -> None:
        if self._browser:
            await self._browser.close()
        if self._playwright:
            await self._playwright.stop()


@asynccontextmanager
async def _watched(page: "Page") -> AsyncIterator[None]:
    faults: list[str] = []
    listeners: dict[Any, Callable[[Any], None]] = {
        "pageerror": lambda error: faults.append(f"{error.name}: {error.message}"),
        "console": lambda message: faults.append(message.text) if message.type == "error" else None,
        "dialog": lambda dialog: faults.append(f"dialog {dialog.message}"),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield
    except BaseException as error:
        error.add_note(f"faults of the page: {faults}")
        raise
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
    assert faults == []


async def _forget(page: "Page") -> None:
    """Close the other pages of the context, and leave nothing to a later server at the same port."""
    for other in page.context.pages:
        if other is not page:
            await other.close()
    if page.url.startswith("http"):
        await page.evaluate("localStorage.clear(), sessionStorage.clear()")
    await page.goto("about:blank")


async def texts_of(found: "Locator") -> list[str]:
    """Return the texts of the found elements, once the page has one of them."""
    await found.first.wait_for(state="attached")
    return await found.all_text_contents()


async def until(check: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until `check()` is true.

    Raises:
        TimeoutError: it does not become true.
    """
    deadline = asyncio.get_running_loop().time() + _WAIT_MILLISECONDS / 1000
    while not await check():
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError(what)
        await asyncio.sleep(0.02)

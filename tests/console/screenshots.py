"""Write pictures of the pages of the console for the documents: `make screenshots`."""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.console.browser import DESK, PHONE, TestBrowser, find_chromium
from tests.console.example_cluster import write_cluster
from tests.console.served import console_of

if TYPE_CHECKING:
    from playwright.async_api import Page

FOLDER = Path(__file__).parents[2] / "docs" / "console"
# The end of the name, the size and the colours of each picture of a page.
FORMS = (("", DESK, False), ("-dark", DESK, True), ("-phone", PHONE, False))


async def _cluster(page: "Page") -> None:
    await page.wait_for_selector(".group canvas")


async def _pending(page: "Page") -> None:
    await page.get_by_role("button", name="Job/segmenter").click()
    await page.get_by_role("button", name="Which pods would have to move?").click()
    await page.wait_for_selector(".commands pre")


# What is done on a page before its picture is taken.
PAGES: Mapping[str, Callable[["Page"], Awaitable[None]]] = {"cluster": _cluster, "pending": _pending}


def write(folder: Path, cluster: Path) -> None:
    """Write the pictures of each page."""
    folder.mkdir(parents=True, exist_ok=True)
    with TestBrowser(find_chromium(os.environ, print)) as browser:

        async def take() -> None:
            async with console_of(cluster) as address:
                for end, size, dark in FORMS:
                    for name, prepare in PAGES.items():
                        async with browser.page(size, dark=dark) as page:
                            await page.goto(f"{address}/#{name}")
                            await prepare(page)
                            # The map and the bars draw after the answer.
                            await page.evaluate("new Promise((done) => setTimeout(done, 300))")
                            await page.screenshot(path=folder / f"{name}{end}.png")

        browser.run(take, 600)


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, write_cluster(Path(temporary) / "gpu-cluster.json"))

"""Write pictures of the pages of the console for the documents: `make screenshots`.

With a folder as argument, also in dark colours and of the size of a phone, to look at.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.console.browser import DESK, PHONE, TestBrowser, find_chromium
from tests.console.example_cluster import write_cluster
from tests.console.served import console_of
from tests.support.programs.command import run_here

if TYPE_CHECKING:
    from playwright.async_api import Page

FOLDER = Path(__file__).parents[2] / "docs" / "console"
# The end of the name, the size and the colours of each picture of a page.
Form = tuple[str, tuple[int, int], bool]
FORMS: Sequence[Form] = (("", DESK, False), ("-dark", DESK, True), ("-phone", PHONE, False))


async def _cluster(page: "Page") -> None:
    await page.wait_for_selector(".group canvas")


async def _pending(page: "Page") -> None:
    await page.get_by_role("button", name="Job/segmenter").click()
    await page.get_by_role("button", name="Which pods would have to move?").click()
    await page.wait_for_selector(".commands pre")


async def _try(page: "Page") -> None:
    await page.get_by_role("button", name="Example").click()
    await page.get_by_role("button", name="Try it").click()
    await page.wait_for_selector(".result")


async def _admissions(page: "Page") -> None:
    await page.locator("tbody button").first.click()
    await page.wait_for_selector(".side dl")


async def _policy(page: "Page") -> None:
    await page.get_by_text("Document").click()
    await page.get_by_role("button", name="Copy to the candidate").click()
    text = await page.locator("textarea").input_value()
    await page.locator("textarea").fill(text.replace("schedulerName: volcano", "schedulerName: kai-scheduler"))
    await page.get_by_role("button", name="Compare").click()
    await page.wait_for_selector(".policies table, .policies .message")


# What is done on a page before its picture is taken.
PAGES: Mapping[str, Callable[["Page"], Awaitable[None]]] = {
    "cluster": _cluster,
    "pending": _pending,
    "try": _try,
    "admissions": _admissions,
    "policy": _policy,
}


def write(folder: Path, cluster: Path, audit: Path, forms: Sequence[Form]) -> None:
    """Write the pictures of each page."""
    folder.mkdir(parents=True, exist_ok=True)
    with TestBrowser(find_chromium(os.environ, print)) as browser:

        async def take() -> None:
            async with console_of(cluster, [audit]) as address:
                for end, size, dark in forms:
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
        records = Path(temporary) / "audit.jsonl"
        run_here("demo", "--audit", records)
        cluster = write_cluster(Path(temporary) / "gpu-cluster.json")
        if len(sys.argv) > 1:
            write(Path(sys.argv[1]), cluster, records, FORMS)
        else:
            write(FOLDER, cluster, records, FORMS[:1])

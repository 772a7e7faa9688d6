"""Write pictures of the pages of the console for the documents: `make screenshots`."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.console.browser import DESK, PHONE, TestBrowser, find_chromium
from tests.console.example_cluster import write_cluster
from tests.console.served import console_of

FOLDER = Path(__file__).parents[2] / "docs" / "console"
PAGES = ("cluster", "pending")


def write(folder: Path, cluster: Path) -> None:
    """Write each page at both sizes, in light and in dark."""
    folder.mkdir(parents=True, exist_ok=True)
    with TestBrowser(find_chromium(os.environ, print)) as browser:

        async def take() -> None:
            async with console_of(cluster) as address:
                for size, form in ((DESK, "desk"), (PHONE, "phone")):
                    for dark in (False, True):
                        for name in PAGES:
                            async with browser.page(size, dark=dark) as page:
                                await page.goto(f"{address}/#{name}")
                                await page.wait_for_function(
                                    "document.querySelector('.status').dataset.kind !== 'connecting'"
                                )
                                await page.wait_for_timeout(400)
                                await page.screenshot(path=folder / f"{name}-{form}-{'dark' if dark else 'light'}.png")

        browser.run(take, 600)


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, write_cluster(Path(temporary) / "gpu-cluster.json"))

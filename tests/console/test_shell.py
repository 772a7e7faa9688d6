"""The frame of the console in chromium."""

from tests.console.browser import TestBrowser
from tests.console.served import console_of


def test_the_page_shows_the_cluster_of_the_feed(browser: TestBrowser) -> None:
    async def look() -> tuple[str | None, list[str]]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            summary = await page.locator(".summary").text_content()
            await page.wait_for_selector(".group")
            return await page.locator(".summary").text_content() or summary, await page.locator(
                "h2"
            ).all_text_contents()

    summary, titles = browser.run(look)

    assert summary == "12 nodes, 76 cards, 40 free"
    assert "trainingNVIDIA-H20" in titles

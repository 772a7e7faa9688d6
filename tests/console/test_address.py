"""The address of the console holds the page, the node, the pod, the decision and the filters."""

from pathlib import Path

import pytest

from tests.console.browser import PHONE, TestBrowser, texts_of
from tests.console.example_cluster import write_cluster
from tests.console.served import console_of
from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from tests.support.programs.command import run_here


def test_a_reload_and_the_way_back_keep_the_node_and_the_filters(browser: TestBrowser) -> None:
    async def use() -> tuple[str, str | None, list[str], str, bool, list[str]]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            await page.get_by_label("Pool", exact=True).select_option("training")
            await page.get_by_role("button", name="Table", exact=True).click()
            await page.get_by_text("train-h20-1", exact=True).click()
            there = page.url.partition("#")[2]
            await page.reload()
            node = await page.locator("aside h2").text_content()
            names = await texts_of(page.locator(".content tbody th"))
            await page.go_back()
            await page.locator("aside").wait_for(state="hidden")
            before, hidden = page.url.partition("#")[2], await page.locator("aside").is_hidden()
            return there, node, names, before, hidden, await texts_of(page.locator(".content tbody th"))

    there, node, names, before, is_hidden, still = browser.run(use)

    assert there == "cluster?pool=training&show=table&node=train-h20-1"
    assert node == "train-h20-1"
    assert names == still == ["train-a100-1", "train-a100-2", "train-h20-1", "train-h20-2"]
    assert (before, is_hidden) == ("cluster?pool=training&show=table", True)


def test_the_filters_of_a_page_stay_while_another_is_shown(browser: TestBrowser) -> None:
    async def use() -> tuple[str, str | None]:
        async with console_of() as address, browser.page() as page:
            await page.goto(f"{address}/#cluster?search=l40s")
            await page.get_by_role("link", name="Policy").click()
            await page.get_by_role("link", name="Cluster").click()
            await page.wait_for_selector(".group")
            return page.url.partition("#")[2], await page.locator(".summary").text_content()

    assert browser.run(use) == ("cluster?search=l40s", "3 nodes, 12 cards, 9 free")


def test_an_address_of_another_user_shows_the_same_pod(browser: TestBrowser, tmp_path: Path) -> None:
    cluster = write_cluster(tmp_path / "cluster.json")

    async def use() -> tuple[str, str | None, list[str]]:
        async with console_of(cluster) as address, browser.page() as page, browser.page() as other:
            await page.goto(f"{address}/#pending")
            await page.get_by_label("Namespace").select_option("team-speech")
            await page.get_by_role("button", name="asr-t4-0").click()
            await other.goto(page.url)
            title = await other.locator(".side h2").text_content()
            return page.url.partition("#")[2], title, await texts_of(other.locator(".row strong"))

    there, title, rows = browser.run(use)

    assert there == "pending?namespace=team-speech&pod=team-speech%2Fasr-t4-0"
    assert (title, rows) == ("team-speech/asr-t4-0", ["asr-t4-0"])


@pytest.mark.parametrize("size", [(1280, 800), PHONE])
def test_a_row_opens_its_decision_and_the_list_has_the_reason(
    browser: TestBrowser, tmp_path: Path, size: tuple[int, int]
) -> None:
    records = [make_record(0), make_record(1, outcome="Denied", error="no such type")]
    audit = write_lines(tmp_path / "audit.jsonl", chain_lines(records))

    async def use() -> tuple[str, str | None, str | None, float]:
        async with console_of(audit=[audit]) as address, browser.page(size) as page:
            await page.goto(f"{address}/#admissions")
            row = page.locator("tbody tr", has_text="no such type").first
            reason = row.get_by_text("no such type")
            box = await reason.bounding_box()
            assert box is not None
            await reason.click()
            await page.locator(".side dd").first.wait_for()
            there = page.url.partition("#")[2]
            await page.reload()
            decision = await page.locator(".side dd").first.text_content()
            return there, decision, await page.locator("tr.chosen .badge").first.text_content(), box["x"] + box["width"]

    there, decision, badge, right = browser.run(use)

    assert there == f"admissions?decision={records[1].decision}"
    assert (decision, badge) == (records[1].decision, "denied")
    assert right <= size[0]


def test_the_decision_of_a_row_far_below_is_in_view_on_a_phone(browser: TestBrowser, tmp_path: Path) -> None:
    audit = write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(number) for number in range(40)]))

    async def use() -> float:
        async with console_of(audit=[audit]) as address, browser.page(PHONE) as page:
            await page.goto(f"{address}/#admissions")
            await page.locator("tbody tr").nth(30).click()
            await page.locator(".side dd").first.wait_for()
            box = await page.locator(".side").bounding_box()
            assert box is not None
            return box["y"]

    assert 0 <= browser.run(use) < PHONE[1]


def test_a_report_has_the_address_of_a_node(browser: TestBrowser, tmp_path: Path) -> None:
    cluster, report = write_cluster(tmp_path / "cluster.json", 8), tmp_path / "report.html"
    assert run_here("report", "--cluster", cluster, "-o", report).code == 0

    async def use() -> tuple[str, str | None]:
        async with browser.page() as page:
            await page.goto(f"{report.as_uri()}#cluster?show=table")
            await page.get_by_text("mig-h100-1", exact=True).click()
            there = page.url.partition("#")[2]
            await page.reload()
            return there, await page.locator("aside h2").text_content()

    assert browser.run(use) == ("cluster?show=table&node=mig-h100-1", "mig-h100-1")

"""The pages show the cards that are held and not used."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from placement_console.cluster_state import ClusterState
from placement_console.pod_facts import PodFacts
from tests.console.browser import TestBrowser, texts_of
from tests.console.served import asked, console_of
from tests.support.objects.builders import make_pod
from tests.support.objects.held import HOUR, NOW_SECONDS, ago, card_pod, gpu_node, waiting
from tests.support.programs.cluster_files import as_list
from tests.support.programs.command import run_here
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.policy.loader import built_in_policy

CENTURY = 100 * 365 * 24 * HOUR
OBJECTS: list[Any] = [
    *(gpu_node(name) for name in ("n1", "n2", "n3")),
    gpu_node("n4", down_for=HOUR),
    # At the real time of the pages, it has not been silent for long.
    gpu_node("n5", down_for=-CENTURY),
    waiting(card_pod("pulls", "n1", 2), "ImagePullBackOff", HOUR).obj(),
    card_pod("runs", "n2", 4).obj(),
    card_pod("ends", "n3", 8).deletion(ago(2 * HOUR)).obj(),
    card_pod("lost", "n4", 1).obj(),
    card_pod("works", "n5", 1).obj(),
    make_pod("asks").namespace("team-b").gpu(8).status(phase="Pending").obj(),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("held") / "cluster.json"
    path.write_text(as_list(*OBJECTS))
    return path


def test_the_feed_sends_the_class_of_held_cards_and_the_end_of_their_pod() -> None:
    policy = built_in_policy()
    state = ClusterState(policy, PodFacts(policy.spec.key_domain))
    snapshot = snapshot_from_documents([Document("the test", each) for each in OBJECTS])

    nodes = orjson.loads(state.full(snapshot, 0))["nodes"]

    assert {each["name"]: each["cards"][0]["used"][0][5:] for each in nodes} == {
        "n1": ["image-pull", 0],
        "n2": [],
        "n3": ["", NOW_SECONDS - 2 * HOUR + 60],
        "n4": ["node-down", 0],
        "n5": ["node-down", 0],
    }
    assert [each["downFrom"] for each in nodes] == [0, 0, 0, NOW_SECONDS - HOUR + 300, NOW_SECONDS + CENTURY + 300]


def test_the_details_of_a_node_name_the_class_of_its_pods(cluster: Path) -> None:
    found = {name: asked("/api/node", cluster=cluster, name=name)["pods"][0]["held"] for name in ("n1", "n2", "n3")}

    assert found == {"n1": "image-pull", "n2": "", "n3": "terminating"}


def test_the_cluster_has_a_column_and_a_filter_of_held_cards(browser: TestBrowser, cluster: Path) -> None:
    async def use() -> tuple[list[str], list[str], list[str]]:
        async with console_of(cluster) as address, browser.page() as page:
            await page.goto(f"{address}/#cluster")
            await page.get_by_role("button", name="Table").click()
            held = await texts_of(page.locator("tbody tr td:nth-child(6)"))
            await page.get_by_label("Held and not used").select_option("any")
            held_nodes = await texts_of(page.locator("tbody tr th"))
            await page.get_by_label("Held and not used").select_option("terminating")
            return held, held_nodes, await texts_of(page.locator("tbody tr th"))

    assert browser.run(use) == (["2", "0", "8", "1", "0"], ["n1", "n3", "n4"], ["n3"])


def test_the_pending_pods_are_followed_by_the_held_cards(browser: TestBrowser, cluster: Path) -> None:
    async def use() -> tuple[str | None, list[str], list[str], str | None]:
        async with console_of(cluster) as address, browser.page() as page:
            await page.goto(f"{address}/#pending")
            title = await page.locator(".held h2").text_content()
            rows = await texts_of(page.locator(".held tbody tr"))
            overdue = await texts_of(page.locator(".part", has_text="Pods that should have ended").locator("p"))
            await page.locator(".held button", has_text="n3").click()
            return title, rows, overdue, await page.locator("aside h2").text_content()

    title, rows, overdue, node = browser.run(use)

    assert title == "11 cards are held and not used"
    assert [row.split("nvidia.com/gpu")[0] for row in rows] == ["n38", "n12", "n41"]
    assert "team-a/endsshould have ended " in rows[0]
    assert rows[1].endswith("team-a/pullsits image cannot be pulled")
    assert overdue[0].startswith("node n3: 8 cards are free when team-a/ends is gone: it should have ended ")
    assert node == "n3"


def test_a_report_in_chinese_has_the_held_cards(browser: TestBrowser, cluster: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    run_here("report", "--cluster", str(cluster), "-o", str(path))

    async def use() -> tuple[str | None, list[str]]:
        async with browser.page(language="zh-CN") as page:
            await page.goto(f"{path.as_uri()}#pending")
            title = await page.locator(".held h2").text_content()
            return title, await texts_of(page.locator(".held tbody tr"))

    title, rows = browser.run(use)

    assert title == "11 张卡被占用但未使用"
    assert rows[2].endswith("节点失联")

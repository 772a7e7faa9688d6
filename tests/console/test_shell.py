"""The frame of the console and the page Cluster, in chromium."""

from pathlib import Path
from typing import Any

import pytest

from tests.console.browser import DESK, PHONE, TestBrowser, texts_of
from tests.console.example_cluster import gpu_node, pod, write_cluster
from tests.console.followed import Followed, console_following
from tests.console.served import console_of
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.cluster_files import as_list

_KEYS = """async () => {
  const { pages } = await import("/pages.js");
  const { texts } = await import("/texts.js");
  const of = (language) => [texts, ...pages.map((page) => page.texts)].flatMap((each) => Object.keys(each[language]));
  return { en: of("en"), zh: of("zh") };
}"""
# The letters in the cells of two nodes of the smallest size, the size of a bar, and the colours of the sign of a third.
_SMALL = """async () => {
  const { drawNode, inksOf } = await import("/cluster/drawing.js");
  const { gridOf } = await import("/cluster/layout.js");
  const { Palette } = await import("/cluster/colours.js");
  const node = (name, ready) => ({
    name, ready, cordoned: false, taints: [], cpu: [1, 1000], memory: [0, 1000],
    cards: [{ kind: "whole", count: 1, used: [["team", name, 1, "", name]] }],
  });
  const nodes = [node("a", true), node("b", true), node("c", false)];
  const palette = new Palette();
  palette.update("type", nodes);
  const grid = gridOf(nodes, 300, "small");
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const pixels = (x, y, width, height) => {
    const { data } = canvas.getImageData(x, y, width, height);
    return Array.from({ length: width * height }, (_, at) => data.slice(4 * at, 4 * at + 3).join());
  };
  const state = { palette, inks: inksOf(document.body), only: -1 };
  nodes.forEach((each, at) => drawNode(canvas, grid, each, 50 * at, 0, state));
  const shapes = nodes.slice(0, 2).map((_, at) => {
    const found = pixels(50 * at + grid.pad, grid.pad, grid.cell, grid.cell);
    return found.map((each) => (each === found[0] ? "." : "#")).join("");
  });
  const bar = pixels(grid.pad, grid.boxHeight - grid.pad - 2 * (grid.bar + 1), 8, 1);
  const filled = bar.filter((each) => each === bar[0]).length;
  return { shapes, bar: grid.bar, filled, corner: new Set(pixels(101, 1, 3, 5)).size };
}"""
# After the next drawing: the map follows the size of its element.
_OVERFLOW = """async () => {
  for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
  return document.documentElement.scrollWidth - window.innerWidth;
}"""


def test_the_page_shows_the_cluster_of_the_feed(browser: TestBrowser) -> None:
    async def look() -> tuple[str | None, list[str], str | None]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            await page.wait_for_selector(".group")
            titles = await texts_of(page.locator("h2"))
            return await page.locator(".summary").text_content(), titles, await page.locator(".status").text_content()

    summary, titles, status = browser.run(look)

    assert summary == "12 nodes, 76 cards, 40 free"
    assert "trainingNVIDIA-H20" in titles
    assert status == "file cluster.yamlfrom a file"


def test_the_map_and_the_details_of_a_node_work_by_keyboard_alone(browser: TestBrowser) -> None:
    async def use() -> tuple[str | None, str | None, bool]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            box = page.locator(".map-box").nth(3)
            await box.wait_for()
            for _ in range(40):
                await page.keyboard.press("Tab")
                if await box.evaluate("element => element === document.activeElement"):
                    break
            await page.keyboard.press("ArrowRight")
            said = await page.locator("[aria-live=polite]").text_content()
            await page.keyboard.press("Enter")
            title = await page.locator("aside h2").text_content()
            await page.locator("aside table").wait_for()
            await page.keyboard.press("Escape")
            return said, title, await page.locator("aside").is_hidden()

    said, title, is_closed = browser.run(use)

    assert said is not None
    assert said.startswith("infer-h20-2, ")
    assert said.endswith("taints")
    assert (title, is_closed) == ("infer-h20-2", True)


def test_the_table_has_the_nodes_of_the_map_and_filters_hold_for_both(browser: TestBrowser) -> None:
    async def filtered() -> tuple[list[str], str | None]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            await page.get_by_label("Pool", exact=True).select_option("training")
            await page.get_by_role("button", name="Table", exact=True).click()
            names = await texts_of(page.locator("tbody th"))
            await page.get_by_label("Free cards on one node").select_option("8")
            return names, await page.locator(".message strong").text_content()

    names, empty = browser.run(filtered)

    assert names == ["train-a100-1", "train-a100-2", "train-h20-1", "train-h20-2"]
    assert empty == "No node matches"


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_no_page_is_wider_than_the_screen(browser: TestBrowser, language: str) -> None:
    async def overflows() -> dict[str, int]:
        found = {}
        async with console_of() as address, browser.page(dark=True, language=language) as page:
            await page.goto(address)
            await page.wait_for_selector(".group")
            for link in await page.locator("nav a").all():
                await link.click()
                await page.wait_for_selector("main .summary, main .message, main form, main .controls")
                for width, height in (DESK, PHONE):
                    await page.set_viewport_size({"width": width, "height": height})
                    found[f"{page.url} {width}"] = await page.evaluate(_OVERFLOW)
        return found

    assert {address: pixels for address, pixels in browser.run(overflows).items() if pixels > 0} == {}


def test_every_text_is_there_in_both_languages(browser: TestBrowser) -> None:
    async def keys() -> dict[str, list[str]]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            found: dict[str, list[str]] = await page.evaluate(_KEYS)
            return found

    found = browser.run(keys)

    assert sorted(found["en"]) == sorted(set(found["zh"]))


def test_choices_of_language_and_colours_stay(browser: TestBrowser) -> None:
    async def choose() -> tuple[str | None, str | None]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            await page.get_by_label("Colours").select_option("dark")
            await page.get_by_label("Language").select_option("zh")
            await page.reload()
            await page.wait_for_selector(".group")
            theme = await page.locator("html").get_attribute("data-theme")
            return theme, await page.locator("nav a").first.text_content()

    assert browser.run(choose) == ("dark", "集群")


def test_pages_say_why_a_pod_waits_and_what_would_make_room(
    browser: TestBrowser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster = write_cluster(tmp_path_factory.mktemp("console") / "cluster.json")

    async def ask() -> tuple[list[str], str | None, str | None, str | None]:
        async with console_of(cluster) as address, browser.page() as page:
            await page.goto(f"{address}/#pending")
            await page.get_by_role("button", name="Job/segmenter").click()
            await page.get_by_role("button", name="Which pods would have to move?").click()
            commands = await page.locator(".commands pre").text_content()
            moves = await page.locator(".small-map h2").first.text_content()
            states = await texts_of(page.locator(".row .row-title .badge:first-child"))
            await page.get_by_role("button", name="Show on the whole map").click()
            await page.wait_for_selector("aside h2")
            return states, commands, moves, await page.locator("aside h2").text_content()

    states, commands, moves, node = browser.run(ask)

    assert states == ["waits for preemption", "waits for room", "in the queue", "gated", "no node"]
    assert commands is not None
    assert commands.startswith(f"kubectl cordon {node}\n")
    assert commands.endswith(f"kubectl uncordon {node}")
    assert moves == "hybridNVIDIA-H20"


def test_a_section_has_the_numbers_of_each_resource(browser: TestBrowser, tmp_path: Path) -> None:
    cluster = write_cluster(tmp_path / "cluster.json", 1)

    async def read() -> dict[str, list[str]]:
        async with console_of(cluster) as address, browser.page() as page:
            await page.goto(address)
            heads = page.locator(".group-head")
            await heads.nth(3).wait_for()
            return {
                str(await each.locator("h2").text_content()): await texts_of(each.locator(".numbers"))
                for each in await heads.all()
            }

    found = browser.run(read)

    assert found["inferenceNVIDIA-T4"] == [
        "1 node",
        "nvidia.com/gpu.shared4 of 8 cards free (50 %)largest free block 4fragmented 4 %",
    ]
    starts = [each.partition(" ")[0] for each in found["inferenceNVIDIA-H100"]]
    assert starts == ["1", "2", "nvidia.com/mig-1g.10gb3", "nvidia.com/mig-3g.40gb2"]


def test_the_map_is_grouped_by_a_domain_that_nodes_have(browser: TestBrowser, tmp_path: Path) -> None:
    label, capacity = "topology.kubernetes.io/rack", {"nvidia.com/gpu": 8}
    nodes = [
        make_node_object(f"n{n}", labels={label: rack}, capacity=capacity) for n, rack in enumerate(("r2", "r1", "r1"))
    ]
    file = tmp_path / "racks.json"
    file.write_text(as_list(*nodes, make_node_object("bare", capacity=capacity), make_pod("p").node_name("n1").gpu(3)))

    async def use() -> tuple[list[str], list[str], list[str]]:
        async with console_of(cluster=file) as address, browser.page() as page:
            await page.goto(address)
            choice = page.get_by_label("Group by")
            # It is drawn anew with the first state.
            await choice.locator("option", has_text="rack").wait_for(state="attached")
            offered = await texts_of(choice.locator("option"))
            await choice.select_option("rack")
            titles = await texts_of(page.locator(".group h2"))
            return offered, titles, await texts_of(page.locator(".group .numbers"))

    offered, titles, numbers = browser.run(use)

    assert offered == ["pool", "rack"]
    assert [title.removesuffix("no cards") for title in titles] == ["r1", "r2", "no label"]
    assert "13 of 16 cards free" in numbers[0]


def test_the_smallest_map_has_signs_and_bars_of_three_pixels(browser: TestBrowser) -> None:
    async def draw() -> dict[str, Any]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            await page.wait_for_selector(".group")
            found: dict[str, Any] = await page.evaluate(_SMALL)
            return found

    found = browser.run(draw)

    first, second = found["shapes"]
    assert "#" in first
    assert "#" in second
    assert first != second
    assert (found["bar"], found["filled"]) == (3, 3)
    # The sign of a node that is not ready.
    assert found["corner"] == 2


def test_a_change_of_the_cluster_leaves_the_reader_of_the_table_alone(browser: TestBrowser) -> None:
    cards = {"nvidia.com/gpu": 8}
    view = Followed([gpu_node(f"node-{number:03}", "training", "NVIDIA-H20", cards) for number in range(260)])

    async def use() -> tuple[int, str | None, str, str]:
        async with console_following(view) as address, browser.page() as page:
            await page.goto(f"{address}/#cluster?show=table")
            await page.get_by_role("button", name="Show 100 more").click()
            await page.get_by_role("button", name="node-150").focus()
            view.apply(pod("team-a", "runs", 3, "node-001"))
            await page.locator(".summary", has_text="2,077 free").wait_for()
            rows, focused = await page.locator("tbody tr").count(), await page.locator(":focus").text_content()
            await page.get_by_label("Node", exact=True).focus()
            await page.keyboard.type("node-0")
            view.apply(gpu_node("node-0-new", "training", "NVIDIA-H20", cards))
            await page.get_by_role("button", name="node-0-new").wait_for()
            await page.keyboard.type("0")
            return rows, focused, await page.get_by_label("Node", exact=True).input_value(), page.url.partition("#")[2]

    assert browser.run(use) == (200, "node-150", "node-00", "cluster?show=table&search=node-00")


_ROWS_WITH_EQUAL_TEXTS = """async () => {
  const { refill } = await import("/lib/widgets.js");
  const drawn = (text) => Object.assign(document.createElement("button"), { textContent: text });
  const box = document.body.appendChild(document.createElement("div"));
  const focused = (count, at, ...texts) => {
    refill(box, ...[..."a".repeat(count)].map(drawn));
    box.children[at].focus();
    refill(box, ...texts.map(drawn));
    return [...box.children].indexOf(document.activeElement);
  };
  return [focused(3, 2, "a", "a", "a"), focused(1, 0, "b", "a"), focused(1, 0, "b")];
}"""


def test_a_row_that_is_drawn_again_keeps_the_focus_and_gives_it_to_no_other(browser: TestBrowser) -> None:
    async def use() -> list[int]:
        async with console_of() as address, browser.page() as page:
            await page.goto(address)
            found: list[int] = await page.evaluate(_ROWS_WITH_EQUAL_TEXTS)
            return found

    assert browser.run(use) == [2, 1, -1]

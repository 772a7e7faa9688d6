"""Texts of tenants in every field are shown as texts, on every page and in a report."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.console.browser import TestBrowser
from tests.console.example_cluster import cluster_objects, pending_objects
from tests.console.served import console_of
from tests.support.programs.command import run_here

HOSTILE = "<img src=x onerror=alert(1)>\"'</script><script>alert(2)</script>\u202e{{7*7}}"
# Kinds, versions and amounts decide how an object is read at all.
_KEPT = (
    "kind",
    "apiVersion",
    "uid",
    "nodeName",
    "creationTimestamp",
    "phase",
    "type",
    "status",
    "controller",
    "effect",
    "operator",
)


def hostile(value: Any, key: str = "") -> Any:
    """Return an object with every text of users followed by HTML."""
    if isinstance(value, dict):
        return {name: hostile(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [hostile(each, key) for each in value]
    if not isinstance(value, str) or key in _KEPT or value[:1].isdigit():
        return value
    return value + HOSTILE


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster whose nodes, namespaces, pods, owners, labels, annotations, taints and messages are hostile."""
    path = tmp_path_factory.mktemp("hostile") / "cluster.json"
    items = [hostile(each) if each["kind"] != "Node" else _hostile_node(each) for each in _objects()]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def _objects() -> list[dict[str, Any]]:
    return [*cluster_objects(6), *(each for each in pending_objects() if each["kind"] == "Pod")]


def _hostile_node(node: dict[str, Any]) -> dict[str, Any]:
    # Its name stays: pods are bound by it. Pool and product are values of labels.
    name = node["metadata"]["name"]
    changed: dict[str, Any] = hostile({key: node[key] for key in ("metadata", "spec")})
    changed["metadata"] |= {
        "name": name,
        "labels": {key: value + HOSTILE for key, value in node["metadata"]["labels"].items()},
    }
    return {**node, **changed}


_FAULTS = "({images: document.images.length, scripts: document.scripts.length, text: document.body.innerText})"


async def _visit(page: Any) -> dict[str, dict[str, Any]]:
    """Open each page and what can be opened on it, and return what became of the texts."""
    await page.wait_for_selector(".group")
    found = {}
    for number, link in enumerate(await page.locator("nav a").all(), start=1):
        await link.click()
        # The page before it can still be there, with rows that go.
        await page.wait_for_selector(f"nav a:nth-of-type({number})[aria-current=page]")
        await page.wait_for_selector("main .summary, main .message, main form, main .controls")
        await page.locator("main", has_text="Loading …").wait_for(state="detached")
        for button in (await page.locator(".row").all())[:2]:
            await button.click()
            await page.wait_for_selector(".side .part, .side .message")
        if page.url.endswith("#cluster"):
            await page.locator(".map-box").first.click(position={"x": 10, "y": 10})
            await page.locator(".map-box").first.hover(position={"x": 12, "y": 12})
            await page.wait_for_selector("aside table")
        found[page.url.partition("#")[2].partition("?")[0]] = await page.evaluate(_FAULTS)
    return found


def test_texts_of_tenants_are_never_parsed(browser: TestBrowser, cluster: Path) -> None:
    async def look() -> dict[str, dict[str, Any]]:
        async with console_of(cluster) as address, browser.page() as page:
            await page.goto(f"{address}/#cluster")
            return await _visit(page)

    for name, seen in browser.run(look).items():
        assert (seen["images"], seen["scripts"]) == (0, 1), name
        if name in ("cluster", "pending"):
            assert "<img src=x onerror=alert(1)>" in seen["text"], name
            # The mark that reverses the text after it is shown as an escape.
            assert "\\u202e" in seen["text"], name


def test_texts_of_tenants_are_never_parsed_in_a_report(browser: TestBrowser, cluster: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert run_here("report", "--cluster", cluster, "-o", path).code == 0

    async def look() -> dict[str, dict[str, Any]]:
        async with browser.page() as page:
            await page.goto(f"{path.as_uri()}#cluster")
            return await _visit(page)

    for name, seen in browser.run(look).items():
        assert (seen["images"], seen["scripts"]) == (0, 0), name

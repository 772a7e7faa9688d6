"""The report: one file that shows the pages without a server."""

import gzip
import re
from base64 import b64decode
from pathlib import Path

import orjson
import pytest

from placement_console.application import static_files
from placement_console.report_file import LinkError, imports_of, linked
from tests.console.browser import TestBrowser, texts_of
from tests.console.example_cluster import write_cluster
from tests.support.programs.command import run_here


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    cluster = write_cluster(folder / "cluster.json")
    done = run_here("report", "--cluster", str(cluster), "-o", str(folder / "report.html"))
    assert done.code == 0
    return folder / "report.html"


def test_a_report_shows_the_pages_without_a_request(browser: TestBrowser, report: Path) -> None:
    async def look() -> tuple[str | None, list[str], str | None, list[str]]:
        async with browser.page() as page:
            asked: list[str] = []
            page.on("request", note := lambda request: asked.append(request.url))
            await page.goto(report.as_uri())
            await page.wait_for_selector(".group")
            summary = await page.locator(".summary").text_content()
            await page.get_by_role("link", name="Pending").click()
            await page.get_by_role("button", name="Job/segmenter").click()
            await page.wait_for_selector(".commands pre")
            rows = await texts_of(page.locator(".row strong"))
            page.remove_listener("request", note)
            return summary, rows, await page.locator(".status").text_content(), asked

    summary, rows, status, asked = browser.run(look)

    assert summary == "39 nodes, 271 cards, 59 free"
    assert rows[:2] == ["Job/pretrain-70b", "Job/segmenter"]
    assert status is not None
    assert "report of 20" in status
    assert [address for address in asked if not address.startswith("file://")] == []


@pytest.mark.slow
def test_a_report_of_a_thousand_nodes_is_small(tmp_path: Path) -> None:
    cluster = write_cluster(tmp_path / "cluster.json", 1000, with_pending=False)

    done = run_here("report", "--cluster", str(cluster), "-o", str(tmp_path / "report.html"))

    assert done.code == 0
    assert (tmp_path / "report.html").stat().st_size <= 3 * 1024 * 1024


def test_no_text_of_a_tenant_is_in_the_html_of_a_report(report: Path) -> None:
    text = report.read_text()
    found = re.search('<template id="data">([A-Za-z0-9+/=]*)</template>', text)

    assert found is not None
    assert b"pretrain-70b" in gzip.decompress(b64decode(found[1]))
    assert "pretrain-70b" not in text
    assert {*orjson.loads(gzip.decompress(b64decode(found[1])))} == {"time", "state", "answers"}


def test_a_report_is_not_written_where_it_cannot_be(tmp_path: Path) -> None:
    done = run_here(
        "report", "--cluster", "webhook/cli/sample/cluster.yaml", "-o", str(tmp_path / "none" / "report.html")
    )

    assert done.code == 2
    assert "--output" in done.errors
    assert "cannot be written" in done.errors


def test_every_module_can_be_joined_and_names_what_exists() -> None:
    modules = {path: file.read_text() for path, file in static_files().items() if path.endswith(".js")}

    linked(modules, "report.js")
    linked(modules, "main.js")
    for path, source in modules.items():
        for names, other in imports_of(path, source):
            exported = set(
                re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", modules[other], re.MULTILINE)
            )
            assert {name.strip() for name in names.split(",") if name.strip()} <= exported, path


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        ({"a.js": 'import { b } from "./b.js";\n'}, "is missing"),
        ({"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}, "imports itself"),
        ({"a.js": "export default 1;\n"}, "can be joined"),
        ({"a.js": 'import * as b from "./b.js";\n'}, "can be joined"),
    ],
)
def test_other_forms_of_modules_are_refused(modules: dict[str, str], reason: str) -> None:
    with pytest.raises(LinkError, match=reason):
        linked(modules, "a.js")

"""The texts of the project that the server sends appear in the language of the page; those of kube-scheduler stay."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.browser import TestBrowser
from tests.console.example_cluster import DEPLOYMENT, urgent, write_cluster
from tests.console.served import asked, console_of
from tests.docs.markdown import ROOT
from tests.golden.case import CASES, load
from tests.support.programs.command import run_here

_OWN = """async (texts) => {
  const { own } = await import("/lib/own.js");
  return texts.map(own);
}"""
# Four English words in a row: the page also shows names and values, the words of kube-scheduler, and edits.
_ENGLISH = re.compile(r"(?:\b[a-z]{2,}(?:'s)?,? ){3}[a-z]{2,}\b")
# The words of kube-scheduler, and of the author of a policy.
_WORDS_OF_OTHERS = re.compile(r"\d+/\d+ nodes are (?:un)?available: [^。；]*|豁免：.*")
_WEBHOOK = ROOT / "webhook"
# The modules with the texts of warnings and errors about pods.
_MODULES = (
    *sorted((_WEBHOOK / "mutation" / "workload").glob("*.py")),
    *sorted((_WEBHOOK / "backends").glob("*.py")),
    *(_WEBHOOK / "placement" / "reasons" / f"{name}_warnings.py" for name in ("batch", "cluster")),
    _WEBHOOK / "kube" / "reader.py",
)
# Texts that no golden case has: each literal of the modules occurs in one.
_SAMPLES = (ROOT / "tests" / "golden" / "other_texts.txt").read_text().splitlines()
_REFUSALS = (
    "16 browsers are connected already",
    "the console does not answer",
    "8 requests wait already; try again later",
    "too many requests; try again in a few seconds",
    "internal error; the log of the console has it",
    "there is no node n1",
    "pod a/b does not wait any more",
    "no record has the decision d",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cluster(tmp_path_factory.mktemp("own") / "cluster.json")


def _own_texts(cluster: Path, audit: Path) -> Iterator[str]:
    """Yield texts of the answers about the pods of a cluster, about manifests, and of an audit file."""
    for group in asked("/api/pending", cluster=cluster)["groups"]:
        pod = {"namespace": group["namespace"], "name": group["names"][0]}
        answer = asked("/api/pending/explain", cluster=cluster, **pod)
        yield from (*answer["suggestions"], *answer["evictions"], *answer["remarks"], answer["reserved"])
        room = asked("/api/pending/room", cluster=cluster, **pod)
        yield from (room.get("tried") or {}).get("notMoved", {})
    for manifest in (DEPLOYMENT, json.dumps(urgent())):
        for answer in asked("/api/try", manifest, cluster=cluster)["pods"]:
            yield from (*answer["suggestions"], *answer["evictions"], answer["replicasText"], answer["reservedText"])
    for record in asked("/api/admissions", audit=(audit,))["rows"]:
        if record["outcome"] == "Bypassed":
            yield record["note"]
        yield from asked("/api/admissions/decision", audit=(audit,), decision=record["decision"])["warnings"]


def warnings_and_errors() -> Iterator[str]:
    """Yield the warnings, errors and reasons of the golden cases, and those of `_SAMPLES`."""
    yield from _SAMPLES
    for case in (load(path) for path in CASES):
        want = case["want"]
        yield from (*want.get("warnings", ()), *filter(None, map(want.get, ("message", "reason"))))


def is_untranslated(shown: str) -> bool:
    return bool(_ENGLISH.search(_WORDS_OF_OTHERS.sub("", shown))) or not re.search("[一-鿿]", shown)


def _occurs(template: str, texts: str) -> bool:
    """Return whether a type annotation, a text or a text with `{}` for a value is in `texts`."""
    return " | " in template or bool(re.search(re.escape(template).replace(r"\{\}", r"\S+"), texts))


def uncovered(texts: list[str]) -> list[str]:
    """Return the literals of `_MODULES`, of three words or more, that are in none of `texts`."""
    every, found = "\n".join(texts), []
    for path in _MODULES:
        tree = ast.parse(path.read_text())
        documented = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        for each in ast.walk(tree):
            text = each.value if isinstance(each, ast.Constant) and id(each) not in documented else None
            if isinstance(text, str) and text.strip().count(" ") > 1 and not _occurs(text.strip(), every):
                found.append(f"{path.name}: {text}")
    return found


def _shown(browser: TestBrowser, language: str, texts: list[str]) -> list[str]:
    async def ask() -> list[str]:
        async with console_of() as address, browser.page(language=language) as page:
            await page.goto(address)
            await page.wait_for_selector(".group")
            found: list[str] = await page.evaluate(_OWN, texts)
            return found

    return browser.run(ask)


def test_the_texts_of_the_server_are_translated(browser: TestBrowser, cluster: Path, tmp_path: Path) -> None:
    assert run_here("demo", "--audit", tmp_path / "audit.jsonl").code == 0
    texts = [*_REFUSALS, *filter(None, _own_texts(cluster, tmp_path / "audit.jsonl"))]

    chinese = _shown(browser, "zh-CN", texts)

    assert len(texts) > 30
    assert [text for text, shown in zip(texts, chinese, strict=True) if not re.search("[一-鿿]", shown)] == []
    assert [shown for shown in chinese if re.search(r"\$|undefined|\[[^a-zN]", shown)] == []
    assert _shown(browser, "en-US", texts) == texts


def test_the_warnings_and_errors_about_pods_are_translated(browser: TestBrowser) -> None:
    texts = [*warnings_and_errors()]

    assert uncovered(texts) == []
    assert [
        text for text, shown in zip(texts, _shown(browser, "zh-CN", texts), strict=True) if is_untranslated(shown)
    ] == []


def test_the_words_of_kube_scheduler_stay(browser: TestBrowser, cluster: Path) -> None:
    words = [each["message"] for each in asked("/api/pending", cluster=cluster)["groups"] if each["message"]]
    queued = "3/12 nodes are available. Predicted: node constraints; the queue decides when it starts."

    shown = _shown(browser, "zh-CN", [*words, queued])

    assert shown[:-1] == words
    assert shown[-1] == "3/12 nodes are available. 已预测节点约束；启动时间由队列决定。"


def test_the_name_of_a_queue_is_not_translated(browser: TestBrowser) -> None:
    texts = ["Volcano: queue queue does not exist", "namespace none may not use queue product; allowed queues: a, b"]

    assert _shown(browser, "zh-CN", texts) == [
        "Volcano：队列 queue 不存在",
        "命名空间 none 不能使用队列 product；允许：a, b",
    ]

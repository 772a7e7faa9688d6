"""The texts of the project that the server sends appear in the language of the page; those of kube-scheduler stay."""

import ast
import json
import re
from collections.abc import Iterator
from itertools import chain
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
_UNUSED = """async (texts) => {
  const [{ own }, { SENTENCES }] = await Promise.all([import("/lib/own.js"), import("/lib/sentences.js")]);
  const unused = new Set(SENTENCES.map(([sentence]) => sentence));
  for (const sentence of [...unused]) {
    sentence.exec = (text) => {
      const parts = RegExp.prototype.exec.call(sentence, text);
      if (parts) unused.delete(sentence);
      return parts;
    };
  }
  texts.map(own);
  return [...unused].map(String);
}"""
# Four English words in a row: the page also shows names and values, the words of kube-scheduler, and edits.
_ENGLISH = re.compile(r"(?:\b[a-z]{2,}(?:'s)?,? ){3}[a-z]{2,}\b")
# The words of kube-scheduler and the API server, and of the author of a policy.
_WORDS_OF_OTHERS = re.compile(
    r"\d+/\d+ nodes are (?:un)?available: [^。；]*|豁免：.*|no nodes available to schedule pods"
    r"|Scheduling is blocked due to non-empty scheduling gates|all pods in a single pod group should have [^：]*"
)
_WEBHOOK = ROOT / "webhook"
# The modules with the texts of warnings, errors and messages about pods and objects.
_MODULES = (
    "admission/annotation_suggestions.py",
    "admission/injection.py",
    "admission/mutated_pod.py",
    "admission/pipeline.py",
    "backends/*.py",
    "cli/inputs/unknown_kinds.py",
    "kube/reader.py",
    "kube/workloads/*.py",
    "mutation/edits/*.py",
    "mutation/mutate.py",
    "mutation/rules.py",
    "mutation/workload/*.py",
    "objects/*.py",
    "placement/framework/result.py",
    "placement/framework/together.py",
    "placement/gang/*.py",
    "placement/pod/network_limit.py",
    "placement/preemption/*.py",
    "placement/reasons/*.py",
    "placement/replicas/*.py",
    "placement/suggest/*.py",
    "placement/waiting/*.py",
    "policy/[!k]*.py",
    "policy/spec/*.py",
)
# A pattern, and the reason to drop a suggestion.
_NEVER_SHOWN = (r"^\d+ nodes? (would fit|", "not all pods of the group fit")
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
    """x, and those of `_SAMPLES`."""
    yield from _SAMPLES
    for case in (load(path) for path in CASES):
        want = case["want"]
        yield from (*want.get("warnings", ()), *filter(None, map(want.get, ("message", "reason"))))
        for edits in want.get("rules", {}).values():
            yield from () if isinstance(edits, str) else edits


def is_untranslated(shown: str) -> bool:
    return bool(_ENGLISH.search(_WORDS_OF_OTHERS.sub("", shown))) or not re.search("[一-鿿]", shown)


def _occurs(template: str, texts: str) -> bool:
    """Return whether a type annotation, a text or a text with `{}` for a value is in `texts`."""
    return " | " in template or bool(re.search(re.sub(r"\\\{\w*\\\}", r"\\S+", re.escape(template)), texts))


def uncovered(texts: list[str]) -> list[str]:
    """Return the literals of `_MODULES`, of three words or more, that are in none of `texts`."""
    every, found = "\n".join((*texts, *_NEVER_SHOWN)), []
    modules = {each: sorted(_WEBHOOK.glob(each)) for each in _MODULES}
    assert all(modules.values())
    for path in chain.from_iterable(modules.values()):
        tree = ast.parse(path.read_text())
        documented = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        for each in ast.walk(tree):
            text = each.value if isinstance(each, ast.Constant) and id(each) not in documented else None
            if isinstance(text, str) and text.strip().count(" ") > 1 and not _occurs(text.strip(), every):
                found.append(f"{path.name}: {text}")
    return found


def _shown(browser: TestBrowser, language: str, texts: list[str], script: str = _OWN) -> list[str]:
    async def ask() -> list[str]:
        async with console_of() as address, browser.page(language=language) as page:
            await page.goto(address)
            await page.wait_for_selector(".group")
            found: list[str] = await page.evaluate(script, texts)
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


def test_each_sentence_is_that_of_a_text(browser: TestBrowser) -> None:
    assert _shown(browser, "zh-CN", [*warnings_and_errors(), *_REFUSALS], _UNUSED) == []


def test_the_words_of_kube_scheduler_stay(browser: TestBrowser, cluster: Path) -> None:
    words = [each["message"] for each in asked("/api/pending", cluster=cluster)["groups"] if each["message"]]
    queued = "3/12 nodes are available. Predicted: node constraints; the queue decides when it starts."

    shown = _shown(browser, "zh-CN", [*words, queued])

    assert shown[:-1] == words
    assert shown[-1] == "3/12 nodes are available. 已预测节点约束；启动时间由队列决定。"


_UNLUCKY = {
    "wants a In [b], has c; wants d Exists, has none": "需要 a In [b]，而节点为 c；需要 d Exists，而节点没有",
    "Volcano: queue queue does not exist": "Volcano：队列 queue 不存在",
    "namespace none may not use queue product; allowed queues: a, b": "命名空间 none 不能使用队列 product；允许：a, b",
    "5 of 8 pods of gang queue fit now": "Gang queue 的 8 个 Pod 中有 5 个可立即放置",
    "0/2 nodes are available: 2 Too many pods. 0 of 8 pods of gang the pod fit now; no queue is free.": (
        "0/2 nodes are available: 2 Too many pods. Gang the pod 的 8 个 Pod 中有 0 个可立即放置；没有空闲的 queue。"
    ),
    "p is 1 of 2 pods of gang the gang": "p 属于 Gang the gang 的 2 个 Pod 中的 1 个",
    "gang rack runs in racks, which has room for 0 of the missing pod": (
        "Gang rack 运行在 racks，它能容纳其余 1 个 Pod 中的 0 个"
    ),
    "PodGroup the gang needs 8 pods, and the gang has 4: it never starts": (
        "PodGroup the gang 需要 8 个 Pod，而 Gang 有 4 个：它永远不会启动"
    ),
    "1 node would fit if the pod tolerated queue, product and scheduler": (
        "1 个节点可用，前提是该 Pod 容忍 queue、product、scheduler"
    ),
    'a: Invalid value: "b. There is room; \\"; it creates no pod"; must be an integer': (
        'a：值 "b. There is room; \\"; it creates no pod" 无效：必须是整数'
    ),
    'pods "a. There is room; no view of the cluster" is forbidden': "",
    "exempt by spec.exemptions[0]: the pod. There is room; no view of the cluster": (
        "由 spec.exemptions[0] 豁免：the pod. There is room; no view of the cluster"
    ),
    "there is room; " * 100 + "there is room": "",
}
"""Texts with several reasons, or with names and words of users that look like ours, with the Chinese text.

The Chinese text is "" if the text stays.
"""


def test_names_and_words_of_users_are_not_translated(browser: TestBrowser) -> None:
    shown = _shown(browser, "zh-CN", [*_UNLUCKY])

    assert shown == [chinese or text for text, chinese in _UNLUCKY.items()]

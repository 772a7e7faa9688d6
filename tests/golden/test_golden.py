"""Every file in cases/: its pod, admitted, is what the file wants. tests/golden/case.py describes the format."""

from pathlib import Path

import jsonpatch
import orjson
import pytest

from tests.docs.markdown import ROOT, anchors
from tests.golden.case import CASES, admitted, load, rules_of, seen, wanted
from webhook.kube.api.json_patch import patched
from webhook.mutation.rules import RULES


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = load(path)

    assert seen(case) == wanted(case)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_operations_turn_the_original_into_the_admitted_pod_which_stays_as_it_is(path: Path) -> None:
    case = load(path)
    original = orjson.dumps(case["pod"])

    verdict, _ = admitted(case, case["pod"])

    assert orjson.dumps(case["pod"]) == original, "the pod that came in was touched"
    if verdict.outcome == "Patched":
        after = patched(case["pod"], verdict.operations)
        assert jsonpatch.apply_patch(orjson.loads(original), verdict.operations) == after
        again, _ = admitted(case, orjson.loads(orjson.dumps(after)))
        assert (again.outcome, again.warnings) == ("Unchanged", verdict.warnings)
    else:
        assert verdict.outcome in ("Bypassed", "Denied", "Unchanged")


def test_every_case_says_why() -> None:
    assert CASES
    assert [path.name for path in CASES if not load(path).get("why")] == []


def test_every_case_cites_a_section_of_the_documents() -> None:
    sections = {path: load(path)["source"].partition(";")[0].partition("#") for path in CASES}

    assert [path.name for path, (page, _, anchor) in sections.items() if anchor not in anchors(ROOT / page)] == []


def test_a_case_names_rules_that_exist() -> None:
    assert {path.name: unknown for path in CASES if (unknown := rules_of(load(path)) - RULES.keys())} == {}


@pytest.mark.parametrize("rule", RULES)
def test_a_case_of_all_rules_pins_what_each_does(rule: str) -> None:
    together = [want for path in CASES if "operations" in (want := load(path)["want"])]

    assert [want for want in together if isinstance(want["rules"].get(rule), list)]

"""Several documents in one text: one default policy, and others with a namespaceSelector."""

import json
from pathlib import Path
from typing import Any

import pytest

from webhook.admission.policy_cases import parse_tested_policies
from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, invalid
from webhook.policy.loader import MOST_POLICIES, built_in_policy, parse_policies, parse_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import accepted_policies, load_policies, policy_set
from webhook.policy.policy_set import PolicySet

HEAD = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
IS_FOR = "is for all other namespaces"
HAS_NAME = "has this name; give each policy a name of its own"
REMEDY = "to be in force for all other namespaces; `placement-webhook policy show` prints the built-in one"
TEAM = {"matchLabels": {"team": "a"}}


def document(name: str | None, selector: Any = None, **spec: Any) -> dict[str, Any]:
    metadata = {} if name is None else {"metadata": {"name": name}}
    return {**HEAD, **metadata, "spec": spec | ({} if selector is None else {"namespaceSelector": selector})}


def stored(name: str, selector: Any = None, **spec: Any) -> dict[str, Any]:
    """The object as an API server has it."""
    added = {"uid": "1f", "generation": 2, "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    content = document(name, selector, **spec)
    status = {"observedGeneration": 2, "conditions": [], "revision": "4c1f6d0f2a9b"}
    return {**content, "metadata": {**content["metadata"], **added, "managedFields": [{}]}, "status": status}


def yaml_of(*documents: dict[str, Any]) -> str:
    return "---\n".join(json.dumps(each, indent=1) + "\n" for each in documents)


def list_of(*items: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1)


def read(text: str) -> PolicySet:
    return policy_set(parse_policies(text, "p.yaml"))


def errors(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    return [str(error) for error in refused.value.errors]


def test_what_only_follows_from_an_invalid_field_is_no_further_error() -> None:
    usage = {"nodeUsage": {"allow": ["training"]}}
    (found,) = errors(yaml_of(document("a", workloadTypes={"training": usage | {"spread": {"topology": "a rack!"}}})))
    assert 'spec.workloadTypes.training.spread.topology: Invalid value: "a rack!"; must be a label key' in found


@pytest.mark.parametrize(("accepted", "others"), [(1, []), (2, ["team"])])
def test_an_object_is_in_force_once_its_newest_generation_is_accepted(accepted: int, others: list[str]) -> None:
    condition = {"type": "Accepted", "status": "True", "observedGeneration": accepted}
    content = stored("team", TEAM) | {"status": {"conditions": [condition]}}
    assert names(accepted_policies(built_in_policy(), [content])) == ("default", others)


def names(found: PolicySet) -> tuple[str, list[str]]:
    return found.default.name, [each.name for each in found.others]


@pytest.mark.parametrize(
    ("documents", "chosen"),
    [
        pytest.param([document("default"), document("a", TEAM)], ("default", ["a"]), id="named default"),
        pytest.param([document("a", TEAM), document(None)], ("default", ["a"]), id="named default by default"),
        pytest.param([document("a", TEAM), document("all")], ("all", ["a"]), id="any name without a selector"),
        pytest.param(
            [document("a", TEAM), document("all"), document("b", {}, priority=1)], ("all", ["b", "a"]), id="by priority"
        ),
    ],
)
@pytest.mark.parametrize("written", [yaml_of, list_of])
def test_the_policy_without_a_selector_is_the_default(
    documents: list[dict[str, Any]], chosen: tuple[str, list[str]], written: Any
) -> None:
    assert names(read(written(*documents))) == chosen


@pytest.mark.parametrize("selector", [None, TEAM])
def test_a_single_document_is_the_policy_of_all_namespaces(selector: Any) -> None:
    text = yaml_of(document("a", selector, priority=3))
    found = read(text)
    assert names(found) == ("a", [])
    assert found.default.identity == parse_policy(text, "p.yaml").identity


def test_what_the_api_server_adds_to_an_object_is_ignored() -> None:
    found = read(list_of(stored("default"), stored("a", TEAM)))
    assert names(found) == ("default", ["a"])
    assert found.default.revision == built_in_policy().revision
    assert parse_policy(json.dumps(stored("default")), "p.yaml").identity == built_in_policy().identity


def test_the_place_of_an_error_has_file_line_document_and_name() -> None:
    found = errors(yaml_of(document("default"), document("a", TEAM, priority="high", new=1), document("b", TEAM, x=1)))
    assert [each.split(": ")[:3] for each in found] == [
        ["p.yaml:17, document 2 (a)", "spec.priority", "Invalid value"],
        ["p.yaml:18, document 2 (a)", "spec.new", "Forbidden"],
        ["p.yaml:34, document 3 (b)", "spec.x", "Forbidden"],
    ]
    of_an_empty_name, beside = errors(yaml_of(document("default"), document("", TEAM, x=1)))
    assert of_an_empty_name.startswith("p.yaml:14, document 2: metadata.name: Invalid value")
    assert beside.startswith("p.yaml:17, document 2: spec.x: Forbidden")
    (of_item,) = errors(list_of(stored("default"), stored("a", TEAM, x=1)))
    assert of_item.split(": ")[:3] == ["p.yaml:39", "items[1] (a)", "spec.x"]


@pytest.mark.parametrize(
    ("documents", "wanted"),
    [
        pytest.param(
            [document("a", TEAM), document("b", {})],
            [
                f"p.yaml: Required value: one of the policies must have no spec.namespaceSelector, {REMEDY}",
            ],
            id="no default",
        ),
        pytest.param(
            [document("a"), document("default"), document("b", TEAM), document("c")],
            [
                f"p.yaml, document {number} ({name}): spec.namespaceSelector: Required value: must be set: p.yaml, "
                "document 2 (default) has none, so it is the policy of all other namespaces"
                for number, name in ((1, "a"), (4, "c"))
            ],
            id="several without a selector",
        ),
        pytest.param(
            [document("default", TEAM), document("a", TEAM)],
            [
                f"p.yaml, document 1 (default): spec.namespaceSelector: Forbidden: a policy named default {IS_FOR}",
            ],
            id="default with a selector",
        ),
        pytest.param(
            [document("default"), document("a", TEAM), document("a", {})],
            [
                f'p.yaml, document 3 (a): metadata.name: Duplicate value: "a"; p.yaml, document 2 (a) {HAS_NAME}',
            ],
            id="equal names",
        ),
        pytest.param(
            [document("default"), *(document("a", {"matchLabels": {"team": each}}) for each in "abc")],
            [
                f'p.yaml, document {number} (a): metadata.name: Duplicate value: "a"; p.yaml, document 2 (a) {HAS_NAME}'
                for number in (3, 4)
            ],
            id="three equal names",
        ),
    ],
)
def test_what_cannot_be_in_force_together_is_an_error_with_its_remedy(
    documents: list[dict[str, Any]], wanted: list[str]
) -> None:
    assert errors(yaml_of(*documents)) == wanted


def test_a_document_of_another_kind_is_an_error() -> None:
    (found,) = errors(yaml_of(document("default"), {"apiVersion": "v1", "kind": "Namespace"}))[1:]
    assert found == 'p.yaml:12, document 2: kind: Unsupported value: "Namespace"; supported values: "PlacementPolicy"'


@pytest.mark.parametrize(
    ("number", "error"), [(0, "must hold one PlacementPolicy, holds 0 documents"), (MOST_POLICIES + 1, "at most 256")]
)
def test_the_number_of_documents_has_bounds(number: int, error: str) -> None:
    assert error in errors(list_of(*[{}] * number) if number else "---\n")[0]


def test_each_document_runs_its_test_cases() -> None:
    fails = [{"name": "untyped", "expect": {"outcome": "Patched"}}]
    with pytest.raises(InvalidInput) as refused:
        parse_tested_policies(yaml_of(document("default", tests=fails), document("a", TEAM, tests=fails)), "p.yaml")
    assert [str(each).partition(": Invalid")[0] for each in refused.value.errors] == [
        "p.yaml:12, document 1 (default): spec.tests[0].expect.outcome",
        "p.yaml:30, document 2 (a): spec.tests[0].expect.outcome",
    ]


def aliased(settings: int, aliases: int) -> str:
    """A list of one policy with an unknown field, and aliases of it."""
    written = "".join(f"      k{number}: v\n" for number in range(settings))
    head = "apiVersion: placement.maip.mxsf.io/v1alpha1\n  kind: PlacementPolicy\n  metadata:\n    annotations:\n"
    items = "kind: List\nitems:\n- &a\n  " + head + written + "  spec: {unknown: 1}\n"
    return items + "- *a\n" * aliases


def test_what_aliases_stand_for_has_a_bound() -> None:
    """A server reads what a ConfigMap can hold, in the memory that it has."""
    detail = "aliases make it too large: they stand for more than 100000 values; use fewer of them"
    assert errors(aliased(1000, 100)) == [f'p.yaml:3:1: Invalid value: "- &a"; {detail}']
    few = errors(aliased(1000, 4))
    assert [each.split(": ")[:3] for each in few] == [
        ["p.yaml:1008", f"items[{index}]", "spec.unknown"] for index in range(5)
    ]


def test_no_more_is_judged_after_the_most_errors() -> None:
    judged = []

    def check(policy: Policy) -> list[FieldError]:
        judged.append(policy.name)
        return [invalid("spec", policy.name, "is wrong")] * 60

    text = yaml_of(document("default"), *(document(f"a{index}", TEAM) for index in range(5)))
    with pytest.raises(InvalidInput) as refused:
        parse_policies(text, "p.yaml", check)

    assert judged == ["default", "a0"]
    assert len(refused.value.errors) == MOST_ERRORS


def test_one_document_has_no_more_errors_either() -> None:
    assert len(errors(yaml_of(document("default", **{f"new{index}": 1 for index in range(200)})))) == MOST_ERRORS


def test_files_are_read_together_with_the_errors_of_each(tmp_path: Path) -> None:
    default, team = tmp_path / "default.yaml", tmp_path / "team.yaml"
    default.write_text(yaml_of(document("default")))
    team.write_text(yaml_of(document("a", TEAM)))
    assert names(policy_set(load_policies([team, default]))) == ("default", ["a"])

    team.write_text(yaml_of(document("a", TEAM, x=1)))
    with pytest.raises(InvalidInput) as refused:
        load_policies([tmp_path / "absent.yaml", team, default])
    first, second = map(str, refused.value.errors)
    assert first == f'--policy: Invalid value: "{tmp_path}/absent.yaml"; cannot be read: No such file or directory'
    assert second.startswith(f"{team}:8: spec.x: Forbidden")


@pytest.mark.parametrize(("name", "why"), [("missing.yaml", "No such file or directory"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_policies([tmp_path / name])

    assert str(refused.value) == f'--policy: Invalid value: "{tmp_path / name}"; cannot be read: {why}'

"""What the webhook has injected into a stored pod, by a policy that is known or not."""

import pytest

from tests.support.admission import TYPE, admit_pod
from tests.support.objects.builders import make_pod
from webhook.cli.inputs.profiles import read_schedulers
from webhook.cli.predictions.injected import Injected, admissions_of, injected, left_alone
from webhook.documents.documents import JsonObject
from webhook.policy.loader import built_in_policy

BUILT_IN = built_in_policy()


@pytest.mark.parametrize(
    ("mark", "is_known", "in_force"),
    [
        ("own@1", True, BUILT_IN.identity),
        ("own@1", False, ""),
        (BUILT_IN.identity, False, BUILT_IN.identity),
    ],
)
def test_a_policy_that_stands_in_is_in_force_only_if_the_pod_names_it(mark: str, is_known: bool, in_force: str) -> None:
    pod = make_pod("p").annotate(BUILT_IN.policy_annotation, mark).obj()

    found = injected(pod, BUILT_IN, is_known=is_known)

    assert (found.policy, found.in_force) == (mark, in_force)
    assert found.to_json()["policyInForce"] == (in_force or None)


def test_edits_are_those_of_the_pod_before_the_rules_changed_it() -> None:
    """Labels and annotations of the webhook would change what the rules do."""
    bare = make_pod("p").annotate(TYPE, "training").gpu(1)
    pod = admit_pod(bare.obj(), BUILT_IN)
    assert pod.outcome == "Patched"
    stored = {**pod.pod, "metadata": {**pod.pod["metadata"], "uid": "u", "labels": {"jobtype": "inference"}}}

    found = injected(stored, BUILT_IN, is_known=True)

    assert found.policy == BUILT_IN.identity
    assert {name: found.edits.get(name) for name in found.rules} == {
        each.name: each.edits for each in pod.rules if each.edits
    }
    assert found.to_json()["rules"] == [{"name": each, "edits": [*found.edits[each]]} for each in found.rules]


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (Injected("", (), {}, "own@1"), ["nothing was injected; the policy is own@1"]),
        (Injected("", (), {}, ""), ["nothing was injected; the policy in force is not known"]),
        (
            Injected("own@1", ("A", "B"), {"A": ("x", "y")}, "own@1"),
            ["injected by own@1", "  A", "    x", "    y", "  B"],
        ),
        (Injected("own@1", (), {}, "own@2"), ["injected by own@1; in force now: own@2"]),
        (Injected("own@1", (), {}, ""), ["injected by own@1; in force now: not known"]),
    ],
)
def test_lines_name_the_policy_and_each_rule_with_its_edits(found: Injected, lines: list[str]) -> None:
    assert [*found.lines] == lines


def test_without_a_policy_or_edits_json_has_null_and_no_rules() -> None:
    assert Injected("", (), {}, "").to_json() == {"policy": None, "policyInForce": None, "rules": []}
    assert Injected("own@1", ("A",), {}, "own@2").to_json() == {
        "policy": "own@1",
        "policyInForce": "own@2",
        "rules": [{"name": "A", "edits": []}],
    }


@pytest.mark.parametrize(
    ("by", "in_force", "with_policy", "remedy"),
    [
        ("own@1", "own@1", True, "create it again"),
        ("own@1", "own@2", False, "create it again"),
        ("own@1", "", False, ""),
    ],
)
def test_nothing_is_advised_that_rests_on_a_policy_that_is_not_known(
    by: str, in_force: str, with_policy: bool, remedy: str
) -> None:
    found = admissions_of(Injected(by, (), {}, in_force), read_schedulers(None, None))

    assert (found.with_policy, found.remedy, found.are_stored) == (with_policy, remedy, True)


@pytest.mark.parametrize("pod", [make_pod("p").annotate(BUILT_IN.policy_annotation, BUILT_IN.identity).obj()])
def test_a_stored_pod_with_the_mark_alone_has_no_rules(pod: JsonObject) -> None:
    found = injected(pod, BUILT_IN, is_known=False)

    assert (found.rules, found.is_by_policy_in_force) == ((), True)


GPU_MEMORY = "maip.mxsf.io/gpu-memory"


@pytest.mark.parametrize(
    ("annotations", "defaults", "is_known", "begins"),
    [
        pytest.param(
            {TYPE: "trainin", GPU_MEMORY: "80GB"},
            {},
            True,
            [f"the policy denies it: metadata.annotations[{each}]: " for each in (TYPE, GPU_MEMORY)],
            id="values that are denied",
        ),
        pytest.param({TYPE: "trainin"}, {}, False, [], id="a policy that is not known"),
        pytest.param(
            {TYPE: "trainin", BUILT_IN.policy_annotation: BUILT_IN.identity}, {}, True, [], id="a pod that was injected"
        ),
        pytest.param({GPU_MEMORY: "80Gi"}, {}, True, [f"{TYPE} is missing: add it"], id="no type"),
        pytest.param({GPU_MEMORY: "80Gi"}, {TYPE: "training"}, True, [], id="a type of the namespace"),
        pytest.param({TYPE: "training"}, {}, True, [], id="a pod that would be changed"),
        pytest.param({TYPE: "training", GPU_MEMORY: "80Gi"}, {}, True, [], id="a pod with all of its annotations"),
        pytest.param({}, {}, True, [], id="a pod without annotations"),
    ],
)
def test_the_reason_why_nothing_is_injected_is_stated(
    annotations: dict[str, str], defaults: dict[str, str], is_known: bool, begins: list[str]
) -> None:
    pod = make_pod("p").gpu(1).obj()
    pod["metadata"]["annotations"] = annotations

    stated = [*left_alone(injected(pod, BUILT_IN, is_known=is_known), pod, BUILT_IN, defaults)]

    assert len(stated) == len(begins)
    assert all(line.startswith(begin) for line, begin in zip(stated, begins, strict=True))
    bound = {**pod, "spec": {**pod["spec"], "nodeName": "n"}}
    assert [*left_alone(injected(bound, BUILT_IN, is_known=is_known), bound, BUILT_IN, defaults)] == []

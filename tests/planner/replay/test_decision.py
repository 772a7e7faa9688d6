"""The decision of a policy on one recorded admission, and which of two decisions is worse."""

from typing import Any

import pytest

from placement_planner.replay.decision import Decider, Decision, changes, has_worse_verdict
from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.missed import Scope
from webhook.admission.recorded_pod import RecordedPod
from webhook.policy.policy_set import PolicySet

POD = make_pod("trainer").namespace("team-a").gpu(1).owner("Job", "train").obj()
QUEUE = TYPE.replace("workload-type", "queue")


def decided(scope: Scope | None, in_cluster: Scope | None = None, **spec: Any) -> Decision:
    decider = Decider(PolicySet(policy_with(**spec)), scope_of=lambda _: in_cluster)
    return decider.decide(RecordedPod(POD, scope), "team-a", "")


def test_the_name_and_revision_are_no_change_of_a_pod_without_annotations() -> None:
    scope = Scope({TYPE: "training"}, {})

    assert "annotations" not in POD["metadata"]
    assert changes(decided(scope), decided(scope, requireType="deny")) == ()


def test_other_annotations_of_a_new_map_are_a_change() -> None:
    old, new = (decided(Scope({TYPE: "training"} | queue, {})) for queue in ({}, {QUEUE: "research"}))

    assert "fields: metadata.annotations" in map(str, changes(old, new))


def test_the_recorded_namespace_comes_before_that_of_the_cluster() -> None:
    recorded, now = Scope({TYPE: "training"}, {}), Scope({TYPE: "inference"}, {})

    assert decided(recorded, now).workload_type == "training"
    assert decided(None, now).workload_type == "inference"


@pytest.mark.parametrize(
    ("old", "new", "is_worse"),
    [
        ("Feasible", "Waiting", True),
        ("Waiting", "Infeasible", True),
        ("Infeasible", "Waiting", False),
        ("Waiting", "Waiting", False),
        ("Feasible", "Unknown", False),
        ("Unknown", "Infeasible", False),
        ("", "Infeasible", False),
    ],
)
def test_a_verdict_is_worse_only_than_a_known_one(old: str, new: str, is_worse: bool) -> None:
    assert has_worse_verdict(Decision("a", "Patched", verdict=old), Decision("a", "Patched", verdict=new)) is is_worse


BASE = Decision(
    "old", "Patched", "", "training", {"A": ("x",), "B": ("y",)}, "volcano", ("a", "b"), ("w",), "Feasible",
    ({"op": "add", "path": "/spec/affinity/nodeAffinity/x/y", "value": 1},),
)  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, []),
        ({"policy": "new"}, []),
        ({"outcome": "Unchanged"}, ["outcome: Patched → Unchanged"]),
        ({"verdict": "Waiting"}, ["verdict: Feasible → Waiting"]),
        ({"verdict": ""}, ["verdict: Feasible → -"]),
        ({"workload_type": "inference"}, ["workload type: training → inference"]),
        ({"scheduler": "kai"}, ["scheduler: volcano → kai"]),
        (
            {"rules": {"A": ("z",), "C": ()}},
            ["rules: A makes other edits", "rules: B no longer applies", "rules: C applies"],
        ),
        ({"tolerations": ("b", "c")}, ["tolerations: gained: c", "tolerations: lost: a"]),
        ({"warnings": ("v",)}, ["warnings: new: v", "warnings: gone: w"]),
        ({"operations": ()}, ["fields: spec.affinity.nodeAffinity.x"]),
        ({"operations": ({**BASE.operations[0], "value": 2},)}, ["fields: spec.affinity.nodeAffinity.x"]),
        (
            {
                "operations": (
                    *BASE.operations,
                    {"op": "add", "path": "/spec/tolerations/-", "value": 1},
                    {"op": "add", "path": "/spec/schedulerName", "value": 1},
                )
            },
            [],
        ),
        (
            {
                "outcome": "Unchanged", "verdict": "Unknown", "workload_type": "t", "scheduler": "s", "rules": {},
                "tolerations": (), "warnings": (), "operations": (),
            },
            [
                "outcome: Patched → Unchanged", "verdict: Feasible → Unknown", "workload type: training → t",
                "scheduler: volcano → s", "rules: A no longer applies", "rules: B no longer applies",
                "tolerations: lost: a", "tolerations: lost: b", "fields: spec.affinity.nodeAffinity.x",
                "warnings: gone: w",
            ],
        ),
    ],
)  # fmt: skip
def test_each_part_of_a_decision_is_compared(fields: dict[str, Any], wanted: list[str]) -> None:
    assert [*map(str, changes(BASE, BASE._replace(**fields)))] == wanted


@pytest.mark.parametrize("refused", ["Denied", "Invalid"])
def test_the_patch_of_a_refused_pod_is_not_compared_but_its_reason(refused: str) -> None:
    other = Decision("new", refused, "reason")

    assert [each.kind for each in changes(BASE, other)] == ["outcome", "verdict", "workload type", "warnings"]
    assert [each.kind for each in changes(other, BASE)] == ["outcome", "verdict", "workload type", "warnings"]
    assert [*map(str, changes(other, other._replace(message="more;\nand more")))] == [
        f"outcome: {refused} for another reason: more; and more"
    ]
    # The reason of a pod that is created is no outcome.
    assert changes(BASE, BASE._replace(message="more")) == ()


def test_a_decision_in_json_has_nulls_for_what_is_empty_and_sorted_rules() -> None:
    rules = {"B": ("y",), "A": ("x",)}
    assert BASE._replace(rules=rules, message="m").to_json() == {
        "policy": "old", "outcome": "Patched", "message": "m", "workloadType": "training", "rules": ["A", "B"],
        "scheduler": "volcano", "tolerations": ["a", "b"], "warnings": ["w"], "verdict": "Feasible",
    }  # fmt: skip
    assert Decision("p", "Bypassed").to_json() == {
        "policy": "p", "outcome": "Bypassed", "message": None, "workloadType": None, "rules": [], "scheduler": None,
        "tolerations": [], "warnings": [], "verdict": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "scheduler", "tolerations"),
    [
        ({}, "default-scheduler", ()),
        ({"schedulerName": "s"}, "s", ()),
        ({"tolerations": 1}, "default-scheduler", ()),
        (
            {
                "tolerations": [
                    1,
                    {"key": "k", "value": "v", "effect": "NoSchedule"},
                    {"key": "k", "operator": "Exists"},
                    {"operator": "Exists"},
                    {"key": "k", "value": "v", "effect": "NoSchedule"},
                    {"key": "a"},
                ]
            },
            "default-scheduler",
            ("*:*", "a=:*", "k:*", "k=v:NoSchedule"),
        ),
        (None, "", ()),
    ],
)
def test_scheduler_and_tolerations_of_a_bypassed_pod_may_be_malformed(
    spec: Any, scheduler: str, tolerations: tuple[str, ...]
) -> None:
    policy = policy_with(exemptions=[{"users": ["jane"], "reason": "she knows"}])
    decision = Decider(PolicySet(policy)).decide(RecordedPod({"metadata": {}, "spec": spec}), "team-a", "jane")

    assert (decision.outcome, decision.scheduler, decision.tolerations) == ("Bypassed", scheduler, tolerations)
    assert decision.message == "exempt by spec.exemptions[0]: she knows"


@pytest.mark.parametrize("is_user", [False, True])
@pytest.mark.parametrize("is_in_first", [False, True])
def test_users_are_read_if_any_policy_exempts_some(*, is_user: bool, is_in_first: bool) -> None:
    exempting = policy_with(exemptions=[{"users" if is_user else "namespaces": ["jane"], "reason": "r"}])
    pair = (exempting, policy_with()) if is_in_first else (policy_with(), exempting)

    assert Decider(PolicySet(pair[0], (pair[1],))).reads_users is is_user

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

"""The default PriorityClass of the cluster and that of the policy."""

import pytest

from placement_doctor.check import Severity
from placement_doctor.source import Source
from tests.doctor.healthy import found, make_installation, named, objects
from tests.support.admission import policy_with


@pytest.mark.parametrize(
    ("own", "default", "is_named", "expected"),
    [
        ("usual", "usual", True, []),
        ("usual", "other", True, [("usual, but the cluster's default class is other", "set it to other")]),
        ("usual", None, True, [("usual, but the cluster's default class is not set", "remove it")]),
        ("usual", "other", False, [("usual, but the cluster's default class is other", "set it to other")]),
        (
            None,
            "other",
            True,
            [("not set, and every pod without a class gets other: no workload type sets its own", "set it to other")],
        ),
        (None, "other", False, []),
        (None, None, True, []),
    ],
)
def test_the_policy_names_the_default_class_of_the_cluster(
    own: str | None, default: str | None, is_named: bool, expected: list[tuple[str, str]]
) -> None:
    """Otherwise, the webhook takes the default class of a pod for a choice of its user."""
    fields = {"nodeUsage": {"allow": ["training"]}} | ({"priorityClassName": "high"} if is_named else {})
    policy = policy_with(workloadTypes={"training": fields}, defaultPriorityClass=own)
    classes = [named("high"), *(named(each) for each in {own, default} if each)]
    for each in classes:
        each["globalDefault"] = each["metadata"]["name"] == default
    read = {**objects(), Source.PRIORITY_CLASSES: tuple(classes)}

    findings = found(make_installation(policy=policy, objects=read, trial=None), "priority-classes")

    assert [(each.what, each.remedy) for each in findings] == expected
    assert {(each.severity, each.where) for each in findings} <= {
        (Severity.WARNING, "policy: spec.defaultPriorityClass")
    }

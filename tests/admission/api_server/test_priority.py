"""Priority: pods that contradict their PriorityClass."""

from typing import Any

import pytest

from tests.admission.api_server.completing import of, refusal, view
from tests.support.objects.api_server import Object
from webhook.cluster.left_out import LeftOut
from webhook.cluster.planned_objects import with_planned_objects
from webhook.documents.documents import Document


def _priority_class(name: str, value: int, **fields: Any) -> Object:
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        **fields,
    }


GIVEN, FROM = (
    "must not be provided in pod spec; priority admission controller computed",
    "from the given PriorityClass name",
)
_SYSTEM = _priority_class("system-node-critical", 2_000_001_000)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priorityClassName": "gone"}, "no PriorityClass with name gone was found"),
        (
            {"priorityClassName": "high", "priority": 5},
            f"the integer value of priority (5) {GIVEN} 10 {FROM}",
        ),
        (
            {"priorityClassName": "high", "priority": 0},
            f"the integer value of priority (0) {GIVEN} 10 {FROM}",
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            f"the string value of PreemptionPolicy (PreemptLowerPriority) {GIVEN} Never {FROM}",
        ),
    ],
)
def test_pods_that_contradict_their_priority_class_are_refused(spec: Object, words: str) -> None:
    high = _priority_class("high", 10, preemptionPolicy="Never")

    assert refusal(view(_SYSTEM, high), **spec) == words
    # Every cluster has the classes of the system, also if they are not in the view.
    assert refusal(view(high), **spec) == words


@pytest.mark.parametrize(
    "spec", [{"priorityClassName": "gone"}, {"priority": 5}, {"preemptionPolicy": "Never"}, {"priorityClassName": ""}]
)
def test_no_pod_is_refused_for_a_priority_class_that_is_not_known(spec: Object) -> None:
    """The class, or the default class, may be one of those that were not listed or not read."""
    partial = view(_SYSTEM)
    partial.left_out = LeftOut({("PriorityClass", ""): frozenset(("large",))})
    planned = with_planned_objects(view(), [Document("f", _priority_class("mine", 5))])

    for snapshot in (view(), partial, planned):
        assert of(snapshot, **spec).unknown == ""


def test_class_of_the_system_need_not_be_in_the_view() -> None:
    high = _priority_class("high", 10)

    assert of(view(high), priorityClassName="system-cluster-critical").unknown == ""
    assert refusal(view(high), priority=5).startswith(f"the integer value of priority (5) {GIVEN} 0 {FROM}")

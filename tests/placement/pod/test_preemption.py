"""A pod's priority, from its spec or from the PriorityClass that it names."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]

_CLASSES: list[tuple[str, Object]] = [
    ("low", {"value": 5}),
    ("high", {"value": 1000}),
    ("gentle", {"value": 1000, "preemptionPolicy": "Never"}),
]
_DEFAULTS: list[tuple[str, Object]] = [
    ("usual", {"value": 500, "globalDefault": True}),
    ("other", {"value": 50, "globalDefault": True}),
]
_EVICTED = "n fits once 1 pod of lower priority is gone"
_FREED = "n fits once 8 nvidia.com/gpu are freed"


def best(pod: PodBuilder, *classes: tuple[str, Object], running_priority: int = 100) -> str:
    """The suggestion for `pod` on a node that another pod fills."""
    running = make_pod("running").node_name("n").gpu(8).spec(priority=running_priority).obj()
    objects: list[Object] = [make_node_object("n", capacity={"nvidia.com/gpu": 8}), running]
    for name, fields in classes:
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        objects.append(head | fields)
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    placement = Scheduler(suggestions=1).place(pod.gpu(8).obj(), snapshot)
    assert placement.verdict == "Waiting", "priority never changes the verdict"
    return placement.suggestions[0]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        pytest.param({}, _FREED, id="no priority"),
        pytest.param({"priority": 101}, _EVICTED, id="a higher one"),
        pytest.param({"priority": 100}, _FREED, id="the same"),
        pytest.param({"priority": 101, "preemptionPolicy": "Never"}, _FREED, id="a higher one that never preempts"),
        pytest.param({"priorityClassName": "high"}, _EVICTED, id="a higher class"),
        pytest.param({"priorityClassName": "low"}, _FREED, id="a lower class"),
        pytest.param({"priorityClassName": "gentle"}, _FREED, id="a class that never preempts"),
        pytest.param(
            {"priorityClassName": "high", "preemptionPolicy": "Never"},
            _FREED,
            id="a pod that never preempts",
        ),
        pytest.param({"priorityClassName": "high", "priority": 1}, _FREED, id="what the API server found wins"),
        pytest.param({"priorityClassName": "system-node-critical"}, _EVICTED, id="a class of every cluster"),
        pytest.param({"priorityClassName": "unknown"}, _FREED, id="a class that is not known"),
    ],
)
def test_a_pod_of_higher_priority_may_drive_off_others(fields: Object, wanted: str) -> None:
    assert best(make_pod().spec(**fields), *_CLASSES) == wanted


def test_a_pod_of_an_unknown_class_counts_as_one_of_priority_0() -> None:
    pod = make_pod().spec(priorityClassName="unknown")
    assert best(pod, *_CLASSES, running_priority=-1) == _EVICTED
    assert best(pod.spec(preemptionPolicy="Never"), *_CLASSES, running_priority=-1) == _FREED


def test_a_pod_that_names_no_class_has_the_lowest_default() -> None:
    assert best(make_pod(), *_DEFAULTS, running_priority=49) == _EVICTED
    assert best(make_pod(), *_DEFAULTS, running_priority=50) == _FREED

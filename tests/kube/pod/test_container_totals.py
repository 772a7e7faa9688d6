"""The requests of the containers of a pod while a kubelet resizes it."""

import pytest

from tests.kube.pod.read_requests import resources_of
from tests.support.objects.builders import make_pod


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param("Deferred", 4000, id="a resize under way counts the most of asked, given and promised"),
        pytest.param("Infeasible", 3000, id="a resize that cannot be counts what is given or promised"),
    ],
)
def test_resize_in_place(reason: str, expected: int) -> None:
    pod = (
        make_pod()
        .requests(cpu="4")
        .status(
            containerStatuses=[
                {"name": "main", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}
            ],
            conditions=[{"type": "PodResizePending", "reason": reason}],
        )
    )
    assert resources_of(pod, running=True).requests == {"cpu": expected}
    assert resources_of(pod).requests == {"cpu": 4000}


def test_resizes_of_containers_that_cancel_out_count_once() -> None:
    """What is asked, given and promised is compared for the whole pod, not container by container."""
    statuses = [
        {"name": "main", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}},
        {"name": "side", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}},
    ]
    pod = make_pod().requests(cpu="1").container("side", cpu="3").status(containerStatuses=statuses)
    assert resources_of(pod, running=True).requests == {"cpu": 4000}


def test_pod_level_report_replaces_those_of_the_containers() -> None:
    pod = (
        make_pod()
        .requests(cpu="1")
        .status(
            resources={"requests": {"cpu": "2"}},
            allocatedResources={"cpu": "3"},
            containerStatuses=[{"name": "main", "resources": {"requests": {"cpu": "9"}}}],
        )
    )
    assert resources_of(pod, running=True).requests == {"cpu": 3000}


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        pytest.param({"allocatedResources": {"cpu": "3"}}, 3000, id="what is allocated, until something is set"),
        pytest.param({"resources": {"requests": {"cpu": "2"}}}, 2000, id="what is set"),
        pytest.param({}, 0, id="nothing is reported"),
    ],
)
def test_of_a_resize_that_cannot_be_what_is_reported_counts(reported: dict[str, object], expected: int) -> None:
    pending = {"type": "PodResizePending", "reason": "Infeasible"}
    pod = make_pod().requests(cpu="4").status(containerStatuses=[{"name": "main", **reported}], conditions=[pending])

    assert resources_of(pod, running=True).requests.get("cpu", 0) == expected


def test_a_container_without_set_resources_has_its_allocated_ones_beside_those_of_the_others() -> None:
    statuses = [
        {"name": "main", "allocatedResources": {"cpu": "3"}},
        {"name": "side", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "5"}}},
    ]
    pod = make_pod().requests(cpu="1").container("side", cpu="1").status(containerStatuses=statuses)

    assert resources_of(pod, running=True).requests == {"cpu": 8000}

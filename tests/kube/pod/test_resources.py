"""Resource requests of a pod, as kube-scheduler counts them."""

from typing import Any

import pytest

from tests.kube.pod.read_requests import read, resources_of
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.documents.field import InvalidInput
from webhook.kube.pod.resources import requested_extended_resources

_MI = 1024 * 1024
_GI = 1024 * _MI


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(), {}, id="nothing"),
        pytest.param(
            make_pod().requests(cpu="500m", memory="1Gi").container("b", cpu="1", memory="1Gi"),
            {"cpu": 1500, "memory": 2 * _GI},
            id="containers are summed",
        ),
        pytest.param(
            make_pod().requests(cpu="1").init_container("i", cpu="3", memory="1Gi").init_container("j", cpu="2"),
            {"cpu": 3000, "memory": _GI},
            id="init containers run one by one: their peak",
        ),
        pytest.param(
            make_pod().requests(cpu="2").init_container("i", cpu="1"),
            {"cpu": 2000},
            id="containers above the init containers' peak",
        ),
        pytest.param(
            make_pod().requests(cpu="2").sidecar("s", cpu="1"),
            {"cpu": 3000},
            id="a sidecar goes on running",
        ),
        pytest.param(
            make_pod().requests(cpu="1").sidecar("s", cpu="1").init_container("i", cpu="5"),
            {"cpu": 6000},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            make_pod().requests(cpu="1").init_container("i", cpu="5").sidecar("s", cpu="1"),
            {"cpu": 5000},
            id="but not beside those after it",
        ),
        pytest.param(
            make_pod().requests(cpu="1").overhead(cpu="250m", memory="64Mi"),
            {"cpu": 1250, "memory": 64 * _MI},
            id="overhead is added",
        ),
        pytest.param(
            make_pod().limits(cpu="2", **{"nvidia.com/gpu": 8}).requests(cpu="1"),
            {"cpu": 1000, "nvidia.com/gpu": 8},
            id="a missing request is the limit",
        ),
        pytest.param(
            make_pod().requests(cpu="1", memory="1Gi").pod_resources(cpu="4"),
            {"cpu": 4000, "memory": _GI},
            id="a pod-level request replaces the sum",
        ),
        pytest.param(
            make_pod().requests(cpu="1").pod_resources(cpu="4").overhead(cpu="1"),
            {"cpu": 5000},
            id="overhead comes on top of a pod-level request",
        ),
        pytest.param(
            make_pod().requests(cpu="1").spec(resources={"limits": {"cpu": "4", "memory": "2Gi"}}),
            {"cpu": 1000, "memory": 2 * _GI},
            id="a pod-level limit stands in where no container requests",
        ),
        pytest.param(
            make_pod().gpu(1).pod_resources(**{"nvidia.com/gpu": "4", "cpu": "1"}),
            {"cpu": 1000, "nvidia.com/gpu": 1},
            id="devices have no pod level",
        ),
        pytest.param(
            make_pod().requests(cpu="0.5m").container("b", cpu="0.5m"), {"cpu": 2}, id="cpu is rounded up at defaulting"
        ),
        pytest.param(
            make_pod().requests(memory="500m").container("b", memory="500m"), {"memory": 1}, id="sums are rounded once"
        ),
    ],
)
def test_requests(pod: PodBuilder, expected: dict[str, int]) -> None:
    assert resources_of(pod).requests == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(), (100, 200 * _MI), id="a container without requests counts"),
        pytest.param(make_pod().container("b"), (200, 400 * _MI), id="each of them"),
        pytest.param(make_pod().requests(cpu="1"), (1000, 200 * _MI), id="by resource"),
        pytest.param(make_pod().requests(cpu="0", memory="0"), (0, 0), id="a zero request is a request"),
        pytest.param(make_pod().overhead(cpu="1"), (1100, 200 * _MI), id="with the overhead"),
    ],
)
def test_missing_requests_count_for_scores(pod: PodBuilder, expected: tuple[int, int]) -> None:
    resources = resources_of(pod)
    assert (resources.non_zero_requested["cpu"], resources.non_zero_requested["memory"]) == expected
    assert resources.scoring_requests == resources.non_zero_requested


def test_pod_level_requests_count_on_the_node_but_not_in_the_pods_own_score() -> None:
    resources = resources_of(make_pod().container("b").pod_resources(cpu="4"))
    assert resources.requests == {"cpu": 4000}
    assert resources.non_zero_requested == {"cpu": 4000, "memory": 400 * _MI}
    assert resources.scoring_requests == {"cpu": 200, "memory": 400 * _MI}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "lots", "memory": "-1"}}}]},
            ["spec.containers[0].resources.requests[cpu]", "spec.containers[0].resources.requests[memory]"],
            id="every invalid quantity is reported",
        ),
        pytest.param(
            {"initContainers": [{}, {"resources": {"limits": {"cpu": True}}}]},
            ["spec.initContainers[1].resources.limits[cpu]"],
            id="limits of init containers",
        ),
        pytest.param({"containers": "main"}, ["spec.containers"], id="no list"),
        pytest.param({"containers": [None]}, ["spec.containers[0]"], id="null container"),
        pytest.param({"containers": [{"resources": []}]}, ["spec.containers[0].resources"], id="no object"),
        pytest.param({"overhead": {"cpu": None}}, ["spec.overhead[cpu]"], id="null quantity"),
        pytest.param({"resources": {"requests": {1: "1"}}}, ["spec.resources.requests"], id="a resource named 1"),
    ],
)
def test_malformed_resources_are_reported_with_their_fields(spec: dict[str, Any], paths: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        read({"spec": spec})
    assert [error.path for error in caught.value.errors] == paths


@pytest.mark.parametrize(
    ("limit", "request_", "is_requested"),
    [
        (None, "1", True),
        ("1", None, True),
        ("1", "1", True),
        ("1", "0", False),
        ("0", "1", True),
        ("0", None, False),
        (None, "0", False),
        ("1", "many", False),
    ],
)
@pytest.mark.parametrize("part", ["containers", "initContainers"])
def test_the_request_of_a_container_counts_before_its_limit(
    part: str, limit: str | None, request_: str | None, is_requested: bool
) -> None:
    amounts = {"limits": limit, "requests": request_}
    resources = {name: {"nvidia.com/gpu": each} for name, each in amounts.items() if each is not None}
    pod = {"spec": {part: [{"name": "main", "resources": resources}]}}

    assert requested_extended_resources(pod) == (("nvidia.com/gpu",) if is_requested else ())

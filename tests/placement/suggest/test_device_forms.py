"""Another form of a device is suggested for a resource that no node has."""

from collections.abc import Mapping

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler
from webhook.placement.suggest.free_capacity import other_forms

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
SMALL, MIDDLE, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/mig-7g.80gb"


def suggestions(
    asked: Mapping[str, int], *offered: Mapping[str, int], used: Mapping[str, int] | None = None
) -> list[str]:
    """Return the suggestions for a pod that asks for this on nodes that offer that; the first also runs a pod."""
    running = [make_pod("running").requests(**used)] if used else []
    nodes = [node(f"n{n}", *(running if n == 0 else []), capacity=amounts) for n, amounts in enumerate(offered)]
    return list(Scheduler(suggestions=3).place(make_pod().requests(**asked).obj(), Snapshot.of(nodes)).suggestions)


@pytest.mark.parametrize(
    ("resource", "offered", "wanted"),
    [
        pytest.param(SMALL, [GPU, LARGE, MIDDLE], [MIDDLE, LARGE, GPU], id="the next larger slice first"),
        pytest.param(MIDDLE, [GPU, SMALL, SHARED], [SHARED, GPU, SMALL], id="a smaller slice last"),
        pytest.param(GPU, [SMALL, LARGE, SHARED], [SHARED, LARGE, SMALL], id="a shared card, then the largest slice"),
        pytest.param(
            "rdma/hca", ["rdma/ib", "rdma/hca_shared", GPU], ["rdma/hca_shared", "rdma/ib"], id="RDMA by name"
        ),
        pytest.param("nvidia.com/gpumem", [GPU], [], id="no device"),
        pytest.param("cpu", [GPU], [], id="no extended resource"),
        pytest.param("amd.com/gpu", [GPU], [], id="another vendor"),
    ],
)
def test_the_closest_form_comes_first(resource: str, offered: list[str], wanted: list[str]) -> None:
    assert other_forms(resource, offered) == wanted


@pytest.mark.parametrize(
    ("asked", "offered", "wanted"),
    [
        pytest.param(
            {SMALL: 1},
            [{GPU: 8}, {GPU: 8}, {}],
            [f"2 nodes would fit if the pod asked for 1 {GPU} instead of {SMALL}, which no node has"],
            id="a slice where cards are whole",
        ),
        pytest.param(
            {GPU: 2},
            [{SHARED: 40}],
            [f"1 node would fit if the pod asked for 2 {SHARED} instead of {GPU}, which no node has"],
            id="a card where cards are shared",
        ),
        pytest.param(
            {SHARED: 1},
            [{MIDDLE: 2}, {SMALL: 7}],
            [
                f"1 node would fit if the pod asked for 1 {MIDDLE} instead of {SHARED}, which no node has",
                f"1 node would fit if the pod asked for 1 {SMALL} instead of {SHARED}, which no node has",
            ],
            id="a shared card where cards are sliced",
        ),
        pytest.param(
            {GPU: 8, "rdma/hca": 1},
            [{GPU: 8, "rdma/hca_shared": 1000}],
            ["1 node would fit if the pod asked for 1 rdma/hca_shared instead of rdma/hca, which no node has"],
            id="an RDMA device of another name",
        ),
        pytest.param({SMALL: 9}, [{GPU: 8}], [], id="too few of the other form"),
        pytest.param({SMALL: 1, GPU: 1}, [{GPU: 8}], [], id="the other form is requested, too"),
        pytest.param({"rdma/hca": 1}, [{GPU: 8}], [], id="no other form"),
    ],
)
def test_another_form_is_suggested_for_a_resource_that_no_node_has(
    asked: dict[str, int], offered: list[dict[str, int]], wanted: list[str]
) -> None:
    assert suggestions(asked, *offered) == wanted


def test_a_resource_that_a_node_has_is_to_be_freed_and_not_replaced() -> None:
    (found,) = suggestions({SMALL: 7}, {SMALL: 7}, {GPU: 8}, used={SMALL: 7})

    assert found == f"n0 fits once 7 {SMALL} are freed"


def test_another_form_that_is_in_use_is_not_suggested() -> None:
    assert suggestions({SMALL: 1}, {GPU: 8}, used={GPU: 8}) == []

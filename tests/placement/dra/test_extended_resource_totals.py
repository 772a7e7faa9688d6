"""The devices that count for an extended resource in the scores of nodes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import (
    allocated,
    exactly,
    make_cards,
    make_device,
    make_device_class,
    make_resource_claim,
    make_shared_device,
    make_slice,
)
from tests.support.plugins import node, pod_info
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.documents.documents import Document
from webhook.kube.deadline import DeadlineNearError, never
from webhook.placement.dra.device_selection import _MOST_ANSWERS
from webhook.placement.dra.extended_resource_totals import amounts, are_totals_known, counts_devices

Object = dict[str, Any]

_CARD = "example.com/gpu"
_POD = make_pod().gpu(1, _CARD)
_CLASS = make_device_class(extended_resource=_CARD)
_NOT_KNOWN = make_device_class("own", "bad(", extended_resource=_CARD)
_OTHER = make_resource_claim("other", exactly())


def cluster(*objects: Object, **capacities: int) -> Snapshot:
    """Return nodes whose device plugins offer `capacities` of the resource, and `objects` about devices."""
    nodes = [make_node_object(name, capacity={_CARD: count} if count else {}) for name, count in capacities.items()]
    return snapshot_from_documents(Document("c", each) for each in (*nodes, *objects))


def counted(nodes: Snapshot, pod: PodBuilder = _POD) -> tuple[list[int], list[int]]:
    """Return the allocatable and the requested devices of each node."""
    found = amounts(pod_info(pod), _CARD, nodes.requested(_CARD), nodes, never)
    return found.capacity.tolist(), found.requested.tolist()


def test_devices_count_where_a_node_does_not_offer_the_resource_itself() -> None:
    slices = [make_slice(name, *make_cards(4)) for name in "abc"]
    assert counted(cluster(_CLASS, _OTHER, *slices, a=0, b=2, c=1, d=0)) == ([4, 2, 1, 0], [0, 0, 0, 0])


def test_devices_that_claims_have_are_requested() -> None:
    own = allocated(make_resource_claim("c", exactly("cards", 2)), "a", "card-0", "card-3")
    nodes = cluster(_CLASS, own, make_slice("a", *make_cards(4)), make_slice("b", *make_cards(2)), a=0, b=0)
    assert counted(nodes) == ([4, 2], [2, 0])


def test_device_of_which_claims_have_shares_is_requested_once() -> None:
    cards = [make_shared_device(name, {"memory": "80Gi"}) for name in ("card-0", "card-1")]
    shares = [
        allocated(make_resource_claim(name, exactly()), "a", "card-1", shareID=name, consumedCapacity={"memory": "8Gi"})
        for name in ("x", "y")
    ]
    assert counted(cluster(_CLASS, *shares, make_slice("a", *cards), a=0)) == ([2], [1])


def test_device_counts_on_the_nodes_from_which_it_is_reached() -> None:
    everywhere = make_slice("", *make_cards(2), pool="net", allNodes=True)
    one_by_one = make_slice(
        "",
        make_device("x", nodeName="a"),
        make_device("y", nodeName="b"),
        make_device("z", nodeName="b"),
        pool="each",
        perDeviceNodeSelection=True,
    )
    gone = make_slice("gone", *make_cards(8))
    assert counted(cluster(_CLASS, _OTHER, everywhere, one_by_one, gone, a=0, b=0, c=0)) == ([3, 4, 2], [0, 0, 0])


def test_devices_that_the_class_does_not_take_do_not_count() -> None:
    own = make_device_class("gpu", 'device.attributes["gpu.example.com"].model == "H20"', extended_resource=_CARD)
    cards = make_slice("a", make_device("x", model="H20"), make_device("y", model="A100"))
    assert counted(cluster(own, _OTHER, cards, a=0)) == ([1], [0])


def test_devices_do_not_count_for_a_pod_that_does_not_ask_for_the_resource() -> None:
    nodes = cluster(_CLASS, _OTHER, make_slice("a", *make_cards(4)), a=0)
    assert counted(nodes, make_pod().gpu(1, "example.com/nic")) == ([0], [0])
    assert counted(nodes, make_pod().requests(cpu="1")) == ([0], [0])


@pytest.mark.parametrize(
    ("objects", "known"),
    [
        pytest.param([_CLASS, make_slice("a", *make_cards(4)), _OTHER], True, id="all"),
        pytest.param([_CLASS, _OTHER], False, id="no slices"),
        pytest.param(
            [
                _NOT_KNOWN,
                make_slice("a", *make_cards(1)),
                _OTHER,
            ],
            False,
            id="a selector that is not known",
        ),
    ],
)
def test_devices_count_once_classes_slices_and_claims_are_known(objects: list[Object], known: bool) -> None:
    nodes = cluster(*objects, a=0)
    assert are_totals_known(pod_info(_POD), _CARD, nodes, never) is known
    assert counted(nodes) == (([4], [0]) if known else ([0], [0]))


def test_devices_do_not_count_where_the_claims_are_not_known() -> None:
    nodes = cluster(_CLASS, _OTHER, make_slice("a", *make_cards(4)), a=0)
    without = replace(nodes, devices=replace(nodes.devices, claims=None, answers={}))
    assert not are_totals_known(pod_info(_POD), _CARD, without, never)
    assert counted(without) == ([0], [0])


def test_devices_are_not_counted_where_their_selectors_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.placement.dra.device_selection._MOST_STEPS", 0)
    nodes = cluster(_CLASS, _OTHER, make_slice("a", *make_cards(4)), a=0)
    assert not are_totals_known(pod_info(_POD), _CARD, nodes, never)


@pytest.mark.parametrize(
    ("pod", "capacity", "expected"),
    [
        pytest.param(_POD, 0, True, id="a node lacks it"),
        pytest.param(_POD, 1, False, id="every node offers it"),
        pytest.param(make_pod().gpu(1, "example.com/nic"), 0, False, id="another resource is asked for"),
    ],
)
def test_devices_may_count_where_a_node_lacks_what_the_pod_asks_for(
    pod: PodBuilder, capacity: int, expected: bool
) -> None:
    nodes = cluster(_CLASS, a=capacity, b=2)
    assert counts_devices(pod_info(pod), _CARD, nodes) is expected
    assert not counts_devices(pod_info(_POD), _CARD, cluster(a=capacity, b=2))


def test_resource_that_every_node_offers_or_nothing_backs_is_known() -> None:
    assert are_totals_known(pod_info(_POD), _CARD, cluster(_CLASS, a=1), never)
    assert are_totals_known(pod_info(_POD), _CARD, cluster(a=0), never)
    assert not are_totals_known(pod_info(_POD), _CARD, cluster(_CLASS, a=0), never)


def test_devices_are_counted_anew_when_the_nodes_that_reach_them_change() -> None:
    on = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}]}
    nodes = cluster(_CLASS, _OTHER, make_slice("", *make_cards(3), pool="net", nodeSelector=on), a=0, b=0)
    before = counted(nodes)
    labelled = updated(nodes, [node("b", labels={"pool": "x"}, capacity={})], nodes.generation + 1)
    assert (before, counted(labelled), counted(nodes)) == (([0, 0], [0, 0]), ([0, 3], [0, 0]), ([0, 0], [0, 0]))


def test_answers_that_are_kept_are_bounded() -> None:
    nodes = cluster(_CLASS, _OTHER, make_slice("a", *make_cards(4)), a=0)
    answers: dict[Any, Any] = nodes.devices.answers
    answers.update({("another", number): None for number in range(_MOST_ANSWERS)})
    assert counted(nodes) == ([4], [0])
    assert len(answers) == 1


def test_no_device_is_counted_once_the_time_is_over() -> None:
    nodes = cluster(_CLASS, _OTHER, make_slice("a", *make_cards(4)), a=0)
    with pytest.raises(DeadlineNearError):
        are_totals_known(pod_info(_POD), _CARD, nodes, lambda: True)

"""Devices that consume counters of their pool: as many as the counters are enough for."""

from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import (
    DRIVER,
    allocated,
    claiming,
    exactly,
    make_cards,
    make_counters,
    make_device,
    make_device_class,
    make_part,
    make_resource_claim,
    make_slice,
)
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.dra.resource_claim import DeviceRequest
from webhook.documents.documents import Document
from webhook.kube.deadline import never
from webhook.placement.dra.device_allocator import IndexedRequest
from webhook.placement.dra.pools import NodePools
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]
_ELSEWHERE = allocated(make_resource_claim("elsewhere", exactly()), "z", "card-0")


def verdict(claim: Object, *objects: Object) -> str:
    """The verdict on a pod with the claim on one node."""
    pod = make_pod().spec(resourceClaims=claiming(claim["metadata"]["name"])).obj()
    everything = (make_node_object("a"), make_device_class(), claim, _ELSEWHERE, *objects)
    return Scheduler().place(pod, snapshot_from_documents(Document("c", each) for each in everything)).verdict


def part(name: str, amount: int, **fields: Any) -> Object:
    return make_part(name, {"memory": str(amount)}, **fields)


@pytest.mark.parametrize(("count", "expected"), [(1, "Feasible"), (2, "Feasible"), (3, "Infeasible")])
def test_devices_are_found_while_their_counters_are_enough(count: int, expected: str) -> None:
    parts = make_slice("a", part("x", 3), part("y", 3), part("z", 1), count=2)
    claim = make_resource_claim("own", exactly("parts", count))
    assert verdict(claim, parts, make_counters("a", {"memory": "4"}, count=2)) == expected


@pytest.mark.parametrize(
    ("taken", "count", "expected"), [("z", 1, "Feasible"), ("z", 2, "Waiting"), ("x", 1, "Feasible")]
)
def test_counters_that_devices_of_claims_consume_are_gone(taken: str, count: int, expected: str) -> None:
    parts = make_slice("a", part("x", 3), part("y", 3), part("z", 1), count=2)
    other = allocated(make_resource_claim("other", exactly()), "a", taken)
    claim = make_resource_claim("own", exactly("parts", count))
    assert verdict(claim, other, parts, make_counters("a", {"memory": "4"}, count=2)) == expected


@pytest.mark.parametrize(("is_taken", "expected"), [(False, "Feasible"), (True, "Waiting")])
def test_counters_that_a_device_with_shares_of_claims_consumes_are_gone(is_taken: bool, expected: str) -> None:
    shared = part("x", 3, model="shared") | {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "4"}}}
    parts = make_slice("a", shared, part("y", 3, model="whole"), count=2)
    share = {"shareID": "s", "consumedCapacity": {"memory": "1"}}
    other = [allocated(make_resource_claim("other", exactly()), "a", "x", **share)] if is_taken else []
    claim = make_resource_claim("own", exactly("parts", 1, f'device.attributes["{DRIVER}"].model == "whole"'))
    assert verdict(claim, *other, parts, make_counters("a", {"memory": "4"}, count=2)) == expected


@pytest.mark.parametrize(
    ("effect", "expected"), [("NoSchedule", "Waiting"), ("NoExecute", "Waiting"), ("None", "Feasible")]
)
def test_device_with_a_taint_is_not_given_to_new_claims(effect: str, expected: str) -> None:
    cards = make_slice("a", make_device("card", taints=[{"key": "ill", "effect": effect}]))
    assert verdict(make_resource_claim("own", exactly()), cards) == expected


@pytest.mark.parametrize(
    ("is_admin", "is_taken", "is_tainted", "tolerates", "expected"),
    [
        pytest.param(False, False, False, False, "Feasible", id="a free device"),
        pytest.param(False, True, False, False, "Waiting", id="one that another claim has"),
        pytest.param(False, True, True, True, "Waiting", id="also if its taint is tolerated"),
        pytest.param(False, False, True, True, "Feasible", id="a taint that is tolerated"),
        pytest.param(True, False, False, False, "Feasible", id="a free device for an administrator"),
        pytest.param(True, True, False, False, "Feasible", id="one that another claim has, for an administrator"),
        pytest.param(True, False, True, False, "Waiting", id="one with a taint, for an administrator"),
        pytest.param(True, True, True, False, "Waiting", id="one with a taint that another claim has"),
        pytest.param(True, True, True, True, "Feasible", id="whose taint the administrator tolerates"),
    ],
)
def test_access_of_an_administrator_shares_devices_but_tolerates_no_taint_by_itself(
    is_admin: bool, is_taken: bool, is_tainted: bool, tolerates: bool, expected: str
) -> None:
    device = make_device("card", taints=[{"key": "ill", "effect": "NoSchedule"}] if is_tainted else [])
    fields: Object = {"adminAccess": True} if is_admin else {}
    fields |= {"tolerations": [{"key": "ill", "operator": "Exists"}]} if tolerates else {}
    other = [allocated(make_resource_claim("other", exactly()), "a", "card")] if is_taken else []
    claim = make_resource_claim("own", exactly("cards", 1, **fields))
    assert verdict(claim, make_slice("a", device), *other) == expected


def test_devices_of_a_slice_with_counters_are_not_offered() -> None:
    own = make_resource_claim("own", exactly("cards", 1))
    counters = [{"name": "card", "counters": {"memory": {"value": "1"}}}]
    assert verdict(own, make_slice("a", *make_cards(2))) == "Feasible"
    assert verdict(own, make_slice("a", *make_cards(2), sharedCounters=counters)) == "Infeasible"


@pytest.mark.parametrize(("count", "expected"), [(2, "Feasible"), (3, "Infeasible")])
def test_slices_of_an_older_generation_are_outdated(count: int, expected: str) -> None:
    """A driver replaces its slices one after the other, so those of both generations are there for a while."""
    parts = make_slice("a", part("x", 3), part("y", 3), part("z", 1), generation=2, count=2)
    counters = make_counters("a", {"memory": "4"}, generation=2, count=2)
    older = make_counters("a", {"memory": "9"}, generation=1, count=2) | {"metadata": {"name": "older"}}
    claim = make_resource_claim("own", exactly("parts", count))
    assert verdict(claim, parts, counters, older) == expected


@pytest.mark.parametrize("newest", ["before-middle", "next-to-middle"])
def test_only_the_newest_generation_of_a_pool_offers_devices(newest: str) -> None:
    """The slices are read in the order of their names, which says nothing about their generations."""
    old = make_slice("a", *make_cards(1), name="middle", generation=1)
    new = make_slice("a", *make_cards(2), name=newest, generation=2)
    assert verdict(make_resource_claim("own", exactly("cards", 2)), old, new) == "Feasible"


def test_an_older_generation_leaves_open_nothing_on_a_node_that_the_newest_does_not_name() -> None:
    """kube-scheduler skips such a pool, also for a request for all devices."""
    old = make_slice("a", *make_cards(1), name="old", pool="net", generation=1, count=2)
    new = make_slice("other", *make_cards(1), name="new", pool="net", generation=2, count=2)
    own = make_slice("a", *make_cards(1))
    claim = make_resource_claim("own", exactly("cards", 0))

    assert verdict(claim, own, old, new) == "Feasible"


@pytest.mark.parametrize("first", ["a-first", "z-last"])
def test_devices_without_binding_conditions_come_first(first: str) -> None:
    """Whatever the names of their pools, as in kube-scheduler."""
    conditional = make_device("slow", model="slow", bindingConditions=["ready"], bindingFailureConditions=["failed"])
    slices = (make_slice("n", conditional, pool=first), make_slice("n", make_device("fast", model="fast"), pool="m"))
    found = snapshot_from_documents(Document("c", each) for each in (make_node_object("n"), *slices))
    assert found.devices.slices is not None
    request = IndexedRequest(DeviceRequest("r", "gpu"), 0, ())

    devices = NodePools(found.devices.slices, found, [request], [f"{DRIVER}/model"], never).of(0)

    assert [each.values for each in devices.candidates] == [(("string", "fast"),), (("string", "slow"),)]

"""What tenants can create takes bounded memory: objects beyond it are left out, and are not missing."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from tests.cluster.cache.replica_sets import MANY, cache_of, replica_set
from tests.support.objects.devices import make_resource_claim
from tests.support.objects.storage import make_pvc
from tests.support.work import calls_of
from webhook.cluster.cache.namespace_budget import memory_bytes
from webhook.cluster.cache.object_key import Key
from webhook.cluster.cache.optional_objects import MOST_OBJECT_BYTES, OptionalObjects
from webhook.cluster.left_out import LeftOutTracker
from webhook.cluster.storage.volumes import PersistentVolumeClaim
from webhook.documents.field import InvalidInput

_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}


def test_devices_of_a_claim_that_is_left_out_stay_allocated() -> None:
    claim = make_resource_claim("claim", *[{**_REQUEST, "name": each} for each in MANY[:500]])
    result = {"request": "0", "driver": "d", "pool": "p", "device": "gpu-0"}
    claim["status"] = {"allocation": {"devices": {"results": [result]}}}
    snapshot = cache_of(claim, kind="ResourceClaim").snapshot()
    assert snapshot.left_out.count == 1
    assert snapshot.devices.allocated == {("d", "p"): {"gpu-0"}}


def test_volume_of_a_claim_that_is_left_out_stays_known() -> None:
    claim = make_pvc("bound", volume="v")
    claim["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "In", "values": MANY}]}
    snapshot = cache_of(claim, kind="PersistentVolumeClaim").snapshot()
    assert snapshot.left_out.count == 1
    assert [each.volume_name for each in (snapshot.storage.claims or {}).values()] == ["v"]


def test_change_of_one_namespace_rebuilds_the_workloads_of_that_namespace_alone() -> None:
    many = [replica_set(str(number), f"n{number}") for number in range(200)]
    few, cache = cache_of(*many[:2]), cache_of(*many)
    calls = []
    for each in (few, cache):
        before = each.snapshot().workloads
        each.apply("ReplicaSet", "ADDED", replica_set("new", "n0"))
        calls.append(calls_of(each.snapshot))
        after = each.snapshot().workloads
        assert len(after.by_namespace["n0"].controllers) == 2
        assert after.by_namespace["n1"] is before.by_namespace["n1"]
    assert calls[0] == calls[1]


def test_workloads_of_a_kind_that_becomes_unknown_go_and_others_stay() -> None:
    cache = cache_of(replica_set("web"))
    cache.replace("StatefulSet", [replica_set("db")])
    cache.snapshot()
    cache.mark_unknown("StatefulSet")
    assert [each.name for each in cache.snapshot().workloads.by_namespace["x"].controllers] == ["web"]


def test_claim_that_is_left_out_for_memory_keeps_its_volume() -> None:
    left_out = LeftOutTracker()
    objects = OptionalObjects(left_out, budget_bytes=4_000)
    objects.set_known("PersistentVolumeClaim", known=True)
    for number in range(8):
        facts = PersistentVolumeClaim.of(make_pvc(f"c{number}", volume=f"v{number}"))
        objects.put("PersistentVolumeClaim", Key("default", f"c{number}"), facts)

    claims = objects.changed_fields()["storage"].claims

    assert 0 < left_out.current().count < 8
    assert {each.volume_name for each in claims.values()} == {f"v{number}" for number in range(8)}


def test_object_that_was_left_out_and_is_gone_leaves_nothing() -> None:
    left_out = LeftOutTracker()
    objects, key = OptionalObjects(left_out), Key("default", "c")
    objects.set_known("PersistentVolumeClaim", known=True)
    objects.leave_out("PersistentVolumeClaim", key, PersistentVolumeClaim.of(make_pvc("c", volume="v")))
    assert [*objects.changed_fields()["storage"].claims] == [("default", "c")]

    objects.put("PersistentVolumeClaim", key, None)

    assert objects.has_changed
    assert dict(objects.changed_fields()["storage"].claims) == {}
    assert [*objects.keys("PersistentVolumeClaim")] == []
    assert not left_out.current().names


def test_object_of_the_largest_size_is_kept() -> None:
    claim = PersistentVolumeClaim.of(make_pvc("c"))
    room = MOST_OBJECT_BYTES - memory_bytes(claim, MOST_OBJECT_BYTES)
    for more, is_kept in ((0, True), (1, False)):
        left_out = LeftOutTracker()
        objects, large = OptionalObjects(left_out), replace(claim, volume_name="v" * (room + more))
        assert memory_bytes(large, MOST_OBJECT_BYTES) == MOST_OBJECT_BYTES + more
        with nullcontext() if is_kept else pytest.raises(InvalidInput):
            objects.put("PersistentVolumeClaim", Key("default", "c"), large)
        assert left_out.current().has("PersistentVolumeClaim", "default", "c") is not is_kept


@pytest.mark.parametrize("is_smaller", [True, False], ids=["it gets small", "it is deleted"])
def test_part_of_an_object_that_was_left_out_goes_when_the_object_is_known_again(*, is_smaller: bool) -> None:
    """The claim moves to another volume while it is too large, then it is known as a whole, or gone."""
    large = {"matchExpressions": [{"key": "a", "operator": "In", "values": MANY}]}
    claims = [make_pvc("data", volume=name, namespace="x") for name in ("v1", "v2", "v3")]
    for each in claims[:2]:
        each["spec"]["selector"] = large
    cache = cache_of(kind="PersistentVolumeClaim")

    seen = []
    for each in claims if is_smaller else claims[:2]:
        cache.apply("PersistentVolumeClaim", "MODIFIED", each)
        seen.append([of.volume_name for of in (cache.snapshot().storage.claims or {}).values()])
    if not is_smaller:
        cache.apply("PersistentVolumeClaim", "DELETED", claims[1])
        seen.append([of.volume_name for of in (cache.snapshot().storage.claims or {}).values()])

    assert seen == [["v1"], ["v2"], ["v3"] if is_smaller else []]
    assert cache.snapshot().left_out.count == 0

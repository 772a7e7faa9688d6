"""What tenants can create takes bounded memory: objects beyond it are left out, and are not missing."""

import sys
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object
from tests.support.objects.devices import make_resource_claim
from tests.support.objects.storage import make_pvc
from tests.support.work import calls_of
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.namespace_budget import memory_bytes
from webhook.cluster.cache.object_key import Key
from webhook.cluster.cache.optional_objects import MOST_OBJECT_BYTES, OptionalObjects
from webhook.cluster.left_out import LeftOut, LeftOutTracker
from webhook.cluster.objects.workloads import Owner
from webhook.cluster.optional_kinds import Facts, read_optional

Object = dict[str, Any]

_MANY = [str(number) for number in range(2_000)]
_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}


def replica_set(name: str, namespace: str = "x", values: int = 1) -> Object:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": _MANY[:values]}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}


def facts(name: str, namespace: str = "x", values: int = 1) -> Facts:
    return read_optional("ReplicaSet", replica_set(name, namespace, values))


def cache_of(*objects: Object, kind: str = "ReplicaSet") -> ClusterCache:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a")])
    cache.replace(kind, objects)
    return cache


def test_object_that_is_too_large_is_left_out_and_reported() -> None:
    cache = cache_of()
    problem = cache.apply("ReplicaSet", "ADDED", replica_set("large", values=2_000))
    assert problem is not None
    assert str(MOST_OBJECT_BYTES) in problem.message
    snapshot = cache.snapshot()
    assert snapshot.left_out.has("ReplicaSet", "x", "large")
    assert snapshot.left_out.count == 1
    assert snapshot.workloads.lacks("x", Owner("apps/v1", "ReplicaSet", "large"))


@pytest.mark.parametrize("event", ["MODIFIED", "DELETED"])
def test_object_that_becomes_smaller_or_goes_is_not_left_out_any_more(event: str) -> None:
    cache = cache_of(replica_set("large", values=2_000))
    before = cache.snapshot()
    cache.apply("ReplicaSet", event, replica_set("large"))
    assert (before.left_out.count, cache.snapshot().left_out.count) == (1, 0)
    assert bool(cache.snapshot().workloads) is (event == "MODIFIED")
    assert not cache.invalid


def test_object_that_is_left_out_and_in_no_list_any_more_is_gone() -> None:
    cache = cache_of(replica_set("large", values=2_000), replica_set("small"))
    cache.replace("ReplicaSet", [replica_set("small")])
    assert cache.snapshot().left_out.count == 0
    assert not cache.invalid


def memory_of(value: Any) -> int:
    """What `value` takes in memory, shared parts once for each mention."""
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return sys.getsizeof(value) + sum(map(memory_of, parts))


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param("x" * 1000, id="a long text"),
        pytest.param(tuple(_MANY), id="many short texts"),
        pytest.param(dict(zip(_MANY, _MANY, strict=True)), id="many short labels"),
    ],
)
def test_a_large_object_counts_at_least_what_it_takes(stored: object) -> None:
    assert memory_of(stored) <= memory_bytes(stored, 10**9) <= 2 * memory_of(stored)


def test_malformed_service_is_left_out() -> None:
    cache = cache_of({"metadata": {"name": "s", "namespace": "x"}, "spec": {"selector": {"app": 1}}}, kind="Service")
    assert cache.snapshot().left_out.names == {("Service", "x"): {"s"}}


def test_object_of_the_cluster_has_no_limit_since_tenants_cannot_create_it() -> None:
    content = {"metadata": {"name": "v"}, "spec": {"accessModes": _MANY}}
    assert cache_of(content, kind="PersistentVolume").snapshot().left_out.count == 0


def kept(objects: OptionalObjects, tracker: LeftOutTracker) -> tuple[set[str], LeftOut]:
    """Return the keys of the objects that are known, and those that are left out."""
    left_out = tracker.current()
    return {str(key) for key in objects.keys("ReplicaSet") if not left_out.has("ReplicaSet", *key)}, left_out


def test_beyond_the_budget_the_largest_namespace_loses_its_latest_objects() -> None:
    tracker = LeftOutTracker()
    objects = OptionalObjects(tracker, budget_bytes=20_000)
    objects.put("ReplicaSet", Key("quiet", "web"), facts("web", "quiet"))
    for number in range(20):
        objects.put("ReplicaSet", Key("greedy", str(number)), facts(str(number), "greedy", values=10))
    known, left_out = kept(objects, tracker)
    assert {"quiet/web", "greedy/0"} <= known
    assert len(known) + left_out.count == 21
    assert left_out.names == {("ReplicaSet", "greedy"): {str(each) for each in range(20 - left_out.count, 20)}}
    objects.put("ReplicaSet", Key("quiet", "new"), facts("new", "quiet"))
    assert "quiet/new" in kept(objects, tracker)[0]


def test_deleted_objects_give_their_bytes_back() -> None:
    tracker = LeftOutTracker()
    objects = OptionalObjects(tracker, budget_bytes=20_000)
    for number in range(100):
        objects.put("ReplicaSet", Key("x", str(number)), facts(str(number), values=10))
        objects.put("ReplicaSet", Key("x", str(number)), None)
    assert kept(objects, tracker)[1].count == 0


def test_devices_of_a_claim_that_is_left_out_stay_allocated() -> None:
    claim = make_resource_claim("claim", *[{**_REQUEST, "name": each} for each in _MANY[:500]])
    result = {"request": "0", "driver": "d", "pool": "p", "device": "gpu-0"}
    claim["status"] = {"allocation": {"devices": {"results": [result]}}}
    snapshot = cache_of(claim, kind="ResourceClaim").snapshot()
    assert snapshot.left_out.count == 1
    assert snapshot.devices.allocated == {("d", "p"): {"gpu-0"}}


def test_volume_of_a_claim_that_is_left_out_stays_known() -> None:
    claim = make_pvc("bound", volume="v")
    claim["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "In", "values": _MANY}]}
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

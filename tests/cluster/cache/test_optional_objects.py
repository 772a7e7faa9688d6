"""What tenants can create takes bounded memory: objects beyond it are left out, and are not missing."""

from tests.cluster.cache.replica_sets import MANY, cache_of, replica_set
from tests.support.objects.devices import make_resource_claim
from tests.support.objects.storage import make_pvc
from tests.support.work import calls_of

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

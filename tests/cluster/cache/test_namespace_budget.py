"""The memory that namespaces share for their objects."""

import sys
from typing import Any

import pytest

from tests.cluster.cache.replica_sets import MANY, cache_of, replica_set
from webhook.cluster.cache.namespace_budget import memory_bytes
from webhook.cluster.cache.object_key import Key
from webhook.cluster.cache.optional_objects import OptionalObjects
from webhook.cluster.left_out import LeftOut, LeftOutTracker
from webhook.cluster.optional_kinds import Facts, read_optional


def facts(name: str, namespace: str = "x", values: int = 1) -> Facts:
    return read_optional("ReplicaSet", replica_set(name, namespace, values))


def memory_of(value: Any) -> int:
    """What `value` takes in memory, shared parts once for each mention."""
    parts = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return sys.getsizeof(value) + sum(map(memory_of, parts))


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param("x" * 1000, id="a long text"),
        pytest.param(tuple(MANY), id="many short texts"),
        pytest.param(dict(zip(MANY, MANY, strict=True)), id="many short labels"),
    ],
)
def test_a_large_object_counts_at_least_what_it_takes(stored: object) -> None:
    assert memory_of(stored) <= memory_bytes(stored, 10**9) <= 2 * memory_of(stored)


def test_object_of_the_cluster_has_no_limit_since_tenants_cannot_create_it() -> None:
    content = {"metadata": {"name": "v"}, "spec": {"accessModes": MANY}}
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

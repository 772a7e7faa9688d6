"""Caches of ReplicaSets of any size."""

from typing import Any

from tests.support.objects.builders import make_node_object
from webhook.cluster.cache.cluster_cache import ClusterCache

Object = dict[str, Any]
MANY = [str(number) for number in range(2_000)]


def replica_set(name: str, namespace: str = "x", values: int = 1) -> Object:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": MANY[:values]}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}


def cache_of(*objects: Object, kind: str = "ReplicaSet") -> ClusterCache:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a")])
    cache.replace(kind, objects)
    return cache

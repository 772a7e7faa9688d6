"""Caches of a cluster, filled from lists."""

from typing import Any

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.optional_objects import optional_objects
from webhook.cluster.cache.cluster_cache import ClusterCache

Object = dict[str, Any]


def pod(name: str = "p", node_name: str = "a", cpu: str = "1") -> Object:
    return make_pod(name).namespace("x").node_name(node_name).requests(cpu=cpu).obj()


def namespace(name: str, **annotations: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


def cache_of(*objects: Object) -> ClusterCache:
    cache = ClusterCache()
    for kind in ("Pod", "Node", "Namespace"):
        assert cache.replace(kind, [each for each in objects if each["kind"] == kind]) == []
    return cache


def whole_cache() -> ClusterCache:
    cache = cache_of(make_node_object("a"), namespace("x", a="1"), pod())
    for content in optional_objects("x"):
        cache.replace(content["kind"], [content])
    return cache

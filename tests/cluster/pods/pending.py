"""Pods that wait."""

from typing import Any

from tests.support.objects.builders import make_pod

Object = dict[str, Any]


def pending(name: str = "p", **status: Any) -> Object:
    return make_pod(name).namespace("x").requests(cpu="1").status(phase="Pending", **status).obj()


def with_fields(pod: Object, metadata: Object | None = None, spec: Object | None = None) -> Object:
    return {**pod, "metadata": {**pod["metadata"], **(metadata or {})}, "spec": {**pod["spec"], **(spec or {})}}

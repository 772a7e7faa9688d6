"""Nodes and schedulers for the tests of Volcano's and KAI's profiles."""

from typing import Any

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.views import made_anew
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


def sized_node(name: str, cpu: str = "4", gpus: int = 0, *, pods: int = 110, **facts: Any) -> Object:
    return make_node_object(name, capacity={"cpu": cpu, "memory": "16Gi", "pods": pods, GPU: gpus}, **facts)


def running(name: str, on: str, **requests: str) -> Object:
    return make_pod(name).node_name(on).requests(**requests).status(phase="Running").obj()


def volcano(pod: PodBuilder, *objects: Object) -> Placement:
    return Scheduler(VOLCANO, suggestions=1).place(pod.obj(), made_anew(objects))

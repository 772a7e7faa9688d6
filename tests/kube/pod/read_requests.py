"""Read the requests of a pod."""

from typing import Any

from tests.support.objects.builders import PodBuilder
from webhook.kube.pod.resources import (
    PodResources,
    read_pod_resources,
)
from webhook.kube.reader import Reader


def resources_of(pod: PodBuilder, *, running: bool = False) -> PodResources:
    return read(pod.obj(), running=running)


def read(pod: dict[str, Any], *, running: bool = False) -> PodResources:
    reader = Reader(pod)
    resources = read_pod_resources(reader, running=running)
    reader.finish()
    return resources

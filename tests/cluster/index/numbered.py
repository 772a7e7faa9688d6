"""Classes with their numbers."""

from tests.support.objects.builders import PodBuilder
from webhook.cluster.index.pod_classes import PodClasses
from webhook.cluster.node_info import RunningPod


def numbered(classes: PodClasses, *pods: PodBuilder) -> list[int]:
    return [classes.number(RunningPod.of(pod.obj())) for pod in pods]

"""The QoS class of a pod, and the amounts of cpu and memory that it depends on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from webhook.kube.pod.amounts import CPU, MEMORY, read_milli, sum_of
from webhook.kube.pod.container_totals import Container, aggregate
from webhook.kube.pod.resources import read_pod_level_requests
from webhook.kube.reader import Reader

QosClass = Literal["Guaranteed", "Burstable", "BestEffort"]

COMPUTE_RESOURCES = (CPU, MEMORY)


@dataclass(frozen=True, slots=True)
class ComputeResources:
    """The requests and limits of cpu and memory, in thousandths, of one container, or of the pod as a whole.

    `place` is the path of the `resources`, such as `("spec", "containers", 0, "resources")`. `container` is the name of
    the container, or None for the pod. A missing request defaults to the limit, as in the API server. Amounts of zero
    are left out.
    """

    place: tuple[str | int, ...]
    container: str | None
    requests: dict[str, int]
    limits: dict[str, int]


def qos_class(pod: Mapping[str, Any]) -> QosClass | None:
    """Return the QoS class of `pod` by the rules of Kubernetes 1.37, or None if its resources are malformed.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/helper/qos/qos.go, ComputePodQOS
    """
    reader = Reader(pod)
    parts = compute_resources(reader)
    if parts and parts[0].container is None and not reader.errors:
        parts = _as_stored(reader, parts[0])
    if reader.errors:
        return None
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    for each in parts:
        requests, limits = sum_of(requests, each.requests), sum_of(limits, each.limits)
    if not requests and not limits:
        return "BestEffort"
    has_limits = all(len(each.limits) == len(COMPUTE_RESOURCES) for each in parts)
    return "Guaranteed" if has_limits and requests == limits else "Burstable"


def compute_resources(pod: Reader) -> list[ComputeResources]:
    """Return the resources that the QoS class depends on: those of the pod if it has any, or of its containers."""
    spec = pod.object("spec")
    if spec.raw.get("resources") is None:
        return [*container_resources(spec, "initContainers"), *container_resources(spec, "containers")]
    limits = _compute(read_milli(spec.object("resources"), "limits"))
    return [ComputeResources(("spec", "resources"), None, _compute(read_pod_level_requests(spec)), limits)]


def _as_stored(pod: Reader, whole: ComputeResources) -> list[ComputeResources]:
    """Return `whole`, the pod-level resources, with the limits that the API server adds when it stores the pod.

    If every container has a limit, a missing pod-level limit becomes the sum of these limits, but at least the request.
    Empty pod-level resources count as absent. Both rules differ before 1.37.

    Source: k8s.io/kubernetes/pkg/api/pod/util.go, defaultPodLevelLimits
    """
    spec = pod.object("spec")
    resources = spec.object("resources").raw
    if not resources.get("requests") and not resources.get("limits"):
        return compute_resources(Reader({"spec": {**spec.raw, "resources": None}}, pod.errors))
    containers, init_containers = (
        [_limits_of(each) for each in spec.objects(field)] for field in ("containers", "initContainers")
    )
    together, each_has = aggregate(containers, init_containers, {}), (*containers, *init_containers)
    added = {
        name: max(request, together[name])
        for name, request in whole.requests.items()
        if name not in whole.limits and all(name in each.requests for each in each_has)
    }
    return [replace(whole, limits=whole.limits | added)]


def _limits_of(container: Reader) -> Container:
    limits = read_milli(container.object("resources"), "limits")
    return Container("", limits, container.raw.get("restartPolicy") == "Always")


def container_resources(spec: Reader, field: str) -> Iterator[ComputeResources]:
    """Yield the resources of the containers in the list `field` of a pod's `spec`."""
    for index, container in enumerate(spec.objects(field)):
        resources = container.object("resources")
        limits = read_milli(resources, "limits")
        requests = limits | read_milli(resources, "requests")
        yield ComputeResources(
            ("spec", field, index, "resources"), container.text("name"), _compute(requests), _compute(limits)
        )


def _compute(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amounts[name] for name in COMPUTE_RESOURCES if amounts.get(name, 0) > 0}

"""What a pod requests of its node, as kube-scheduler counts it.

Amounts are integers: thousandths of a core for `cpu`, bytes or units for all else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.kube.amounts import Amounts, peak_of, read_milli, sum_of, whole_units
from webhook.kube.reader import Reader
from webhook.kube.resource_names import CPU, HUGE_PAGES_PREFIX, MEMORY, is_extended_resource

# What a container without a request counts as when nodes are scored, so that such pods spread as well;
# from k8s.io/kubernetes/pkg/scheduler/util/pod_resources.go.
DEFAULT_MILLI_CPU_REQUEST = 100
DEFAULT_MEMORY_REQUEST_BYTES = 200 * 1024 * 1024

_DEFAULTS_MILLI = {CPU: DEFAULT_MILLI_CPU_REQUEST, MEMORY: DEFAULT_MEMORY_REQUEST_BYTES * 1000}
_NONE: dict[str, int] = {}


class ContainerRequests(NamedTuple):
    """What one container of a pending pod requests, in thousandths.

    `place` is the container's index, init containers first. `is_short_lived`: it is an init container that ends.
    """

    place: int
    is_short_lived: bool
    amounts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PodResources:
    """The requests of one pod, by the three ways in which kube-scheduler counts them.

    `requests` must be free on the node. `non_zero_requested` is what a running pod adds to the scores of its node,
    `scoring_requests` what NodeResourcesFit adds for a pending one: in both, a container without a request of cpu or
    memory counts as requesting a default. They differ only for pods with pod-level resources, which `scoring_requests`
    leaves out.
    `by_container` are the requests of the containers of a pending pod that request extended resources.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, PodInfo.CalculateResource, and
    framework/plugins/noderesources/resource_allocation.go, calculatePodResourceRequest
    """

    requests: Amounts
    non_zero_requested: Amounts
    scoring_requests: Amounts
    by_container: tuple[ContainerRequests, ...] = ()


def pod_requests(pod: Mapping[str, Any]) -> dict[str, int]:
    """What `pod` requests in all: its containers, its init containers at their peak, sidecars, and the overhead.

    A missing request is the limit, where there is one, as the API server defaults it. Pod-level requests replace the
    sum of the containers' ones.

    Raises:
        InvalidInput: a quantity is malformed or negative, or a field has the wrong type; holds every error.

    Source: k8s.io/component-helpers/resource/helpers.go, PodRequests; k8s.io/kubernetes/pkg/apis/core/v1/defaults.go
    """
    reader = Reader()
    resources = read_pod_resources(reader, pod)
    reader.finish()
    return dict(resources.requests)


def extended_resource_names(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """The extended resources (devices such as `nvidia.com/gpu`) that `pod` requests, sorted.

    Raises:
        InvalidInput: a quantity is malformed or negative, or a field has the wrong type; holds every error.
    """
    return extended_names(pod_requests(pod))


def extended_names(requests: Amounts) -> tuple[str, ...]:
    """Return the extended resources among `requests`, sorted."""
    return tuple(sorted(name for name, amount in requests.items() if amount and is_extended_resource(name)))


def read_pod_resources(reader: Reader, pod: Mapping[str, Any], *, running: bool = False) -> PodResources:
    """The resources of `pod`; what is malformed is noted with `reader`.

    `running`: what the kubelet reports of containers being resized in place counts where it is more than asked for.
    """
    spec = reader.object(pod.get("spec"), "spec")
    containers = [
        _Container.of(reader, container, path)
        for path, container in reader.objects(spec.get("containers"), "spec.containers")
    ]
    init_containers = [
        _Container.of(reader, container, path)
        for path, container in reader.objects(spec.get("initContainers"), "spec.initContainers")
    ]
    overhead = read_milli(reader, spec.get("overhead"), "spec.overhead")
    pod_level = _pod_level_requests(reader, spec, containers, init_containers)
    if running:
        resized = _Resized(reader, reader.object(pod.get("status"), "status"))
        containers = [resized.container(each) for each in containers]
        init_containers = [resized.container(each) if each.is_sidecar else each for each in init_containers]
        pod_level = resized.pod(pod_level)

    requests = sum_of(_aggregate(containers, init_containers, _NONE) | pod_level, overhead)
    defaults = _DEFAULTS_MILLI
    if pod_level:
        defaults = {name: amount for name, amount in _DEFAULTS_MILLI.items() if name not in requests}
    counted = sum_of(_aggregate(containers, init_containers, defaults) | pod_level, overhead)
    scored = sum_of(_aggregate(containers, init_containers, _DEFAULTS_MILLI), overhead) if pod_level else counted
    by_container: tuple[ContainerRequests, ...] = ()
    if not running and "/" in "".join(requests):
        by_container = _by_container(init_containers, containers)
    whole = whole_units(counted)
    whole_scored = whole if scored is counted else whole_units(scored)
    return PodResources(whole_units(requests), whole, whole_scored, by_container)


def _by_container(init_containers: list["_Container"], containers: list["_Container"]) -> tuple[ContainerRequests, ...]:
    """The requests of the containers that request an extended resource, which a DeviceClass may back."""
    return tuple(
        [
            ContainerRequests(
                place, place < len(init_containers) and not container.is_sidecar, tuple(container.requests.items())
            )
            for place, container in enumerate([*init_containers, *containers])
            if "/" in "".join(container.requests)
        ]
    )


class _Container(NamedTuple):
    """What one container requests, a missing request defaulted to the limit."""

    name: str
    requests: dict[str, int]
    is_sidecar: bool

    @classmethod
    def of(cls, reader: Reader, container: Mapping[str, Any], path: str) -> "_Container":
        requests = _NONE
        if container.get("resources") is not None:
            resources = reader.object(container.get("resources"), f"{path}.resources")
            limits = read_milli(reader, resources.get("limits"), f"{path}.resources.limits")
            requests = limits | read_milli(reader, resources.get("requests"), f"{path}.resources.requests")
        is_sidecar = container.get("restartPolicy") == "Always"
        return cls(reader.text(container.get("name"), f"{path}.name"), requests, is_sidecar)


class _Resized:
    """What the status of a running pod says about its resources.

    Source: k8s.io/component-helpers/resource/helpers.go, determineEffectiveRequests
    """

    def __init__(self, reader: Reader, status: Mapping[str, Any]) -> None:
        self._reader = reader
        self._status = status
        self._containers = {
            reader.text(container.get("name"), f"{path}.name"): (path, container)
            for field in ("containerStatuses", "initContainerStatuses")
            for path, container in reader.objects(status.get(field), f"status.{field}")
        }
        conditions = reader.objects(status.get("conditions"), "status.conditions")
        pending = [each.get("reason") for _, each in conditions if each.get("type") == "PodResizePending"]
        self._infeasible = pending[:1] == ["Infeasible"]

    def container(self, container: _Container) -> _Container:
        """`container` with what it has beside what its spec asks for."""
        path, status = self._containers.get(container.name, ("", {}))
        return container._replace(requests=self._effective(container.requests, status, path))

    def pod(self, spec: dict[str, int]) -> dict[str, int]:
        """The pod-level requests, of the resources of which the spec asks for `spec`."""
        effective = self._effective(spec, self._status, "status")
        return {name: effective.get(name, 0) for name in spec}

    def _effective(self, spec: dict[str, int], status: Mapping[str, Any], path: str) -> dict[str, int]:
        if status.get("resources") is None:
            return spec
        resources = self._reader.object(status.get("resources"), f"{path}.resources")
        actuated = read_milli(self._reader, resources.get("requests"), f"{path}.resources.requests")
        allocated = read_milli(self._reader, status.get("allocatedResources"), f"{path}.allocatedResources")
        return peak_of(actuated if self._infeasible else peak_of(spec, actuated), allocated)


def _pod_level_requests(
    reader: Reader, spec: Mapping[str, Any], containers: list[_Container], init_containers: list[_Container]
) -> dict[str, int]:
    """The requests of `spec.resources`, which replace the sum of the containers' ones.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, defaultPodRequests
    """
    if spec.get("resources") is None:
        return _NONE
    resources = reader.object(spec.get("resources"), "spec.resources")
    limits = read_milli(reader, resources.get("limits"), "spec.resources.limits")
    requests = read_milli(reader, resources.get("requests"), "spec.resources.requests")
    if limits:
        summed = _aggregate(containers, init_containers, _NONE)
        requests = limits | {name: summed[name] for name in (CPU, MEMORY) if name in summed} | requests
    return {
        name: amount for name, amount in requests.items() if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)
    }


def _aggregate(
    containers: list[_Container], init_containers: list[_Container], defaults: Mapping[str, int]
) -> dict[str, int]:
    """What all containers need at once, or the init containers at their peak, whichever is more, by resource.

    An init container runs beside the sidecars declared before it; sidecars go on running beside the containers.
    `defaults` stand in for requests that a container has not.

    Source: k8s.io/component-helpers/resource/helpers.go, AggregateContainerRequests
    """
    total: dict[str, int] = {}
    for container in containers:
        for name, amount in {**defaults, **container.requests}.items():
            total[name] = total.get(name, 0) + amount
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in init_containers:
        for name, amount in {**defaults, **container.requests}.items():
            # What only the sidecars have need not be looked at: it is in the total.
            running = sidecars.get(name, 0) + amount
            peak[name] = max(peak.get(name, 0), running)
            if container.is_sidecar:
                total[name] = total.get(name, 0) + amount
                sidecars[name] = running
    return peak_of(total, peak)

"""The resource requests of a pod, as kube-scheduler counts them.

Amounts are integers: thousandths of a core for `cpu`, bytes or units for other resources.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from webhook.kube.pod.amounts import (
    CPU,
    HUGE_PAGES_PREFIX,
    MEMORY,
    Amounts,
    may_name_device_class,
    read_milli,
    sum_of,
    whole_units,
)
from webhook.kube.pod.card_names import is_share
from webhook.kube.pod.container_totals import Container, Resize, aggregate
from webhook.kube.quantity import milli_value
from webhook.kube.reader import Reader

# The default requests of a container when nodes are scored, so that pods without requests are spread, too;
# from k8s.io/kubernetes/pkg/scheduler/util/pod_resources.go.
DEFAULT_MILLI_CPU_REQUEST = 100
DEFAULT_MEMORY_REQUEST_BYTES = 200 * 1024 * 1024

_DEFAULTS_MILLI = {CPU: DEFAULT_MILLI_CPU_REQUEST, MEMORY: DEFAULT_MEMORY_REQUEST_BYTES * 1000}
_NONE: dict[str, int] = {}


class ContainerRequests(NamedTuple):
    """The requests of one container of a pending pod, in thousandths.

    `place` is the index of the container, init containers first. `is_short_lived` is true if it is an init container
    but not a sidecar.
    """

    place: int
    is_short_lived: bool
    amounts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PodResources:
    """The requests of one pod, as the three sums that kube-scheduler uses.

    `requests` must be free on the node. For scores, kube-scheduler adds `non_zero_requested` of each running pod to its
    node, and NodeResourcesFit adds `scoring_requests` of the pending pod. In both sums, a container without a request
    of cpu or memory counts with a default. They differ only for pods with pod-level resources, which `scoring_requests`
    leaves out. `by_container` are the requests of those containers of a pending pod that request extended resources.
    `of_containers` are the `requests` without pod-level resources, or None if the pod has no pod-level resources.
    `summed` are the resources that several containers request, so that the sum exceeds every single request.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, PodInfo.CalculateResource, and
    framework/plugins/noderesources/resource_allocation.go, calculatePodResourceRequest
    """

    requests: Amounts
    non_zero_requested: Amounts
    scoring_requests: Amounts
    by_container: tuple[ContainerRequests, ...] = ()
    of_containers: Amounts | None = None
    summed: tuple[str, ...] = ()


def requested_extended_resources(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the extended resources (devices such as `nvidia.com/gpu`) that the containers of `pod` request, sorted.

    Resources that name a DeviceClass are included. A share of a card also counts with an amount of 0, which requests
    the default share. Malformed amounts do not count.
    """
    spec = pod.get("spec")
    found: set[str] = set()
    for field in ("containers", "initContainers"):
        containers = spec.get(field) if isinstance(spec, dict) else None
        for container in containers if isinstance(containers, list) else ():
            resources = container.get("resources") if isinstance(container, dict) else None
            if isinstance(resources, dict):
                found.update(_extended(resources.get("limits"), resources.get("requests")))
    return tuple(sorted(found))


def _extended(limits: Any, requests: Any) -> Iterator[str]:
    """Yield the extended resources of one container. If it has a request and a limit, the request counts."""
    amounts: dict[Any, Any] = {}
    for each in (limits, requests):
        amounts |= each if isinstance(each, dict) else {}
    for name, amount in amounts.items():
        if not (isinstance(name, str) and may_name_device_class(name)):
            continue
        try:
            milli = milli_value(amount)
        except ValueError:
            continue
        if milli > 0 or (milli == 0 and is_share(name)):
            yield name


def read_pod_resources(pod: Reader, *, running: bool = False) -> PodResources:
    """Return the resources of `pod` from its containers, sidecars, the peak of its init containers, and its overhead.

    A missing request defaults to the limit, as in the API server. Pod-level requests replace those of the containers.
    With `running`, the resources that the kubelet reports for an in-place resize count if they exceed the requests.

    Source: k8s.io/component-helpers/resource/helpers.go, PodRequests; k8s.io/kubernetes/pkg/apis/core/v1/defaults.go
    """
    spec = pod.object("spec")
    containers = [Container.of(each) for each in spec.objects("containers")]
    init_containers = [Container.of(each) for each in spec.objects("initContainers")]
    overhead = read_milli(spec, "overhead")
    pod_level = _pod_level_requests(spec, containers, init_containers)
    has_pod_level = bool(pod_level)
    resized = None
    if running:
        resized = Resize.of(pod.object("status"))
        pod_level = resized.of_pod(pod_level) if resized and has_pod_level else pod_level

    total = partial(aggregate, containers, init_containers, resize=resized)
    of_containers = total(_NONE)
    requests = sum_of(of_containers | pod_level, overhead)
    defaults = _DEFAULTS_MILLI
    if has_pod_level:
        defaults = {name: amount for name, amount in _DEFAULTS_MILLI.items() if name not in requests}
    counted = sum_of(total(defaults) | pod_level, overhead)
    scored = sum_of(total(_DEFAULTS_MILLI), overhead) if pod_level else counted
    by_container: tuple[ContainerRequests, ...] = ()
    summed: tuple[str, ...] = ()
    if not running:
        by_container = _by_container(init_containers, containers) if "/" in "".join(requests) else ()
        own = [each.requests for each in (*init_containers, *containers)]
        totals = [each for each in of_containers.items() if each[0] not in pod_level]
        summed = tuple([name for name, amount in totals if amount not in [each.get(name) for each in own]])
    whole = whole_units(counted)
    whole_scored = whole if scored is counted else whole_units(scored)
    without_pod_level = whole_units(sum_of(of_containers, overhead)) if pod_level else None
    return PodResources(whole_units(requests), whole, whole_scored, by_container, without_pod_level, summed)


def read_pod_level_requests(spec: Reader) -> dict[str, int]:
    """Return the pod-level requests in thousandths, as the API server completes them."""
    containers, init_containers = (
        [Container.of(each) for each in spec.objects(field)] for field in ("containers", "initContainers")
    )
    return _pod_level_requests(spec, containers, init_containers)


def _by_container(init_containers: list[Container], containers: list[Container]) -> tuple[ContainerRequests, ...]:
    """Return the requests of the containers that request an extended resource, because a DeviceClass may back it."""
    return tuple(
        [
            ContainerRequests(
                place, place < len(init_containers) and not container.is_sidecar, tuple(container.requests.items())
            )
            for place, container in enumerate([*init_containers, *containers])
            if "/" in "".join(container.requests)
        ]
    )


def _pod_level_requests(spec: Reader, containers: list[Container], init_containers: list[Container]) -> dict[str, int]:
    """Return the requests of `spec.resources`, which replace the sum of the containers' requests.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, defaultPodRequests
    """
    if spec.raw.get("resources") is None:
        return _NONE
    resources = spec.object("resources")
    limits, requests = read_milli(resources, "limits"), read_milli(resources, "requests")
    if limits:
        summed = aggregate(containers, init_containers, _NONE)
        requests = limits | {name: summed[name] for name in (CPU, MEMORY) if name in summed} | requests
    return {
        name: amount for name, amount in requests.items() if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)
    }

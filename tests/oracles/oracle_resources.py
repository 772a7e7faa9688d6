"""A plain reference implementation of quantities and pod requests, from the sources of Kubernetes.

`webhook.kube` computes the same for the server. Nothing is shared, so that a fault there is a disagreement here.
"""

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

Object = Mapping[str, Any]
Milli = dict[str, int]
"""Amounts of resources in thousandths."""

_MULTIPLIERS = {
    "n": Fraction(1, 1000**3),
    "u": Fraction(1, 1000**2),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(1000**2),
    "G": Fraction(1000**3),
    "T": Fraction(1000**4),
    "P": Fraction(1000**5),
    "E": Fraction(1000**6),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "Gi": Fraction(1024**3),
    "Ti": Fraction(1024**4),
    "Pi": Fraction(1024**5),
    "Ei": Fraction(1024**6),
}
_LARGEST = Fraction(2**63 - 1)


@cache
def exact(quantity: object) -> Fraction:
    """Return the number that a quantity stands for, at most an int64 of units.

    Source: k8s.io/apimachinery/pkg/api/resource/quantity.go, the grammar above Quantity
    """
    sign, number, suffix = re.fullmatch(r"([+-]?)([0-9.]+)(.*)", str(quantity).strip()).groups()  # type: ignore[union-attr] # tests write quantities
    is_exponent = re.fullmatch(r"[eE][+-]?[0-9]+", suffix)
    multiplier = Fraction(10) ** int(suffix[1:]) if is_exponent else _MULTIPLIERS[suffix]
    whole, _, decimals = number.partition(".")
    size = Fraction(int(whole + decimals), 10 ** len(decimals)) * multiplier
    size = min(size, _LARGEST)
    return -size if sign == "-" else size


def units_of(quantity: object) -> int:
    """Return the quantity in whole units, rounded away from zero."""
    size = exact(quantity)
    return math.ceil(size) if size > 0 else math.floor(size)


def milli_of(quantity: object) -> int:
    """Return the quantity in thousandths, rounded away from zero."""
    size = exact(quantity) * 1000
    return math.ceil(size) if size > 0 else math.floor(size)


def amount_of(resource: str, quantity: object) -> int:
    """Return how much of `resource` a node offers: thousandths of a core for cpu, whole units for all else."""
    return milli_of(quantity) if resource == "cpu" else units_of(quantity)


def pod_requests(pod: Object) -> dict[str, int]:
    """Return the requests of a pending pod.

    Source: k8s.io/component-helpers/resource/helpers.go, PodRequests
    """
    return _rounded(_pod_requests(pod, {}, with_status=False))


def requested_by(pod: Object) -> dict[str, int]:
    """Return what a pod takes of its node: during a resize, what the kubelet reports counts, too."""
    return _rounded(_pod_requests(pod, {}, with_status=True))


def counted_of(pod: Object) -> dict[str, int]:
    """Return what a pod on a node weighs when nodes are scored: containers without a request count by a default.

    Where the pod as a whole requests something, only resources without any request get the default.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, PodInfo.CalculateResource
    """
    defaults = dict(_DEFAULTS)
    if _pod_level(pod):
        requests = _pod_requests(pod, {}, with_status=True)
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in requests}
    return _rounded(_pod_requests(pod, defaults, with_status=True))


def scored_of(pod: Object) -> dict[str, int]:
    """Return what a waiting pod weighs when NodeResourcesFit scores a node: its containers and the overhead.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
    calculatePodResourceRequest
    """
    total = _all_containers(pod, _DEFAULTS, _asked)
    _add(total, _milli(pod["spec"].get("overhead")))
    return _rounded(total)


# As in k8s.io/kubernetes/pkg/scheduler/util/pod_resources.go.
_DEFAULTS: Milli = {"cpu": 100, "memory": 200 * 1024 * 1024 * 1000}


def _milli(amounts: Object | None) -> Milli:
    return {name: milli_of(quantity) for name, quantity in (amounts or {}).items()}


def _rounded(milli: Milli) -> dict[str, int]:
    return {name: amount if name == "cpu" else (amount + 999) // 1000 for name, amount in milli.items()}


def _add(total: Milli, more: Milli) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Milli, other: Milli) -> None:
    for name, amount in other.items():
        total[name] = max(total.get(name, 0), amount)


def _pod_requests(pod: Object, defaults: Milli, *, with_status: bool) -> Milli:
    total = _resized(pod, defaults) if with_status else _all_containers(pod, defaults, _asked)
    total.update(_resized_pod_level(pod) if with_status and _pod_level(pod) else _pod_level(pod))
    _add(total, _milli(pod["spec"].get("overhead")))
    return total


def _resized(pod: Object, defaults: Milli) -> Milli:
    """Return the most of what all containers ask, what is promised to them, and what they are given.

    Source: k8s.io/component-helpers/resource/helpers.go, AggregateContainerRequests
    """
    status = pod.get("status") or {}
    given = (status.get("resources") or {}).get("requests")
    if given is not None and status.get("allocatedResources") is not None:
        total = _milli(status["allocatedResources"])
        _raise(total, _milli(given))
    else:
        total = _all_containers(pod, defaults, _promised)
        _raise(total, _all_containers(pod, defaults, _given))
    if not _is_resize_infeasible(pod):
        _raise(total, _all_containers(pod, defaults, _asked))
    return total


def _all_containers(pod: Object, defaults: Milli, requests_of: Callable[[Object, Object], Milli]) -> Milli:
    """Source: k8s.io/component-helpers/resource/helpers.go, aggregateContainerResourcesByFn."""
    total: Milli = {}
    for container in pod["spec"]["containers"]:
        _add(total, defaults | requests_of(pod, container))
    sidecars: Milli = {}
    peak: Milli = {}
    for container in pod["spec"].get("initContainers") or []:
        needed = defaults | requests_of(pod, container)
        if container.get("restartPolicy") == "Always":
            _add(total, needed)
            _add(sidecars, needed)
            _raise(peak, sidecars)
        else:
            _add(needed, sidecars)
            _raise(peak, needed)
    _raise(total, peak)
    return total


def _asked(_: Object, container: Object) -> Milli:
    """Return the requests of one container, a missing one defaulted to the limit.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, SetDefaults_Pod
    """
    resources = container.get("resources") or {}
    asked = _milli(resources.get("limits"))
    asked.update(_milli(resources.get("requests")))
    return asked


def _promised(pod: Object, container: Object) -> Milli:
    promised = _status_of(pod, container["name"]).get("allocatedResources")
    if promised is not None:
        return _milli(promised)
    return {} if _is_resize_infeasible(pod) else _asked(pod, container)


def _given(pod: Object, container: Object) -> Milli:
    given = (_status_of(pod, container["name"]).get("resources") or {}).get("requests")
    return _promised(pod, container) if given is None else _milli(given)


def _status_of(pod: Object, container: str) -> Object:
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((each for each in statuses if each["name"] == container), {})


def _is_resize_infeasible(pod: Object) -> bool:
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "PodResizePending":
            return bool(condition["reason"] == "Infeasible")
    return False


def _pod_level(pod: Object) -> Milli:
    """Return the requests of the pod as a whole, with the defaults that the API server adds beside limits.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, defaultPodRequests
    """
    resources = pod["spec"].get("resources") or {}
    limits, requests = _milli(resources.get("limits")), _milli(resources.get("requests"))
    if limits:
        of_containers = _all_containers(pod, {}, _asked)
        for name in ("cpu", "memory"):
            if name not in requests and name in of_containers:
                requests[name] = of_containers[name]
        for name, amount in limits.items():
            requests.setdefault(name, amount)
    return {
        name: amount for name, amount in requests.items() if name in ("cpu", "memory") or name.startswith("hugepages-")
    }


def _resized_pod_level(pod: Object) -> Milli:
    """Source: k8s.io/component-helpers/resource/helpers.go, effectivePodLevelResources."""
    status = pod.get("status") or {}
    if status.get("resources") is None:
        return _pod_level(pod)
    total: Milli = {} if _is_resize_infeasible(pod) else dict(_pod_level(pod))
    _raise(total, _milli(status["resources"].get("requests")))
    _raise(total, _milli(status.get("allocatedResources")))
    return total


def is_extended_resource(name: str) -> bool:
    """Source: k8s.io/kubernetes/pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName."""
    is_native = "/" not in name or "kubernetes.io/" in name
    return not is_native and not name.startswith("requests.")


def is_scalar_resource(name: str) -> bool:
    """Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, IsScalarResourceName."""
    return (
        is_extended_resource(name) or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name
    )


def is_schedulable_resource(name: str) -> bool:
    """Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, Resource.Add."""
    return name in ("cpu", "memory", "ephemeral-storage") or is_scalar_resource(name)

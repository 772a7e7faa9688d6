"""A plain reference implementation of quantities and pod requests, from the sources of Kubernetes.

`webhook.kube` computes the same for the server. Nothing is shared, so that a fault there is a disagreement here.
"""

import math
import re
from collections.abc import Mapping
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
    total = _all_containers(pod, _DEFAULTS, with_status=False)
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
    total = _all_containers(pod, defaults, with_status=with_status)
    for name, amount in _pod_level(pod).items():
        total[name] = _resized_pod_level(pod, name, amount) if with_status else amount
    _add(total, _milli(pod["spec"].get("overhead")))
    return total


def _all_containers(pod: Object, defaults: Milli, *, with_status: bool) -> Milli:
    """Source: k8s.io/component-helpers/resource/helpers.go, AggregateContainerRequests."""
    total: Milli = {}
    for container in pod["spec"]["containers"]:
        _add(total, defaults | _container(pod, container, with_status=with_status))
    sidecars: Milli = {}
    peak: Milli = {}
    for container in pod["spec"].get("initContainers") or []:
        is_sidecar = container.get("restartPolicy") == "Always"
        needed = defaults | _container(pod, container, with_status=with_status and is_sidecar)
        if is_sidecar:
            _add(total, needed)
            _add(sidecars, needed)
            _raise(peak, sidecars)
        else:
            _add(needed, sidecars)
            _raise(peak, needed)
    _raise(total, peak)
    return total


def _container(pod: Object, container: Object, *, with_status: bool) -> Milli:
    """Return the requests of one container, a missing one defaulted to the limit.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, SetDefaults_Pod;
    k8s.io/component-helpers/resource/helpers.go, determineContainerReqs
    """
    resources = container.get("resources") or {}
    asked = _milli(resources.get("limits"))
    asked.update(_milli(resources.get("requests")))
    status = _status_of(pod, container["name"]) if with_status else {}
    if status.get("resources") is None:
        return asked
    effective: Milli = {} if _is_resize_infeasible(pod) else asked
    _raise(effective, _milli(status["resources"].get("requests")))
    _raise(effective, _milli(status.get("allocatedResources")))
    return effective


def _status_of(pod: Object, container: str) -> Object:
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    return next((each for each in reversed(statuses) if each["name"] == container), {})


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
        of_containers = _all_containers(pod, {}, with_status=False)
        for name in ("cpu", "memory"):
            if name not in requests and name in of_containers:
                requests[name] = of_containers[name]
        for name, amount in limits.items():
            requests.setdefault(name, amount)
    return {
        name: amount for name, amount in requests.items() if name in ("cpu", "memory") or name.startswith("hugepages-")
    }


def _resized_pod_level(pod: Object, resource: str, asked: int) -> int:
    """Source: k8s.io/component-helpers/resource/helpers.go, determineEffectiveRequests."""
    status = pod.get("status") or {}
    if status.get("resources") is None:
        return asked
    actual = _milli(status["resources"].get("requests")).get(resource, 0)
    allocated = _milli(status.get("allocatedResources")).get(resource, 0)
    return max(0 if _is_resize_infeasible(pod) else asked, actual, allocated)


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

"""Check the resources of a pod and its containers as the API server does before it stores the pod."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from webhook.documents.documents import field
from webhook.documents.field import RejectedFieldError
from webhook.documents.parts import items_at, object_at
from webhook.kube.pod.amounts import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    PODS,
    is_extended_resource,
)
from webhook.kube.pod.container_totals import Container, aggregate
from webhook.kube.pod.name_rules import invalid_value, key_errors
from webhook.kube.quantity import canonical, milli_value, value
from webhook.kube.reader import Reader

_LIMIT_NEEDED = "Limit must be set for non overcommitable resources"
_OF_CONTAINERS = (CPU, MEMORY, EPHEMERAL_STORAGE)
_OF_QUOTAS = (
    *(PODS, "storage", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "requests.storage"),
    *(f"{part}.{name}" for part in ("requests", "limits") for name in _OF_CONTAINERS),
)
_SUPPORTED = ", ".join(f'"{each}"' for each in (CPU, HUGE_PAGES_PREFIX, MEMORY))
_UNQUALIFIED = "must be a standard resource type or fully qualified"
ResourceList = Mapping[str, Any]
NameErrors = Callable[[str, str], Iterator[RejectedFieldError]]


def each_container(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the containers and init containers of `pod` with their paths. Values that are not objects are left out."""
    for part in ("containers", "initContainers"):
        for index, container in enumerate(items_at(pod, "spec", part)):
            if isinstance(container, Mapping):
                yield f"spec.{part}[{index}]", container


def resource_errors(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    """Yield the errors of the resources of each container, and of the pod as a whole."""
    for path, container in each_container(pod):
        limits, requests = _lists(container)
        yield from _requirement_errors(limits, {**limits, **requests}, f"{path}.resources", _of_container)
    if isinstance(field(pod, "spec", "resources"), Mapping):
        yield from _pod_level_errors(pod, pod["spec"]["resources"], "spec.resources")


def _lists(owner: Mapping[str, Any]) -> tuple[ResourceList, ResourceList]:
    return object_at(owner, "resources", "limits"), object_at(owner, "resources", "requests")


def _pod_level_errors(pod: Mapping[str, Any], resources: Mapping[str, Any], path: str) -> Iterator[RejectedFieldError]:
    """Yield the errors of the resources of the pod as a whole, with the requests that the API server adds.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validatePodResources,
    validatePodResourceConsistency
    """
    if field(pod, "spec", "os", "name") == "windows":
        yield RejectedFieldError(path, "Forbidden", None, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield RejectedFieldError(
            f"{path}.claims", "Forbidden", None, "claims may not be set for Resources at pod-level"
        )
    of_limits, of_requests = _aggregated(pod, requests=False), _aggregated(pod, requests=True)
    limits, requests = _completed(*_lists(pod["spec"]), of_limits, of_requests)
    yield from _requirement_errors(limits, requests, path, _of_pod)
    huge = {name: each for name, each in of_limits.items() if name.startswith(HUGE_PAGES_PREFIX)}
    for part, amounts, totals in (("requests", requests, of_requests), ("limits", limits, huge)):
        for name, total in totals.items():
            if _exceeds(total, amounts.get(name)):
                detail = f"must be greater than or equal to aggregate container {part} of {total}"
                yield from invalid_value(f"{path}.{part}[{name}]", canonical(amounts[name]), [detail])
    for index, container in enumerate(field(pod, "spec", "containers") or ()):
        for name, limit in _lists(container)[0].items():
            if _exceeds(limit, limits.get(name)):
                detail = f"must be less than or equal to pod limits of {canonical(limits[name])}"
                place = f"{path}.containers[{index}][{name}].limits"
                yield from invalid_value(place, canonical(limit), [detail])


def _completed(
    limits: ResourceList, requests: ResourceList, of_limits: ResourceList, of_requests: ResourceList
) -> tuple[ResourceList, ResourceList]:
    """Return the pod-level limits and requests with the values that the API server adds from the containers.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, defaultPodRequests, defaultHugePagePodLimits
    """
    if limits or requests:
        huge = {name: each for name, each in of_limits.items() if name.startswith(HUGE_PAGES_PREFIX)}
        limits = {**{name: each for name, each in huge.items() if name not in requests}, **limits}
    if limits:
        summed = {name: each for name, each in of_requests.items() if name in (CPU, MEMORY)}
        requests = {**{name: each for name, each in limits.items() if _is_of_pods(name)}, **summed, **requests}
    return limits, requests


def _aggregated(pod: Mapping[str, Any], *, requests: bool) -> dict[str, str]:
    found: dict[str, list[Container]] = {"containers": [], "initContainers": []}
    written: dict[str, Any] = {}
    for path, container in each_container(pod):
        limits, own = _lists(container)
        amounts = {**limits, **own} if requests else limits
        written = {**amounts, **written}
        # With limits in place of the requests, it has the requests of the sum that is asked for.
        reader = Reader({**container, "resources": {"requests": amounts}})
        found["initContainers" if path.startswith("spec.i") else "containers"].append(Container.of(reader))
    totals = aggregate(found["containers"], found["initContainers"], {})
    return {name: _quantity(milli, written[name]) for name, milli in totals.items()}


def _quantity(milli: int, like: object) -> str:
    """Return an amount in thousandths as the API server prints it, in binary units if `like` has such a unit."""
    kibi, rest = divmod(milli, 1024 * 1000)
    is_binary = isinstance(like, str) and like.endswith("i") and not rest
    return canonical(f"{kibi}Ki" if is_binary else f"{milli}m")


def _exceeds(amount: object, most: object) -> bool:
    """Return whether `amount` is larger than `most`, or false if either is absent or malformed."""
    try:
        return milli_value(amount) > milli_value(most)
    except ValueError:
        return False


def _requirement_errors(
    limits: ResourceList, requests: ResourceList, path: str, name_errors: NameErrors
) -> Iterator[RejectedFieldError]:
    """Yield the errors of resources, with the `requests` that the API server adds.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validateResourceRequirements
    """
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            yield from name_errors(f"{path}.{part}[{name}]", name)
            with suppress(ValueError):
                yield from invalid_value(f"{path}.{part}[{name}]", canonical(quantity), _amount_errors(name, quantity))
    for name, quantity in requests.items():
        is_exact = is_extended_resource(name) or name.startswith(HUGE_PAGES_PREFIX)
        if name not in limits:
            if is_exact:
                yield RejectedFieldError(f"{path}.limits", "Required value", None, _LIMIT_NEEDED)
            continue
        with suppress(ValueError):
            difference, limit = milli_value(quantity) - milli_value(limits[name]), canonical(limits[name])
            if difference and is_exact:
                yield from invalid_value(
                    f"{path}.requests", canonical(quantity), [f"must be equal to {name} limit of {limit}"]
                )
            elif difference > 0:
                detail = f"must be less than or equal to {name} limit of {limit}"
                yield from invalid_value(f"{path}.requests", canonical(quantity), [detail])
    names = {*limits, *requests}
    if not names & {CPU, MEMORY} and any(each.startswith(HUGE_PAGES_PREFIX) for each in names):
        yield RejectedFieldError(path, "Forbidden", None, "HugePages require cpu or memory")


def _of_container(path: str, name: str) -> Iterator[RejectedFieldError]:
    return invalid_value(path, name, _name_errors(name))


def _name_errors(name: str) -> Iterator[str]:
    """Yield the errors of the name of a resource of a container.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validateContainerResourceName
    """
    errors = [*key_errors(name)]
    yield from errors
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(HUGE_PAGES_PREFIX):
            if not errors and not _is_standard(name):
                yield _UNQUALIFIED
            yield "must be a standard resource for containers"
    elif "kubernetes.io/" not in name and (errors or not is_extended_resource(name)):
        yield "doesn't follow extended resource name standard"


def _of_pod(path: str, name: str) -> Iterator[RejectedFieldError]:
    """Yield the errors of the name of a resource of the pod as a whole.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validatePodResourceName
    """
    if errors := [*key_errors(name)] or ([] if "/" in name or _is_standard(name) else [_UNQUALIFIED]):
        yield from invalid_value(path, name, errors)
    elif not _is_of_pods(name):
        yield RejectedFieldError(path, "Unsupported value", name, f"supported values: {_SUPPORTED}")


def _is_of_pods(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def _is_standard(name: str) -> bool:
    names = (*_OF_CONTAINERS, *_OF_QUOTAS)
    return name in names or name.removeprefix("requests.").startswith(HUGE_PAGES_PREFIX)


def _amount_errors(name: str, quantity: object) -> Iterator[str]:
    """Yield the errors of one amount."""
    milli = milli_value(quantity)
    if milli < 0:
        yield "must be greater than or equal to 0"
    if is_extended_resource(name) and milli % 1000:
        yield "must be an integer"
    if name.startswith(HUGE_PAGES_PREFIX) and not _is_multiple(quantity, name.removeprefix(HUGE_PAGES_PREFIX)):
        yield f"{canonical(quantity)} is not positive integer multiple of {name}"


def _is_multiple(quantity: object, page_size: str) -> bool:
    """Return whether `quantity` is a multiple of `page_size`, the page size in the name of a huge pages resource."""
    try:
        milli = milli_value(page_size)
    except ValueError:
        return False
    return milli > 0 and not milli % 1000 and not value(quantity) % (milli // 1000)

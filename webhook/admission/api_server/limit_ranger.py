"""LimitRanger: the default resources of containers, and the limits of their amounts.

Source: k8s.io/kubernetes/plugin/pkg/admission/limitranger/admission.go
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from webhook.cluster.objects.limit_range import OF_CONTAINERS, OF_PODS, LimitRange, LimitRangeItem, Quantities
from webhook.documents.documents import JsonObject
from webhook.documents.field import MOST_ERRORS
from webhook.kube.deadline import Expired, in_time
from webhook.kube.names import LIMIT_RANGER
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.kube.pod.resources import read_pod_level_requests
from webhook.kube.quantity import MAX_INT64, added, canonical, milli_value, value
from webhook.kube.reader import Reader

_CONTAINERS = {"containers": "container", "initContainers": "init container"}
_MAX_MILLI = MAX_INT64 // 1000
_Spec = Mapping[str, Any]
_NO_DEFAULTS = LimitRangeItem(OF_CONTAINERS, {}, {}, {}, {}, {})


def with_default_resources(pod: JsonObject, limit_range: LimitRange) -> tuple[JsonObject, bool]:
    """Return `pod` with the requests and limits that the API server sets for `limit_range`, and whether it sets any.

    A missing request is set to the limit, as the API server does when it decodes a pod, or else to the default of the
    LimitRange. An annotation lists the values that come from the LimitRange.
    """
    # A LimitRange has one item of each type.
    item = next((each for each in limit_range.items if each.type == OF_CONTAINERS), _NO_DEFAULTS)
    spec, notes = {**pod["spec"]}, list[str]()
    for part, noun in _CONTAINERS.items():
        if spec.get(part):
            spec[part] = [_completed(each, item, noun, notes) for each in spec[part]]
    if not notes:
        return {**pod, "spec": spec}, False
    note = {LIMIT_RANGER: f"LimitRanger plugin set: {'; '.join(notes)}"}
    metadata = {**pod["metadata"], "annotations": {**(pod["metadata"].get("annotations") or {}), **note}}
    return {**pod, "metadata": metadata, "spec": spec}, True


def _completed(container: JsonObject, item: LimitRangeItem, noun: str, notes: list[str]) -> JsonObject:
    """Return `container` with the defaults of `item`, and add a text for each value that is set to `notes`."""
    resources = container.get("resources") or {}
    limits = {**(resources.get("limits") or {})}
    requests = {**limits, **(resources.get("requests") or {})}
    for part, amounts, defaults in (("request", requests, item.default_request), ("limit", limits, item.default)):
        if missing := sorted(defaults.keys() - amounts.keys()):
            notes.append(f"{', '.join(missing)} {part} for {noun} {container.get('name')}")
    limits, requests = {**item.default, **limits}, {**item.default_request, **requests}
    if not limits and not requests:
        return container
    return {**container, "resources": {**resources, "limits": limits, "requests": requests}}


def limit_violations(pod: Mapping[str, Any], ranges: Sequence[LimitRange], expired: Expired) -> list[str]:
    """Return the messages of the first of `ranges` that `pod` violates, or none.

    Raises:
        ValueError: an amount of the pod is not a quantity.
    """
    for each in ranges:
        if found := [*islice(_violations(pod["spec"], each, expired), MOST_ERRORS)]:
            return [*dict.fromkeys(found)]
    return []


def _violations(spec: _Spec, limit_range: LimitRange, expired: Expired) -> Iterator[str]:
    for item in limit_range.items:
        if item.type == OF_CONTAINERS:
            for container in in_time([each for part in _CONTAINERS for each in spec.get(part) or ()], expired):
                resources = container.get("resources") or {}
                yield from _of_item(item, resources.get("requests") or {}, resources.get("limits") or {})
        elif item.type == OF_PODS:
            yield from _of_item(item, *_totals(spec, expired))


def _of_item(item: LimitRangeItem, requests: _Spec, limits: _Spec) -> Iterator[str]:
    for name, least in sorted(item.min.items()):
        yield from _below(f"minimum {name} usage per {item.type} is {least}", name, least, requests, limits)
    for name, most in sorted(item.max.items()):
        yield from _above(f"maximum {name} usage per {item.type} is {most}", name, most, requests, limits)
    for name, ratio in sorted(item.max_limit_request_ratio.items()):
        begin = f"{name} max limit to request ratio per {item.type} is {ratio}"
        yield from _over_ratio(begin, ratio, requests.get(name), limits.get(name))


def _below(begin: str, name: str, least: str, requests: _Spec, limits: _Spec) -> Iterator[str]:
    if name not in requests:
        yield f"{begin}.  No request is specified"
    elif milli_value(requests[name]) < milli_value(least):
        yield f"{begin}, but request is {canonical(requests[name])}"
    elif name in limits and milli_value(limits[name]) < milli_value(least):
        yield f"{begin}, but limit is {canonical(limits[name])}"


def _above(begin: str, name: str, most: str, requests: _Spec, limits: _Spec) -> Iterator[str]:
    if name not in limits:
        yield f"{begin}.  No limit is specified"
    elif milli_value(limits[name]) > milli_value(most):
        yield f"{begin}, but limit is {canonical(limits[name])}"
    elif name in requests and milli_value(requests[name]) > milli_value(most):
        yield f"{begin}, but request is {canonical(requests[name])}"


def _over_ratio(begin: str, ratio: str, request: object, limit: object) -> Iterator[str]:
    if request is None or not milli_value(request):
        yield f"{begin}, but no request is specified or request is 0"
    elif limit is None or not milli_value(limit):
        yield f"{begin}, but no limit is specified or limit is 0"
    else:
        # The API server divides as many digits as an int64 holds.
        read = milli_value if max(value(request), value(limit), value(ratio)) <= _MAX_MILLI else value
        found = read(limit) / read(request)
        if found * 1000 > milli_value(ratio):
            yield f"{begin}, but provided ratio is {found:f}"


def _totals(spec: _Spec, expired: Expired) -> tuple[Quantities, Quantities]:
    """Return the requests and limits of the pod: those of the pod level if it has any, or the sums over its containers.

    Source: k8s.io/kubernetes/pkg/api/pod/util.go, DefaultPodLevelResources
    """
    requests, limits = _total(spec, "requests", expired), _total(spec, "limits", expired)
    if not spec.get("resources"):
        return requests, limits
    containers = [each for part in _CONTAINERS for each in spec.get(part) or ()]
    of_pod, stated = read_pod_level_requests(Reader(spec)), _amounts(spec, "limits")
    for name in (CPU, MEMORY):
        if name in of_pod:
            requests[name] = canonical(f"{of_pod[name]}m")
            if all(name in _amounts(each, "limits") for each in containers):
                _raise_to(limits, {name: requests[name]})
        if name in stated:
            limits[name] = stated[name]
    return requests, limits


def _total(spec: _Spec, part: str, expired: Expired) -> dict[str, str]:
    total: dict[str, str] = {}
    for container in in_time(spec.get("containers") or [], expired):
        _add(total, _amounts(container, part))
    sidecars: dict[str, str] = {}
    peak: dict[str, str] = {}
    for container in in_time(spec.get("initContainers") or [], expired):
        amounts = _amounts(container, part)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            amounts = {**amounts}
            _add(amounts, sidecars)
        _raise_to(peak, amounts)
    _raise_to(total, peak)
    return total


def _amounts(holder: _Spec, part: str) -> dict[str, str]:
    return {name: canonical(each) for name, each in ((holder.get("resources") or {}).get(part) or {}).items()}


def _add(total: dict[str, str], amounts: Quantities) -> None:
    for name, amount in amounts.items():
        total[name] = added(total[name], amount) if name in total else amount


def _raise_to(total: dict[str, str], amounts: Quantities) -> None:
    for name, amount in amounts.items():
        if name not in total or milli_value(amount) > milli_value(total[name]):
            total[name] = amount

"""The last reports of Karpenter and Cluster Autoscaler about a pod that waits. Nothing is predicted from them."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from webhook.cli.inputs.existing_objects import EVENT, Objects, event_time, events_of
from webhook.cluster.cache.resources import Resource
from webhook.documents.documents import JsonObject, field
from webhook.documents.listing import plural, some
from webhook.documents.parts import file_in, listed, texts
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.quantity import milli_value

KARPENTER, CLUSTER_AUTOSCALER = "karpenter", "cluster-autoscaler"
_NODE_POOL = Resource("NodePool", "karpenter.sh/v1", "nodepools", is_extension=True)
_CONFIG_MAP = Resource("ConfigMap", "v1", "configmaps")
_STATUS_NAMESPACE, _STATUS_NAME = "kube-system", "cluster-autoscaler-status"
# The message has the errors of all NodePools. Each release from 1.0 to 1.14 has one of three forms of the name.
# Source: sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling/events.go, scheduler.go: addToNewNodeClaim
_FAILED, _SEPARATOR = "Failed to schedule pod, ", "; "
_AT_LIMIT = re.compile(
    r'(?:exceed limits|limits have been exhausted) for nodepool(?::? "| \(NodePool=)([a-z0-9.-]{1,253})'
)
_NODE_CLAIM = re.compile(r"\bnodeclaim/([a-z0-9.-]{1,253})")
_NO_TYPES = "NoCompatibleInstanceTypes"
# Source: sigs.k8s.io/cluster-autoscaler/pkg/core/scaleup/orchestrator/skippedreasons.go, ScaleUpInfo.String
_AT_MAXIMUM, _IN_BACKOFF = "max node group size reached", "in backoff after failed scale-up"
_SCALED_GROUP = re.compile(r"\{(\S{1,500}) \d+->\d+ \(max: \d+\)\}")
_MOST_GROUPS = 10


class Report(NamedTuple):
    """A report of an autoscaler: its name, the time (RFC 3339, or empty), and the message."""

    source: str
    time: str
    message: str


def autoscaler_reports(objects: Objects, pod: JsonObject, events: Sequence[JsonObject]) -> list[Report]:
    """Return the newest report of each autoscaler in `events`, which are those of `pod` in the order of time.

    A NodePool at its limit and a node group at its maximum or in backoff are named, as far as `objects` has them. A
    message of another form is quoted as it is.
    """
    newest = {_source(each): each for each in events}
    found: list[Report] = []
    if (event := newest.get(KARPENTER)) is not None:
        found += _of_karpenter(objects, pod, event)
    if (event := newest.get(CLUSTER_AUTOSCALER)) is not None:
        found += _of_cluster_autoscaler(objects, event)
    return found


def _source(event: JsonObject) -> str:
    """Return the component that wrote an Event, in the field of the API that it was written with."""
    return str(field(event, "source", "component") or event.get("reportingComponent") or "")


def _of_karpenter(objects: Objects, pod: JsonObject, event: JsonObject) -> Iterator[Report]:
    time, message = event_time(event), str(event.get("message") or "")
    parts = message.removeprefix(_FAILED).split(_SEPARATOR) if message.startswith(_FAILED) else []
    full = [match[1] for each in parts if (match := _AT_LIMIT.search(each))]
    pools = {str(field(each, "metadata", "name")): each for each in objects.list(_NODE_POOL, "")} if full else {}
    for name in full:
        yield Report(KARPENTER, time, _limit_of(name, pools.get(name)))
    if not full:
        yield Report(KARPENTER, time, message)
    elif others := len(parts) - len(full):
        yield Report(KARPENTER, time, f"its Event has the reasons of {plural(others, 'other NodePool')}")
    if parts:
        yield from _without_types(objects, str(field(pod, "metadata", "creationTimestamp") or ""))
    elif claim := _NODE_CLAIM.search(message):
        # The Events of an object without a namespace are in the default one, also after it is deleted.
        of_claim = events_of(objects, {"metadata": {"namespace": DEFAULT_NAMESPACE, "name": claim[1]}})
        yield from (Report(KARPENTER, event_time(each), str(each.get("message"))) for each in _last_warning(of_claim))


def _limit_of(name: str, pool: JsonObject | None) -> str:
    """Return the limits of the NodePool `name` that leave no room for a node. `pool` is None if it is not known."""
    limits, used = (texts(pool or {}, *path) for path in (("spec", "limits"), ("status", "resources")))
    known = {each: (used.get(each, "0"), limits[each]) for each in sorted(limits)}
    reached = [f"{limit} {each}" for each, (amount, limit) in known.items() if _is_reached(amount, limit)]
    if reached:
        return f"NodePool {name} is at its limit of {some(reached)}"
    # Karpenter counts a new node in the status some seconds later.
    amounts = ", ".join(f"{amount} of {limit} {each}" for each, (amount, limit) in known.items())
    counted = f" (its status counts {amounts})" if amounts else ""
    return f"the limits of NodePool {name} leave no room for a node{counted}"


def _is_reached(amount: str, limit: str) -> bool:
    try:
        return milli_value(amount) >= milli_value(limit)
    except ValueError:
        return False


def _without_types(objects: Objects, since: str) -> Iterator[Report]:
    written = objects.list(EVENT, DEFAULT_NAMESPACE, reason=_NO_TYPES)
    newest = {str(field(each, "involvedObject", "name")): each for each in sorted(written, key=event_time)}
    for name, each in sorted(newest.items()):
        if event_time(each) >= since:
            yield Report(KARPENTER, event_time(each), f"NodePool {name}: {each.get('message')}")


def _last_warning(events: Sequence[JsonObject]) -> list[JsonObject]:
    return [each for each in events if each.get("type") == "Warning"][-1:]


def _of_cluster_autoscaler(objects: Objects, event: JsonObject) -> Iterator[Report]:
    time, message = event_time(event), str(event.get("message") or "")
    yield Report(CLUSTER_AUTOSCALER, time, message)
    scaled = set(_SCALED_GROUP.findall(message))
    if not (scaled or _AT_MAXIMUM in message or _IN_BACKOFF in message):
        return
    probed, groups = _status(objects)
    lines = []
    for each in groups:
        name = str(each.get("name") or "")
        if _AT_MAXIMUM in message and (maximum := _reached_maximum(each)) is not None:
            lines.append(f"node group {name} is at its maximum of {plural(maximum, 'node')}")
        if (_IN_BACKOFF in message or name in scaled) and field(each, "scaleUp", "status") == "Backoff":
            lines.append(f"node group {name} is in backoff{_since(each)}{_cause(each)}")
    yield from (Report(CLUSTER_AUTOSCALER, probed, each) for each in lines[:_MOST_GROUPS])
    if len(lines) > _MOST_GROUPS:
        more = f"and {len(lines) - _MOST_GROUPS} more; ConfigMap {_STATUS_NAMESPACE}/{_STATUS_NAME} has all"
        yield Report(CLUSTER_AUTOSCALER, probed, more)
    if scaled:
        of_status = events_of(objects, {"metadata": {"namespace": _STATUS_NAMESPACE, "name": _STATUS_NAME}})
        later = [each for each in of_status if event_time(each) >= time and _names(each, scaled)]
        for each in _last_warning(later):
            yield Report(CLUSTER_AUTOSCALER, event_time(each), str(each.get("message")))


def _status(objects: Objects) -> tuple[str, list[JsonObject]]:
    """Return when Cluster Autoscaler wrote its status, and its node groups. A status of another form has none.

    Source: sigs.k8s.io/cluster-autoscaler/pkg/clusterstate/api/types.go, ClusterAutoscalerStatus
    """
    found = objects.list(_CONFIG_MAP, _STATUS_NAMESPACE, **{"metadata.name": _STATUS_NAME})
    content = file_in(found[0], "status") if found else {}
    return str(field(content, "clusterWide", "health", "lastProbeTime") or ""), listed(content, "nodeGroups")


def _reached_maximum(group: JsonObject) -> int | None:
    """Return the maximum size of the node group, or None if it is 0, not reached or not known."""
    size, maximum = (field(group, "health", key) for key in ("cloudProviderTarget", "maxSize"))
    # YAML can have true, which is an int.
    return maximum if type(size) is type(maximum) is int and 0 < maximum <= size else None


def _since(group: JsonObject) -> str:
    """Return the start of the backoff as ` since 14:02 UTC`, with the date if it differs from that of the status."""
    begin, last = (_time(field(group, "scaleUp", key)) for key in ("lastTransitionTime", "lastProbeTime"))
    if begin is None:
        return ""
    is_same_day = last is not None and begin.date() == last.date()
    return f" since {begin:%H:%M} UTC" if is_same_day else f" since {begin:%Y-%m-%d %H:%M} UTC"


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if isinstance(text, str) else None
    except ValueError:
        return None


def _cause(group: JsonObject) -> str:
    parts = (field(group, "scaleUp", "backoffInfo", key) for key in ("errorCode", "errorMessage"))
    return "".join(f": {each}" for each in parts if each)


def _names(event: JsonObject, groups: set[str]) -> bool:
    return not groups.isdisjoint(re.split(r"[\s;:,]+", str(event.get("message"))))

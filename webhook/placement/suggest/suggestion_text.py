"""The text of suggestions."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.documents.listing import plural
from webhook.kube.names import HOSTNAME_LABEL
from webhook.placement.framework.amount_text import amount_text
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.suggest.changes import Change, Evict, Free, NodeChange, Scenario, Uncordon
from webhook.placement.suggest.pod_changes import (
    ReduceRequest,
    ReplaceRequest,
    TolerateTaint,
    Without,
    WithoutNodeSelector,
    WithoutRequirement,
    common_term,
)

ASK_FOR = "ask for "
CAN_TAKE = "can take it"
_MOST_VALUES = 3

T = TypeVar("T")


def suggestion_text(changes: Sequence[Change], row: int, count: int, fitting_rows: Rows, scenario: Scenario) -> str:
    """Return that `count` nodes can take the pod after `changes`, derived from the node in `row`."""
    requests = _of(changes, ReduceRequest)
    of_node = [change for change in changes if isinstance(change, NodeChange)]
    if len(changes) == len(requests) == 1:
        return _ask_for(requests, row, scenario)
    subject = f"{count} node would fit" if count == 1 else f"{count} nodes would fit"
    if of_node:
        name = scenario.nodes.nodes[row].node.name
        verb = "fits" if len(of_node) == len(changes) else "would fit"
        subject = f"{name} {verb} once {_joined(_event(change) for change in of_node)}"
    parts = [subject]
    if dropped := [change for change in changes if isinstance(change, Without)]:
        parts.append(f"without {_joined(_dropped(change, fitting_rows, scenario.nodes) for change in dropped)}")
    conditions = []
    if tolerated := _of(changes, TolerateTaint):
        conditions.append(f"tolerated {_joined(map(str, tolerated))}")
    if requests:
        conditions.append(f"asked for {_amounts(requests, scenario.pod)}")
    for each in _of(changes, ReplaceRequest):
        amount = amount_text(each.resource, each.amount)
        conditions.append(f"asked for {amount} {each.other} instead of {each.resource}, which no node has")
    if conditions:
        parts.append(f"{'and ' if dropped else ''}if the pod {_joined(conditions)}")
    return " ".join(parts)


def nominated_text(node: str, ending: Sequence[RunningPod]) -> str:
    """Return the text that the pod, which is nominated to `node`, waits for the end of pods there."""
    names = [f"{each.namespace}/{each.name}" for each in ending]
    return f"{node} {CAN_TAKE} once {_cut(names)} {_are(len(names))} gone: the pod is nominated to {node}"


def _ask_for(requests: Sequence[ReduceRequest], row: int, scenario: Scenario) -> str:
    (request,) = requests
    resource = request.resource
    text = f"{ASK_FOR}{_amounts(requests, scenario.pod)}"
    overhead = f", and {amount_text(resource, request.overhead)} is overhead" if request.overhead else ""
    return f"{text}: the largest free block{_place(row, scenario)} is {amount_text(resource, request.amount)}{overhead}"


def _amounts(requests: Iterable[ReduceRequest], pod: PodInfo) -> str:
    return _joined(
        f"{amount_text(each.resource, each.amount - each.overhead)} {each.resource} instead of "
        f"{amount_text(each.resource, each.requested - each.overhead)}{_written_by(each.resource, pod)}"
        for each in requests
    )


def _written_by(resource: str, pod: PodInfo) -> str:
    """Return the origin of the request of `pod`, or "" if a container in the manifest has it."""
    together = " in all containers together" if resource in pod.summed else ""
    return f"{together} (with defaults of a LimitRange)" if resource in pod.defaulted else together


def _place(row: int, scenario: Scenario) -> str:
    """Return the label by which the pod selects its nodes, with its value on the node in `row`."""
    pod, nodes = scenario
    labels = nodes.nodes[row].node.labels
    keys = [each.key for each in common_term(pod).expressions if each.operator == "In"]
    keys += [key for key, _ in pod.node_selector]
    for key in keys:
        if key != HOSTNAME_LABEL and key in labels:
            return f" in {key}={labels[key]}"
    return ""


def _event(change: NodeChange) -> str:
    if isinstance(change, Uncordon):
        return "it is uncordoned"
    if isinstance(change, Evict):
        return f"{plural(len(change.pods), 'pod')} of lower priority {_are(len(change.pods))} gone"
    assert isinstance(change, Free)  # noqa: S101 - the third kind
    events = []
    if change.amounts:
        freed = _joined(f"{amount_text(resource, amount)} {resource}" for resource, amount in change.amounts)
        is_one = len(change.amounts) == 1 and change.amounts[0][1] == 1
        events.append(f"{freed} {'is' if is_one else 'are'} freed")
    if change.ports:
        ports = _joined(f"{port.port}/{port.protocol}" for port in change.ports)
        events.append(f"host port{'s' if len(change.ports) > 1 else ''} {ports} {_are(len(change.ports))} free")
    if change.pods:
        events.append(f"{plural(change.pods, 'pod')} {_are(change.pods)} gone")
    return _joined(events)


def _dropped(change: Without, fitting_rows: Rows, nodes: Snapshot) -> str:
    """Return a text with the requirement that is removed, and the label values of the nodes."""
    if isinstance(change, WithoutRequirement) and not change.is_of_field:
        key, operator, _ = change.requirement
        if operator in ("Exists", "DoesNotExist"):
            return str(change)
    elif isinstance(change, WithoutNodeSelector):
        key = change.key
    else:
        return str(change)
    values = list(dict.fromkeys(nodes.nodes[row].node.labels.get(key, "none") for row in fitting_rows.tolist()))
    return f"{change} ({'they have' if len(fitting_rows) > 1 else 'it has'} {_cut(values)})"


def _cut(values: Sequence[str]) -> str:
    return ", ".join(values[:_MOST_VALUES]) + (", …" if len(values) > _MOST_VALUES else "")


def _of(changes: Iterable[Change], kind: type[T]) -> list[T]:
    return [change for change in changes if isinstance(change, kind)]


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _joined(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last

"""Suggested changes made to raw objects, as a user or an administrator would make them."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from webhook.kube.quantity import milli_value
from webhook.placement.suggest.changes import Change, Evict, Free, Uncordon
from webhook.placement.suggest.pod_changes import (
    ReduceRequest,
    ReplaceRequest,
    TolerateTaint,
    WithoutHostPort,
    WithoutNodeSelector,
    WithoutPodTerms,
    WithoutRequirement,
    WithoutSpread,
    WithoutTerms,
)

Object = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass
class World:
    """A pod that waits, raw nodes and the raw pods that run there."""

    pod: Object
    nodes: list[Object]
    running: list[Object]

    def node(self, name: str) -> Object:
        (found,) = (node for node in self.nodes if node["metadata"]["name"] == name)
        return found


def applied(changes: tuple[Change, ...], world: World) -> World:
    """Another world, in which `changes` have come about."""
    after = deepcopy(world)
    for change in changes:
        _apply(change, after)
    return after


@singledispatch
def _apply(change: Change, world: World) -> None:
    raise TypeError(change)


@_apply.register
def _(change: TolerateTaint, world: World) -> None:
    toleration = {"key": change.key, "operator": "Equal", "value": change.value}
    world.pod["spec"]["tolerations"] = [*(world.pod["spec"].get("tolerations") or []), toleration]


@_apply.register
def _(change: WithoutRequirement, world: World) -> None:
    field = "matchFields" if change.is_of_field else "matchExpressions"
    dropped = {"key": change.requirement.key, "operator": change.requirement.operator}
    if change.requirement.values:
        dropped["values"] = list(change.requirement.values)  # type: ignore[assignment] # raw JSON
    _edit_terms(world.pod, lambda term: term | {field: [each for each in term.get(field) or [] if each != dropped]})


@_apply.register
def _(change: WithoutTerms, world: World) -> None:
    terms = _telling(world.pod)
    common = (
        {
            field: [
                each for each in terms[0].get(field) or [] if all(each in (term.get(field) or []) for term in terms)
            ]
            for field in ("matchExpressions", "matchFields")
        }
        if terms
        else {}
    )
    _edit_terms(world.pod, lambda _: common)


@_apply.register
def _(change: WithoutNodeSelector, world: World) -> None:
    assert world.pod["spec"]["nodeSelector"].pop(change.key) == change.value


@_apply.register
def _(change: WithoutHostPort, world: World) -> None:
    spec, wanted = world.pod["spec"], change.port
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        container["ports"] = [
            port
            for port in container.get("ports") or []
            if (
                port.get("protocol") or "TCP",
                port.get("hostPort") or (port["containerPort"] if spec.get("hostNetwork") else 0),
                port.get("hostIP") or "0.0.0.0",
            )
            != (wanted.protocol, wanted.port, wanted.ip)
        ]


@_apply.register
def _(change: WithoutPodTerms, world: World) -> None:
    del world.pod["spec"]["affinity"][change.kind][_REQUIRED]


@_apply.register
def _(change: WithoutSpread, world: World) -> None:
    constraints = world.pod["spec"]["topologySpreadConstraints"]
    kept = [each for each in constraints if each["whenUnsatisfiable"] != "DoNotSchedule"]
    world.pod["spec"]["topologySpreadConstraints"] = kept


@_apply.register
def _(change: ReplaceRequest, world: World) -> None:
    spec = world.pod["spec"]
    resources = [each.get("resources") or {} for each in (*(spec.get("initContainers") or []), *spec["containers"])]
    for amounts in (requested for each in resources for requested in (each.get("requests"), each.get("limits"))):
        if amounts and change.resource in amounts:
            amounts[change.other] = amounts.pop(change.resource)


@_apply.register
def _(change: ReduceRequest, world: World) -> None:
    """One container asks for all."""
    spec = world.pod["spec"]
    holders = [spec, *(spec.get("initContainers") or []), *spec["containers"]]
    resources = [each.get("resources") or {} for each in holders]
    requested = [each.get(what) or {} for each in resources for what in ("requests", "limits")]
    for amounts in (spec.get("overhead") or {}, *requested):
        amounts.pop(change.resource, None)
    first = spec["containers"][0].setdefault("resources", {})
    amount = {change.resource: _quantity(change.resource, change.amount)}
    # An extended resource is requested by its limit.
    for what in ("requests", "limits") if "/" in change.resource else ("requests",):
        first[what] = (first.get(what) or {}) | amount


@_apply.register
def _(change: Free, world: World) -> None:
    """Free resources by raising the allocatable amounts, which is equivalent to fewer requests."""
    allocatable = world.node(change.node)["status"]["allocatable"]
    for resource, amount in (*change.amounts, ("pods", change.pods)):
        milli = milli_value(allocatable.get(resource, "0")) + (amount if resource == "cpu" else amount * 1000)
        allocatable[resource] = f"{milli}m"
    taken = {(port.protocol, port.port) for port in change.ports}
    for pod in world.running:
        spec = pod["spec"]
        if spec.get("nodeName") == change.node:
            for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
                container["ports"] = [
                    port
                    for port in container.get("ports") or []
                    if (port.get("protocol") or "TCP", port.get("hostPort") or port["containerPort"]) not in taken
                ]


@_apply.register
def _(change: Evict, world: World) -> None:
    gone = set(change.pods)
    world.running = [
        pod for pod in world.running if (pod["metadata"]["namespace"], pod["metadata"]["name"]) not in gone
    ]


@_apply.register
def _(change: Uncordon, world: World) -> None:
    spec = world.node(change.node)["spec"]
    spec["unschedulable"] = False
    spec["taints"] = [taint for taint in spec.get("taints") or [] if taint["key"] != "node.kubernetes.io/unschedulable"]


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == "cpu" else str(amount)


def _telling(pod: Object) -> list[Object]:
    """The terms that are not empty: an empty one matches no node."""
    required = pod["spec"]["affinity"]["nodeAffinity"][_REQUIRED]
    return [term for term in required["nodeSelectorTerms"] if term.get("matchExpressions") or term.get("matchFields")]


def _edit_terms(pod: Object, edit: Callable[[Object], Object]) -> None:
    """Edit each term; where one asks for nothing any more, every node will do."""
    if _REQUIRED not in pod["spec"]["affinity"]["nodeAffinity"]:
        return
    terms = [edit(term) for term in _telling(pod)]
    if not terms or any(not term.get("matchExpressions") and not term.get("matchFields") for term in terms):
        del pod["spec"]["affinity"]["nodeAffinity"][_REQUIRED]
    else:
        pod["spec"]["affinity"]["nodeAffinity"][_REQUIRED] = {"nodeSelectorTerms": terms}

"""Random clusters in which pods are preempted."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.controlplane.client import Object
from tests.differential.random_objects.constraints import HOSTNAME, ZONE
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import World
from tests.support.objects.devices import (
    allocated,
    claiming,
    exactly,
    make_cards,
    make_device_class,
    make_resource_claim,
    make_slice,
)

NAMESPACE = "preemption"
CLAIM = "wanted"
"""The claims that a preemptor may use are `wanted-0`, `wanted-1` and so on."""
WANTED_CLAIMS = 5
POLICY = "policy/v1"
# Few, so that pods are equal in it.
PRIORITIES = {"preempt-negative": -5, "preempt-0": 0, "preempt-10": 10, "preempt-50": 50, "preempt-high": 100}
NEVER = "preempt-never"
_PREEMPTORS = ("preempt-high",) * 6 + ("preempt-50", "preempt-10")
_STARTS = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z", "2026-03-01T00:00:00Z", "2026-06-01T00:00:00Z", None)


def random_world(dice: Dice, nodes: int) -> World:
    """Return `nodes` nodes, most of them full of pods of a few priorities and start times."""
    few = dice.chance(40)
    starts = dice.some(_STARTS, 1, 2 if few else None)
    classes = dice.some([*PRIORITIES][:4], 1, 2 if few else None)
    constrained = dice.choice((0, 0, 15))
    equal = dice.chance(30)
    found = [_node(dice, f"node-{number:03}") for number in range(nodes)]
    pods = [
        _running(dice, f"{node['metadata']['name']}-{number}", node, starts, classes, constrained, equal=equal)
        for node in found
        for number in range(dice.randint(0 if dice.chance(20) else 2, 5))
    ]
    nominated = [_nominated(dice, found)] if dice.chance(20) else []
    devices = _devices(dice, found, pods) if dice.chance(30) else []
    return World((_namespace(),), (), tuple(found), tuple(pods), tuple(nominated), tuple(devices))


def random_budgets(dice: Dice) -> list[Object]:
    """Return PodDisruptionBudgets with a status, in most clusters none."""
    if not dice.chance(40):
        return []
    return [_budget(dice, number) for number in range(dice.randint(1, 3))]


def random_preemptor(dice: Dice, name: str, claim: str) -> Object:
    """Return a pod that most nodes cannot take while others run there; unless empty, `claim` may be its own."""
    spec: dict[str, Any] = _spec(dice, dice.choice(("2", "3", "4", "5", "9")))
    spec["priorityClassName"] = dice.choice(_PREEMPTORS)
    if dice.chance(15):
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if dice.chance(15):
        spec["affinity"] = {"podAntiAffinity": _terms(dice, dice.choice((HOSTNAME, ZONE)))}
    elif dice.chance(10):
        spec["affinity"] = {"podAffinity": _terms(dice, ZONE)}
    if dice.chance(20):
        spec["topologySpreadConstraints"] = [_spread(dice)]
    if dice.chance(15):
        spec["nodeSelector"] = {ZONE: "a"}
    if dice.chance(5):
        spec["priorityClassName"] = NEVER
    if claim and dice.chance(70):
        spec["resourceClaims"] = claiming(claim)
        if dice.chance(30):
            spec["containers"][0]["resources"]["requests"]["cpu"] = "1"
    return _pod(name, {"app": dice.choice("ab")}, spec)


def _namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def _node(dice: Dice, name: str) -> Object:
    cpu = dice.choice(("4", "5", "6"))
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": dice.choice(("4", "5", "110"))}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: dice.choice("ab")}},
        "spec": {"unschedulable": True} if dice.chance(5) else {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _running(
    dice: Dice,
    name: str,
    node: Object,
    starts: Sequence[str | None],
    classes: Sequence[str],
    constrained: int,
    *,
    equal: bool,
) -> Object:
    spec = _spec(dice, "1" if equal else dice.choice(("1", "1", "2", "3")))
    spec |= {"nodeName": node["metadata"]["name"], "priorityClassName": dice.choice(classes)}
    if dice.chance(3):
        spec["priorityClassName"] = "preempt-high"
    if dice.chance(10):
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if dice.chance(constrained):
        spec["affinity"] = {"podAntiAffinity": _terms(dice, dice.choice((HOSTNAME, ZONE)))}
    pod = _pod(name, {} if dice.chance(10) else {"app": dice.choice("abc")}, spec)
    start = dice.choice(starts)
    if start:
        pod["status"] = {"phase": "Running", "startTime": start}
    if dice.chance(3):
        pod["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
    return pod


def _devices(dice: Dice, nodes: Sequence[Object], pods: Sequence[Object]) -> list[Object]:
    """Return devices of some nodes, claims of `pods` for some of these, and claims that a preemptor may use.

    A few of the latter have a device on one node already.
    """
    names, found = [each["metadata"]["name"] for each in nodes], [make_device_class()]
    # Without a ResourceSlice, a cluster file does not show that there are no devices.
    cards = {name: dice.choice((0, 1, 1, 2, 3)) for name in names} | {names[0]: dice.choice((1, 2))}
    found += [make_slice(name, *make_cards(count)) for name, count in cards.items() if count]
    free = {name: [f"card-{number}" for number in range(count)] for name, count in cards.items()}
    for pod in pods:
        node, own = pod["spec"]["nodeName"], f"of-{pod['metadata']['name']}"
        if free[node] and dice.chance(50):
            found.append(allocated(_claim(own), node, free[node].pop()))
            pod["spec"]["resourceClaims"] = claiming(own)
    for number in range(WANTED_CLAIMS):
        claim, with_free = _claim(f"{CLAIM}-{number}", dice.choice((1, 1, 2))), [name for name in names if free[name]]
        node = dice.choice(with_free) if with_free and dice.chance(20) else ""
        found.append(allocated(claim, node, free[node].pop()) if node else claim)
    return found


def _claim(name: str, count: int = 1) -> Object:
    claim = make_resource_claim(name, exactly(count=count))
    return claim | {"metadata": claim["metadata"] | {"namespace": NAMESPACE}}


def _nominated(dice: Dice, nodes: Sequence[Object]) -> Object:
    spec = _spec(dice, dice.choice(("1", "2", "4")))
    spec["priorityClassName"] = dice.choice(("preempt-high", "preempt-high", "preempt-10"))
    status = {"nominatedNodeName": dice.choice(nodes)["metadata"]["name"]}
    return {**_pod("nominated", {"app": "c"}, spec), "status": status}


def _spec(dice: Dice, cpu: str) -> dict[str, Any]:
    requests = {"cpu": cpu} | ({"memory": "1Gi"} if dice.chance(30) else {})
    container = {"name": "main", "image": "example.com/image", "resources": {"requests": requests}}
    return {"containers": [container], "terminationGracePeriodSeconds": 0}


def _pod(name: str, labels: Mapping[str, str], spec: dict[str, Any]) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {**labels}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _terms(dice: Dice, key: str) -> Object:
    term = {"labelSelector": {"matchLabels": {"app": dice.choice("abc")}}, "topologyKey": key}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _spread(dice: Dice) -> Object:
    return {
        "maxSkew": dice.choice((1, 2)),
        "topologyKey": dice.choice((HOSTNAME, ZONE)),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": dice.choice("abc")}},
    }


def _budget(dice: Dice, number: int) -> Object:
    several = {"key": "app", "operator": dice.choice(("In", "NotIn")), "values": dice.some("abc", 1, 2)}
    of_app = {"matchLabels": {"app": dice.choice("abc")}}
    selector: Object = dice.choice(({}, of_app, {"matchLabels": {"app": "a"}}, {"matchExpressions": [several]}))
    status: Object = {
        "disruptionsAllowed": dice.randint(0, 2),
        "currentHealthy": 3,
        "desiredHealthy": 1,
        "expectedPods": 3,
        "disruptedPods": {"node-000-0": "2026-12-01T00:00:00Z"} if dice.chance(30) else {},
    }
    return {
        "apiVersion": POLICY,
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{number}", "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "selector": selector},
        "status": {**status, "observedGeneration": 1},
    }

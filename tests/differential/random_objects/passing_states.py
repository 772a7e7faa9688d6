"""Random nodes in states that pass, each also as it is once the state is gone, and pods that ask for their cards."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import NamedTuple

from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.support.admission import DOMAIN, TYPE, USAGE
from tests.support.objects.builders import make_node_object, make_pod
from webhook.kube.pod.taints import TEMPORARY_TAINTS

NAMESPACE = "team-a"
SHARES = ("nvidia.com/gpumem", "nvidia.com/gpucores")
SHARING, ELSEWHERE = "hami-scheduler", "elsewhere"

_PRODUCT = "nvidia.com/gpu.product"
_COUNTS = {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 7, "huawei.com/Ascend910": 8}
_CONDITIONS = ("not-ready", "unreachable", "disk-pressure", "network-unavailable", "out-of-service")
_KEYS = (
    *(f"{key}gpu" if key.endswith("/") else key for key in TEMPORARY_TAINTS),
    *(f"node.kubernetes.io/{each}" for each in _CONDITIONS),
    "node.cloudprovider.kubernetes.io/uninitialized",
)
# What keeps pods off in both states: a taint that stays, another zone.
_LASTING: Sequence[tuple[dict[str, str], list[str]]] = (({}, ["reserved=x:NoSchedule"]), ({"zone": "b"}, []))


class PassingNode(NamedTuple):
    """A node as it is `now`, and `later`, once the state that passes is gone."""

    now: Object
    later: Object


def passing_node(dice: Dice, name: str) -> PassingNode:
    """Return a node of one kind of card with up to two states that pass, and sometimes an obstacle that stays."""
    resource = dice.choice((*_COUNTS, "nvidia.com/gpu", "nvidia.com/gpu"))
    lasting_labels, lasting_taints = dice.choice(_LASTING) if dice.chance(20) else ({}, [])
    labels = {USAGE: "training", "zone": "a", **lasting_labels}
    later = make_node_object(
        name,
        labels=labels | ({_PRODUCT: "H20", "nvidia.com/gpu.count": "8"} if resource == "nvidia.com/gpu" else {}),
        taints=[f"{USAGE}=training:NoSchedule", *lasting_taints],
        capacity={resource: _COUNTS[resource], "cpu": 64, "memory": "256Gi"},
    )
    now = deepcopy(later)
    states: Sequence[Callable[[Dice, Object, str], None]] = (_taint, _cordon, _break, _forget, _leave)
    for state in dice.some(states, 1, 2):
        state(dice, now, resource)
    return PassingNode(now, later)


def asking_pods(dice: Dice, count: int) -> list[Object]:
    """Return pods of training that ask for cards, or for shares of one, of a scheduler that is listed or not."""
    return [_pod(dice, f"asking-{number}") for number in range(count)]


def _pod(dice: Dice, name: str) -> Object:
    resource = dice.choice((*_COUNTS, "nvidia.com/gpu"))
    scheduler = dice.choice(("default-scheduler", "default-scheduler", SHARING, ELSEWHERE))
    amounts = {resource: dice.choice((1, 4, 7, 8, 16))}
    if scheduler == SHARING and dice.chance(70):
        amounts = {"nvidia.com/gpu": 1} | dict.fromkeys(dice.some(SHARES), 30)
    pod = make_pod(name).annotate(TYPE, "training").annotate(f"{DOMAIN}/bin-packing", "false").limits(**amounts)
    # The annotation keeps the injected scheduler away.
    spec = {"schedulerName": scheduler} if scheduler != "default-scheduler" else {}
    pod = pod.annotate(f"{DOMAIN}/scheduler", "default-scheduler") if not spec else pod.spec(**spec)
    if dice.chance(30):
        pod = pod.node_selector("zone", dice.choice(("a", "b", "c")))
    if dice.chance(20):
        pod = pod.toleration(dice.choice(_KEYS), operator="Exists")
    made: Object = pod.obj()
    made["metadata"]["namespace"] = NAMESPACE
    return made


def _taint(dice: Dice, node: Object, _: str) -> None:
    effects = dice.some(("NoSchedule", "NoExecute", "PreferNoSchedule"), 1, 2)
    key = dice.choice(_KEYS)
    node["spec"]["taints"] += [{"key": key, "value": "1764000000", "effect": each} for each in effects]


def _cordon(_: Dice, node: Object, __: str) -> None:
    node["spec"]["unschedulable"] = True


def _break(dice: Dice, node: Object, resource: str) -> None:
    node["status"]["allocatable"][resource] = str(dice.randint(0, _COUNTS[resource] - 1))


def _forget(_: Dice, node: Object, resource: str) -> None:
    """Take the resource away, if labels state the cards: the device plugin has not registered yet."""
    if f"{resource}.count" in node["metadata"]["labels"]:
        for part in ("capacity", "allocatable"):
            node["status"][part].pop(resource, None)


def _leave(_: Dice, __: Object, ___: str) -> None:
    """Leave the node as it is."""

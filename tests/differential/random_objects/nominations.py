"""Random pods that wait for a node which is kept for them, and the priorities by which others yield to them."""

from collections.abc import Sequence

from tests.differential.random_objects import constraints
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.pods import base_pod

# Pods of these classes do not preempt others, so that a question does not change the cluster.
PRIORITIES = {"differential-low": -10, "differential-high": 1000}
PRIORITY_CLASSES: tuple[Object, ...] = tuple(
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never",
    }
    for name, value in PRIORITIES.items()
)

# No kube-scheduler of the tests has a profile of that name.
NO_SCHEDULER = "nobody"
_SCHEDULERS = ("default-scheduler",) * 6 + ("binpack", NO_SCHEDULER)


def random_nominated_pods(dice: Dice, nodes: Sequence[str], namespaces: Sequence[str]) -> tuple[Object, ...]:
    """Return pods that are nominated to some of `nodes`; in most clusters none is."""
    if not dice.chance(35):
        return ()
    return tuple(_nominated_pod(dice, f"kept-{number}", nodes, namespaces) for number in range(_count(dice, nodes)))


def let_some_be_nominated(dice: Dice, pods: Sequence[Object], nodes: Sequence[str]) -> None:
    """Give some of `pods`, which are to be asked about, a priority, and nominate some to one of `nodes`.

    Those with volumes are not: kube-scheduler would begin to bind their claims while the node is only kept.
    """
    for pod in pods:
        _give_priority(dice, pod)
        if dice.chance(20) and not pod["spec"].keys() & {"schedulingGates", "volumes", "resourceClaims"}:
            pod["status"] = {"nominatedNodeName": dice.choice(nodes)}


def is_heeded(obj: Object) -> bool:
    """Return true if kube-scheduler reads `obj`, a pod or another object."""
    return bool(obj.get("spec", {}).get("schedulerName") != NO_SCHEDULER)


def _count(dice: Dice, nodes: Sequence[str]) -> int:
    return dice.randint(1, dice.choice((3, len(nodes), 2 * len(nodes))))


def _nominated_pod(dice: Dice, name: str, nodes: Sequence[str], namespaces: Sequence[str]) -> Object:
    pod = base_pod(dice, name, dice.choice(namespaces))
    pod["spec"]["schedulerName"] = dice.choice(_SCHEDULERS)
    _give_priority(dice, pod)
    if dice.chance(30):
        pod["spec"]["affinity"] = constraints.pod_affinity(dice, namespaces, 40)
    pod["status"] = {"nominatedNodeName": dice.choice((*nodes, "elsewhere") if dice.chance(10) else nodes)}
    return pod


def _give_priority(dice: Dice, pod: Object) -> None:
    if dice.chance(40):
        name = dice.choice(tuple(PRIORITIES))
        pod["spec"] |= {"priorityClassName": name, "priority": PRIORITIES[name]}

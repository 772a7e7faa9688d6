"""Random Services and controllers: kube-scheduler spreads, by default, the pods that they select."""

from collections.abc import Sequence

from tests.differential.random_objects.constraints import POD_LABELS, Object
from tests.differential.random_objects.dice import Dice

# None that a controller of tests/controlplane may be acting on: it would make and delete pods.
_STATEFUL_SET = ("apps/v1", "StatefulSet")
_OWNERS = (_STATEFUL_SET, _STATEFUL_SET, _STATEFUL_SET, ("apps/v1", "ReplicaSet"), ("batch/v1", "Job"))
_NAMES = ("one", "two")
_TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "pause:3.10"}]}}


def random_workloads(dice: Dice, namespaces: Sequence[str]) -> tuple[Object, ...]:
    """Some in each namespace, or in none."""
    if dice.chance(40):
        return ()
    services = [_service(dice, name, namespace) for namespace in namespaces for name in _NAMES if dice.chance(25)]
    stateful_sets = [
        _stateful_set(dice, name, namespace) for namespace in namespaces for name in _NAMES if dice.chance(60)
    ]
    return (*services, *stateful_sets)


def owner_reference(dice: Dice) -> Object:
    """Return the controller of a pod: one that may be there, or one of a kind that is not."""
    api_version, kind = dice.choice(_OWNERS)
    return {"apiVersion": api_version, "kind": kind, "name": dice.choice(_NAMES), "uid": "owner", "controller": True}


def _selected(dice: Dice) -> dict[str, str]:
    return {key: dice.choice(POD_LABELS[key]) for key in dice.some(tuple(POD_LABELS), 1, 2)}


def _service(dice: Dice, name: str, namespace: str) -> Object:
    spec: Object = {"clusterIP": "None", "selector": _selected(dice)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _stateful_set(dice: Dice, name: str, namespace: str) -> Object:
    labels = _selected(dice)
    template = _TEMPLATE | {"metadata": {"labels": labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 0, "serviceName": name, "selector": {"matchLabels": labels}, "template": template},
    }

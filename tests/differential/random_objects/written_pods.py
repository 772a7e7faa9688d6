"""Random RuntimeClasses and LimitRanges, and pods as users write them, which no API server has completed."""

from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.support.objects.api_server import limit_range, runtime_class

CLASSES = tuple(f"class-{number}" for number in range(5))
RACKS = ("r0", "r1", "r2")
TAINTS = ("sandbox", "fast")
# The last LimitRange requests it by default: a pod that has it shows that the API server knows all of them.
MARK = "ephemeral-storage"
MILLI_OF_MARK = "1"

_CPU = ("100m", "0.25", "500m", "1", "1500m", "2", "2500m", "3")
_MEMORY = ("64Mi", "512Mi", "1e9", "1Gi", "1.5Gi", "2G", "3Gi")
_CARD = "example.com/card"
_SECONDS: tuple[Object, ...] = ({}, {}, {"tolerationSeconds": 60}, {"tolerationSeconds": 600})


def random_classes(dice: Dice) -> list[Object]:
    return [_class(dice, name) for name in CLASSES]


def random_limit_ranges(dice: Dice, namespace: str) -> list[Object]:
    """Return one or two LimitRanges; only one has defaults, because the API server reads them in any order."""
    item: Object = _of_containers(dice) if dice.chance(85) else {"type": "Container"}
    item["defaultRequest"] = {**item.get("defaultRequest", {}), MARK: MILLI_OF_MARK}
    found = [limit_range(item, name="containers", namespace=namespace)]
    if dice.chance(50):
        found.insert(0, limit_range(_of_pods(dice), name="pods", namespace=namespace))
    return found


def written_pod(dice: Dice, name: str, namespace: str) -> Object:
    spec: Object = {"containers": [_container(dice, f"c{index}") for index in range(dice.randint(1, 3))]}
    if dice.chance(30):
        spec["initContainers"] = [
            _container(dice, f"i{index}") | ({"restartPolicy": "Always"} if dice.chance(50) else {})
            for index in range(dice.randint(1, 3))
        ]
    if dice.chance(60):
        spec["runtimeClassName"] = dice.choice(CLASSES) if dice.chance(96) else "gone"
    if dice.chance(3):
        spec["overhead"] = {"cpu": "250m"}
    if dice.chance(25):
        spec["nodeSelector"] = {"rack": dice.choice(RACKS)}
    if dice.chance(40):
        spec["tolerations"] = [_toleration(dice, dice.choice(TAINTS)) for _ in range(dice.randint(1, 3))]
    if dice.chance(15):
        spec["resources"] = {
            part: {"cpu": amount} for part, amount in (("limits", "14"), ("requests", "12")) if dice.chance(70)
        }
    if dice.chance(5):
        spec["priorityClassName"] = dice.choice(("gone", "system-node-critical"))
    if dice.chance(5):
        spec["priority"] = dice.choice((0, 7))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _class(dice: Dice, name: str) -> Object:
    fields: Object = {}
    if dice.chance(60):
        amounts = {"cpu": dice.choice(_CPU), "memory": dice.choice(_MEMORY)}
        fields["overhead"] = {"podFixed": {key: amount for key, amount in amounts.items() if dice.chance(70)}}
    if dice.chance(60):
        scheduling: Object = {}
        if dice.chance(60):
            scheduling["nodeSelector"] = {"rack": dice.choice(RACKS)}
        if dice.chance(60):
            scheduling["tolerations"] = [_toleration(dice, key) for key in dice.some(TAINTS)]
        fields["scheduling"] = scheduling
    return runtime_class(name, **fields)


def _toleration(dice: Dice, key: str) -> Object:
    effect = dice.choice(("", "NoSchedule", "NoExecute"))
    seconds = dice.choice(_SECONDS) if effect == "NoExecute" else {}
    value = {"operator": "Exists"} if dice.chance(50) else {"value": dice.choice(("", "yes"))}
    return {"key": key, **value, **({"effect": effect} if effect else {}), **seconds}


def _of_containers(dice: Dice) -> Object:
    return {"type": "Container", **_parts(dice, ("default", "defaultRequest", "min", "max"), 35), **_ratio(dice)}


def _of_pods(dice: Dice) -> Object:
    return {"type": "Pod", **_parts(dice, ("min", "max"), 30), **_ratio(dice)}


def _ratio(dice: Dice) -> Object:
    return {"maxLimitRequestRatio": {"cpu": dice.choice(("1", "1500m", "6"))}} if dice.chance(8) else {}


def _parts(dice: Dice, names: tuple[str, ...], percent: float) -> Object:
    """Return amounts that grow in the order that a LimitRange requires: min, defaultRequest, default, max."""
    found: Object = {name: {} for name in names}
    for resource, amounts in (
        ("cpu", {"min": "100m", "defaultRequest": dice.choice(("500m", "1")), "default": "2500m", "max": "3"}),
        ("memory", {"min": "64Mi", "defaultRequest": "512Mi", "default": dice.choice(("1.5Gi", "2G")), "max": "3Gi"}),
        (_CARD, {"default": "1", "defaultRequest": "1", "min": "1", "max": "2"}),
    ):
        if dice.chance(10 if resource == _CARD else 75):
            for name in names:
                if dice.chance(percent):
                    found[name][resource] = amounts[name]
    return {name: amounts for name, amounts in found.items() if amounts}


def _container(dice: Dice, name: str) -> Object:
    resources: Object = {"requests": {}, "limits": {}}
    for resource, amounts in (("cpu", _CPU), ("memory", _MEMORY)):
        request = dice.randrange(len(amounts))
        limit = dice.randrange(request if dice.chance(95) else 0, len(amounts))
        for part, place in (("requests", request), ("limits", limit)):
            if dice.chance(35):
                resources[part][resource] = amounts[place]
    if dice.chance(15):
        resources["limits"][_CARD] = dice.choice(("1", "2"))
    return {"name": name, "image": "pause:3.10", "resources": {part: each for part, each in resources.items() if each}}

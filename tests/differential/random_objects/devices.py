"""Claims for devices, of a class that there is and of one that there is not; there are no devices."""

from collections.abc import Sequence

from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.support.objects.devices import make_device_class, make_resource_claim

_CLASSES = {"known": "gpu", "unknown": "nowhere"}


def random_devices(dice: Dice, namespaces: Sequence[str]) -> tuple[Object, ...]:
    """Return a class, and claims of each namespace, some with alternatives."""
    claims = [
        _claim(dice, name, device_class, namespace)
        for namespace in namespaces
        for name, device_class in _CLASSES.items()
    ]
    return (make_device_class(_CLASSES["known"], any_driver=True), *claims)


def use_devices(dice: Dice, pods: Sequence[Object], percent: float) -> None:
    """Let that many of `pods` use a claim, or two."""
    for pod in pods:
        if dice.chance(percent):
            names = dice.some(tuple(_CLASSES), 1, 2)
            pod["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]


def _claim(dice: Dice, name: str, device_class: str, namespace: str) -> Object:
    if dice.chance(30):
        alternatives = [{"name": f"a{index}", "deviceClassName": each} for index, each in enumerate(_CLASSES.values())]
        request: Object = {"name": "r", "firstAvailable": alternatives if name == "unknown" else alternatives[:1]}
    else:
        request = {"name": "r", "exactly": {"deviceClassName": device_class}}
    claim = make_resource_claim(name, request)
    claim["metadata"]["namespace"] = namespace
    return claim

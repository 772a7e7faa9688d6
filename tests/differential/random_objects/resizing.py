"""Random reports of kubelets on running containers that are being resized in place."""

from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice

_AMOUNTS: tuple[dict[str, str], ...] = (
    {"cpu": "100m"},
    {"cpu": "2"},
    {"cpu": "1500m", "memory": "1Gi"},
    {"memory": "64Mi"},
    {},
)
_OF_PODS: tuple[dict[str, str], ...] = ({"cpu": "30"}, {"cpu": "24", "memory": "64Gi"})
_CONDITIONS: tuple[list[Object], ...] = (
    [],
    [],
    [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
    [{"type": "PodResizeInProgress", "status": "True"}],
)


def random_resize(dice: Dice, pod: Object) -> Object:
    """Return a status of `pod` in which containers have other resources than they ask for."""
    status: Object = {"phase": "Running", "conditions": dice.choice(_CONDITIONS)}
    if "resources" in pod["spec"]:
        status |= {"resources": {"requests": dice.choice(_OF_PODS)}, "allocatedResources": dice.choice(_OF_PODS)}
    for containers, statuses in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        if reported := [_container_status(dice, each["name"]) for each in pod["spec"].get(containers, ())]:
            status[statuses] = reported
    return status


def _container_status(dice: Dice, name: str) -> Object:
    status: Object = {"name": name, "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    if dice.chance(70):
        status["resources"] = {"requests": dice.choice(_AMOUNTS)}
    if dice.chance(70):
        status["allocatedResources"] = dice.choice(_AMOUNTS)
    return status

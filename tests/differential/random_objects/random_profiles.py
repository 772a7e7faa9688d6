"""Random scheduler profiles: enabled and disabled plugins, weights by extension point, and args."""

from tests.controlplane.configuration import scheduler_configuration
from tests.differential.profiles import STANDARD
from tests.differential.random_objects.constraints import HOSTNAME, RACK, ZONE, Object
from tests.differential.random_objects.dice import Dice

_SCORES = (
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "InterPodAffinity",
    "NodeAffinity",
    "PodTopologySpread",
    "TaintToleration",
    "VolumeBinding",
)
FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)
ALWAYS_ENABLED = {
    "NodePorts": "a pod could get the ports of another; kube-scheduler would count them as free after it is deleted",
    "VolumeBinding": "kube-scheduler binds the claims that this filter has matched",
    "DynamicResources": "kube-scheduler reserves the devices that this filter has allocated",
}
"""The filters that no random profile disables, with the reason."""
_RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "example.com/nic", "ephemeral-storage", "hugepages-2Mi")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def random_configuration(dice: Dice, names: tuple[str, ...]) -> Object:
    """Return a KubeSchedulerConfiguration with random profiles of `names` and the standard ones, for nominated pods."""
    profiles = [*({"schedulerName": name} for name in STANDARD), *(_profile(dice, name) for name in names)]
    return {**scheduler_configuration(), "profiles": profiles}


def _profile(dice: Dice, name: str) -> Object:
    args = {plugin: make(dice) for plugin, make in _ARGS.items() if dice.chance(50)}
    config = [{"name": plugin, "args": each} for plugin, each in args.items()]
    return {"schedulerName": name, "plugins": _plugins(dice), "pluginConfig": config}


def _plugins(dice: Dice) -> Object:
    plugins: Object = {}
    off = dice.some(FILTERS, 1, 3) if dice.chance(40) else []
    remaining = [each for each in _SCORES if each not in off]
    if off or dice.chance(40):
        plugins["multiPoint"] = {"disabled": _named(off), "enabled": _weighted(dice, dice.some(remaining, 1, 3))}
    if dice.chance(30):
        # One plugin must score every pod: kube-scheduler logs no scores if all plugins are skipped.
        enabled = _weighted(dice, ["NodeResourcesFit", *dice.some(remaining, 0, 4)])
        replaces_all = "NodeResourcesFit" not in off and dice.chance(40)
        plugins["score"] = (
            {"disabled": _named(["*"]), "enabled": enabled}
            if replaces_all
            else {"disabled": _named(dice.some(remaining, 1, 3))}
        )
    if dice.chance(30):
        plugins["filter"] = {"disabled": _named(dice.some([each for each in FILTERS if each not in off], 1, 4))}
    return plugins


def _named(plugins: list[str]) -> list[Object]:
    return [{"name": plugin} for plugin in plugins]


def _weighted(dice: Dice, plugins: list[str]) -> list[Object]:
    return [{"name": each} | ({"weight": dice.randint(1, 20)} if dice.chance(80) else {}) for each in plugins]


def _resources(dice: Dice, largest: int) -> list[Object]:
    return [{"name": each, "weight": dice.randint(1, largest)} for each in dice.some(_RESOURCES, 1, 4)]


def _fit(dice: Dice) -> Object:
    kind = dice.choice(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", "RequestedToCapacityRatio"))
    strategy: Object = {"type": kind, "resources": _resources(dice, 9)}
    if kind == "RequestedToCapacityRatio":
        shares = sorted(dice.sample(range(101), dice.randint(1, 5)))
        shape = [{"utilization": share, "score": dice.randint(0, 10)} for share in shares]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    ignored = {"ignoredResources": ["example.com/nic"], "ignoredResourceGroups": ["nvidia.com"]}
    return {"scoringStrategy": strategy} | {key: each for key, each in ignored.items() if dice.chance(30)}


def _balanced(dice: Dice) -> Object:
    return {"resources": _resources(dice, 1)}


def _pod_affinity(dice: Dice) -> Object:
    return {
        "hardPodAffinityWeight": dice.choice((0, 1, 50, 100)),
        "ignorePreferredTermsOfExistingPods": dice.chance(50),
    }


def _spread(dice: Dice) -> Object:
    actions = ("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway")
    constraints = [
        {"maxSkew": dice.randint(1, 4), "topologyKey": key, "whenUnsatisfiable": dice.choice(actions)}
        for key in dice.some((ZONE, RACK, HOSTNAME, "use"), 0, 3)
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}


def _node_affinity(dice: Dice) -> Object:
    forbidden = {"key": "use", "operator": "NotIn", "values": [dice.choice(("hybrid", "training"))]}
    liked = {"key": dice.choice(("product", "cards")), "operator": "Exists"}
    required = {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [forbidden]}]}}
    preferred = {_PREFERRED: [{"weight": dice.randint(1, 100), "preference": {"matchExpressions": [liked]}}]}
    return {"addedAffinity": dice.choice((required, preferred, required | preferred))}


_ARGS = {
    "NodeResourcesFit": _fit,
    "NodeResourcesBalancedAllocation": _balanced,
    "InterPodAffinity": _pod_affinity,
    "PodTopologySpread": _spread,
    "NodeAffinity": _node_affinity,
}

"""The profiles of the random pods' schedulers: kube-scheduler and the placement check read the same configuration."""

import json
from typing import Any

from tests.controlplane.configuration import scheduler_configuration
from tests.differential.random_objects.constraints import HOSTNAME, RACK, ZONE
from webhook.placement.config.profile_loader import parse_profiles

Object = dict[str, Any]


def _profile(name: str, plugins: Object | None = None, **args: Object) -> Object:
    configs = [{"name": plugin, "args": each} for plugin, each in args.items()]
    return {"schedulerName": name, "plugins": plugins or {}, "pluginConfig": configs}


def _resources(**weights: int) -> list[Object]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


_RATIO = _profile(
    "ratio",
    NodeResourcesFit={
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "resources": _resources(**{"cpu": 2, "memory": 1, "nvidia.com/gpu": 5, "example.com/nic": 1}),
            "requestedToCapacityRatio": {
                "shape": [
                    {"utilization": 10, "score": 0},
                    {"utilization": 60, "score": 9},
                    {"utilization": 100, "score": 3},
                ]
            },
        },
        "ignoredResources": ["ephemeral-storage"],
    },
)
_WEIGHED = _profile(
    "weighed",
    {
        "multiPoint": {"disabled": [{"name": "NodeAffinity"}], "enabled": [{"name": "NodeAffinity", "weight": 11}]},
        "score": {
            "disabled": [{"name": "ImageLocality"}, {"name": "NodeResourcesFit"}],
            "enabled": [{"name": "NodeResourcesFit", "weight": 7}],
        },
    },
    NodeResourcesFit={
        "scoringStrategy": {
            "type": "LeastAllocated",
            "resources": _resources(**{"memory": 3, "nvidia.com/gpu": 2, "ephemeral-storage": 1}),
        },
        "ignoredResourceGroups": ["example.com"],
    },
    NodeResourcesBalancedAllocation={"resources": _resources(**{"cpu": 1, "memory": 1, "nvidia.com/gpu": 1})},
)
_SOCIAL = _profile(
    "social",
    {"filter": {"disabled": [{"name": "TaintToleration"}]}, "score": {"disabled": [{"name": "TaintToleration"}]}},
    InterPodAffinity={"hardPodAffinityWeight": 40, "ignorePreferredTermsOfExistingPods": True},
    NodeAffinity={
        "addedAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "use", "operator": "NotIn", "values": ["hybrid"]}]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 30, "preference": {"matchExpressions": [{"key": "product", "operator": "Exists"}]}}
            ],
        }
    },
)
_SPREADING = _profile(
    "spreading",
    PodTopologySpread={
        "defaultingType": "List",
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
            {"maxSkew": 2, "topologyKey": RACK, "whenUnsatisfiable": "ScheduleAnyway"},
            {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"},
        ],
    },
)

_STANDARD: Object = scheduler_configuration()
CONFIGURATION: Object = {
    **_STANDARD,
    "profiles": [*_STANDARD["profiles"], _RATIO, _WEIGHED, _SOCIAL, _SPREADING],
}
# By the scheduler names of pods.
PROFILES = parse_profiles(json.dumps(CONFIGURATION), "configuration")
# Those that the scheduler of tests/controlplane has.
STANDARD = ("default-scheduler", "binpack")
OTHERS = ("ratio", "weighed", "social", "spreading")

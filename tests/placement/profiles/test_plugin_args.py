"""The limits of what args of plugins may say."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from webhook.placement.profiles.plugin_args import (
    AddedAffinity,
    Args,
    InterPodAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
)

_RACK = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}


def _spread(*constraints: Mapping[str, Any]) -> dict[str, Any]:
    return {"defaultingType": "List", "defaultConstraints": [*constraints]}


def _resources(*weights: int, name: str = "cpu") -> dict[str, Any]:
    return {"resources": [{"name": name, "weight": weight} for weight in weights]}


def _shape(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}}


def _added(weight: int) -> dict[str, Any]:
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "preference": {}}]}


@pytest.mark.parametrize(
    ("model", "args", "error"),
    [
        (InterPodAffinityArgs, {"hardPodAffinityWeight": 0}, None),
        (InterPodAffinityArgs, {"hardPodAffinityWeight": 100}, None),
        (InterPodAffinityArgs, {"hardPodAffinityWeight": -1}, "must be in the range 0-100"),
        (InterPodAffinityArgs, {"hardPodAffinityWeight": 101}, "must be in the range 0-100"),
        (PodTopologySpreadArgs, _spread(_RACK), None),
        (PodTopologySpreadArgs, _spread(_RACK | {"maxSkew": 0}), "must be greater than 0"),
        (PodTopologySpreadArgs, _spread(_RACK | {"minDomains": 1}), None),
        (PodTopologySpreadArgs, _spread(_RACK | {"minDomains": 0}), "must be greater than 0"),
        (PodTopologySpreadArgs, _spread(_RACK, _RACK | {"maxSkew": 2}), "twice with the same whenUnsatisfiable"),
        (PodTopologySpreadArgs, _spread(_RACK, _RACK | {"whenUnsatisfiable": "DoNotSchedule"}), None),
        (PodTopologySpreadArgs, _spread(_RACK, _RACK | {"topologyKey": "zone"}), None),
        (PodTopologySpreadArgs, {"defaultConstraints": [_RACK]}, "defaultingType must be List"),
        (NodeResourcesBalancedAllocationArgs, _resources(1), None),
        (NodeResourcesBalancedAllocationArgs, _resources(0), None),
        (NodeResourcesBalancedAllocationArgs, _resources(2), "each weight must be 1"),
        (NodeResourcesBalancedAllocationArgs, _resources(1, 1), "must not hold a resource twice"),
        (NodeResourcesFitArgs, {"ignoredResourceGroups": ["example.com"]}, None),
        (NodeResourcesFitArgs, {"ignoredResourceGroups": ["example.com/gpu"]}, "before the slash"),
        (NodeResourcesFitArgs, {"ignoredResourceGroups": ["a b"]}, "before the slash"),
        (NodeResourcesFitArgs, _shape((0, 0), (100, 10)), None),
        (NodeResourcesFitArgs, _shape((50, 5)), None),
        (NodeResourcesFitArgs, _shape((-1, 0)), "must be in the range 0-100"),
        (NodeResourcesFitArgs, _shape((101, 0)), "must be in the range 0-100"),
        (NodeResourcesFitArgs, _shape((0, 11)), "must be in the range 0-10"),
        (NodeResourcesFitArgs, _shape((0, -1)), "must be in the range 0-10"),
        (NodeResourcesFitArgs, {"scoringStrategy": {"type": "RequestedToCapacityRatio"}}, "and only with it"),
        (NodeResourcesFitArgs, {"scoringStrategy": {"type": "MostAllocated"}}, None),
        (AddedAffinity, _added(1), None),
        (AddedAffinity, _added(100), None),
        (AddedAffinity, _added(0), "must be in the range 1-100"),
        (AddedAffinity, _added(101), "must be in the range 1-100"),
    ],
)
def test_args_are_taken_up_to_their_limits(model: type[Args], args: dict[str, Any], error: str | None) -> None:
    if error is None:
        model.model_validate(args, by_alias=True, by_name=False)
    else:
        with pytest.raises(ValidationError, match=error):
            model.model_validate(args, by_alias=True, by_name=False)

"""The requests that must be free before a waiting pod is tried again."""

from dataclasses import replace

import pytest

from placement_planner.simulation.backlog import _filtered_requests
from tests.support.objects.builders import make_pod
from webhook.placement.profiles.plugin_registry import PluginArgs
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.scorer import PodSignature


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (PluginArgs(), ["example.com/nic", "nvidia.com/gpu"]),
        (PluginArgs(ignored_resources=frozenset(("example.com/nic",))), ["nvidia.com/gpu"]),
        (PluginArgs(ignored_resource_groups=frozenset(("nvidia.com",))), ["example.com/nic"]),
    ],
)
def test_resources_that_the_profile_ignores_need_not_be_free(args: PluginArgs, wanted: list[str]) -> None:
    pod = PodSignature.of(make_pod().requests(**{"example.com/nic": "1", "nvidia.com/gpu": "8"}).obj())

    assert sorted(name for name, _ in _filtered_requests(replace(DEFAULT, args=args), pod)) == wanted

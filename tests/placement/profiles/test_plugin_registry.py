"""The table of plugins and the profiles made of it."""

import pkgutil
import re

from webhook.placement import plugins
from webhook.placement.profiles.plugin_registry import PLUGIN_BY_NAME, PLUGINS, PluginArgs, modelled_plugins
from webhook.placement.profiles.profile import BINPACK, DEFAULT

_MADE = modelled_plugins(PluginArgs())


def test_every_file_of_the_folder_is_one_registered_plugin() -> None:
    files = {module.name for module in pkgutil.iter_modules(plugins.__path__)}
    assert sorted(files) == sorted(_snake_case(plugin.name) for plugin in _MADE)


def test_plugin_has_the_name_of_its_class() -> None:
    for plugin in _MADE:
        assert type(plugin).__name__ == plugin.name
        assert type(plugin).__module__.endswith(f".{_snake_case(plugin.name)}")


def test_a_plugin_has_one_row() -> None:
    assert len(PLUGIN_BY_NAME) == len(PLUGINS)


def test_args_have_the_name_of_their_plugin() -> None:
    for row in PLUGINS:
        assert row.args is None or row.args.__name__ == f"{row.name}Args"


def test_order_and_weights_are_those_of_kube_scheduler() -> None:
    for profile in (DEFAULT, BINPACK):
        assert [plugin.name for plugin in profile.filters] == [
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
        ]
        assert {plugin.name: weight for plugin, weight in profile.scores} == {
            "TaintToleration": 3,
            "NodeAffinity": 14 if profile is BINPACK else 2,
            "NodeResourcesFit": 1,
            "VolumeBinding": 1,
            "PodTopologySpread": 2,
            "InterPodAffinity": 2,
            "DynamicResources": 2,
            "NodeResourcesBalancedAllocation": 1,
            "ImageLocality": 1,
        }


def test_args_that_are_not_given_are_kube_scheduler_s() -> None:
    args = PluginArgs()
    assert args.hard_pod_affinity_weight == 1
    assert not args.ignore_preferred_terms_of_existing_pods
    assert args.balanced_resources == ("cpu", "memory")
    assert (args.ignored_resources, args.ignored_resource_groups) == (frozenset(), frozenset())
    assert [(each.topology_key, each.max_skew, each.when_unsatisfiable) for each in args.default_constraints] == [
        ("kubernetes.io/hostname", 3, "ScheduleAnyway"),
        ("topology.kubernetes.io/zone", 5, "ScheduleAnyway"),
    ]
    assert args.system_defaulted


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()

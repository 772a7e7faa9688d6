"""The table of plugins and the profiles made of it."""

import pkgutil
import re

from webhook.placement import plugins
from webhook.placement.framework.interface import FilterPlugin, PreFilterPlugin, ScorePlugin
from webhook.placement.profiles.plugin_registry import PLUGIN_BY_NAME, PLUGINS, PluginArgs, modelled_plugins
from webhook.placement.profiles.profile import BINPACK, DEFAULT, PACK_GPUS, PROFILES

_MADE = modelled_plugins(PluginArgs())


def test_every_file_of_the_folder_is_one_registered_plugin() -> None:
    files = {module.name for module in pkgutil.iter_modules(plugins.__path__)}
    assert sorted(files) == sorted(_snake_case(plugin.name) for plugin in _MADE)


def test_plugin_has_the_name_of_its_class() -> None:
    for plugin in _MADE:
        assert type(plugin).__name__ == plugin.name
        assert type(plugin).__module__.endswith(f".{_snake_case(plugin.name)}")


def test_plugin_has_a_say_and_has_a_weight_if_it_scores() -> None:
    weights = {row.name: row.weight for row in PLUGINS} | {"PackGpus": 1}
    for plugin in _MADE:
        assert isinstance(plugin, FilterPlugin | ScorePlugin)
        assert isinstance(plugin, ScorePlugin) is (weights[plugin.name] > 0)


def test_a_plugin_has_one_row() -> None:
    assert len(PLUGIN_BY_NAME) == len(PLUGINS)


def test_a_plugin_runs_only_at_the_extension_points_of_its_row() -> None:
    for plugin in _MADE[:-1]:
        own = {
            point
            for point, kind in (("preFilter", PreFilterPlugin), ("filter", FilterPlugin), ("score", ScorePlugin))
            if isinstance(plugin, kind)
        }
        assert own <= PLUGIN_BY_NAME[plugin.name].extension_points, plugin.name


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


def test_preferred_pool_outweighs_all_other_scores_of_the_binpack_profile() -> None:
    """A score is at most 100, so NodeAffinity decides if it weighs more than all others together."""
    assert BINPACK.enabled is not None
    weights = dict(BINPACK.enabled.score)
    node_affinity = weights.pop("NodeAffinity")
    assert node_affinity == sum(weights.values()) + 1


def test_own_plugins_run_only_in_the_profile_of_this_project() -> None:
    """A kube-scheduler does not know them, so no profile that predicts one may run them."""
    own = {_MADE[-1].name}

    assert own & PLUGIN_BY_NAME.keys() == set()
    for profile in PROFILES.values():
        assert (own <= {plugin.name for plugin, _ in profile.scores}) is (profile is PACK_GPUS)


def test_pack_gpus_profile_decides_by_taints_and_affinity_then_cards_then_the_rest() -> None:
    """One point of a plugin outweighs 100 points of the plugins after it together."""
    assert PACK_GPUS.enabled is not None
    weights = dict(PACK_GPUS.enabled.score)
    first = {weights.pop("TaintToleration"), weights.pop("NodeAffinity")}
    cards = weights.pop("PackGpus")

    assert weights == {
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "ImageLocality": 1,
    }
    assert cards == 100 * sum(weights.values()) + 1
    assert first == {cards + sum(weights.values()) + 1}
    assert [each.name for each in PACK_GPUS.filters] == [each.name for each in DEFAULT.filters]


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


def test_profiles_are_found_by_name() -> None:
    assert PROFILES == {"default": DEFAULT, "binpack": BINPACK, "pack-gpus": PACK_GPUS}


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()

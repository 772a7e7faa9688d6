"""The interface of plugins, and the plugins that have it."""

from webhook.placement.framework.interface import FilterPlugin, PreFilterPlugin, ScorePlugin
from webhook.placement.profiles.plugin_registry import PLUGIN_BY_NAME, PLUGINS, PluginArgs, modelled_plugins

_MADE = modelled_plugins(PluginArgs())


def test_plugin_has_a_say_and_has_a_weight_if_it_scores() -> None:
    weights = {row.name: row.weight for row in PLUGINS} | {"PackGpus": 1}
    for plugin in _MADE:
        assert isinstance(plugin, FilterPlugin | ScorePlugin)
        assert isinstance(plugin, ScorePlugin) is (weights[plugin.name] > 0)


def test_a_plugin_runs_only_at_the_extension_points_of_its_row() -> None:
    for plugin in _MADE[:-1]:
        own = {
            point
            for point, kind in (("preFilter", PreFilterPlugin), ("filter", FilterPlugin), ("score", ScorePlugin))
            if isinstance(plugin, kind)
        }
        assert own <= PLUGIN_BY_NAME[plugin.name].extension_points, plugin.name

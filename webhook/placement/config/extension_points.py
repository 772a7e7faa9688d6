"""The plugins that run at each extension point of a profile."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from webhook.documents.field import FieldError, invalid
from webhook.placement.config.scheduler_configuration import PluginEntry, Plugins, PluginSet
from webhook.placement.profiles.plugin_registry import PLUGIN_BY_NAME, PLUGINS

EVERY = "*"

# As a KubeSchedulerConfiguration names them.
DEFAULT_PLUGINS = tuple(PluginEntry(name=row.name, weight=row.weight or None) for row in PLUGINS if row.is_default)

# The extension points that affect a profile, and their fields.
_POINTS = {
    "queueSort": "queue_sort",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "score": "score",
    "bind": "bind",
}


@dataclass(frozen=True, slots=True)
class Expansion:
    """The names of a profile's plugins in order, by extension point, and their score weights."""

    by_point: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]
    multi_point: tuple[str, ...]


def expand(plugins: Plugins) -> Expansion:
    """Return the default plugins with the changes of `plugins`. Errors are ignored; `plugin_errors` reports them.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, expandMultiPointPlugins and
    getValidScoreWeights
    """
    multi_point = _merged(plugins.multi_point)
    by_point = {
        point: tuple(_at_point(point, getattr(plugins, field), multi_point)) for point, field in _POINTS.items()
    }
    weights: dict[str, int] = {}
    for plugin in (*plugins.score.enabled, *multi_point):
        weights.setdefault(plugin.name, plugin.weight or 1)
    return Expansion(by_point, weights, tuple(plugin.name for plugin in multi_point))


def _merged(custom: PluginSet) -> list[PluginEntry]:
    """Return the default plugins without the disabled ones and with new weights, followed by the added plugins.

    Source: k8s.io/kubernetes/pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet
    """
    disabled = {plugin.name for plugin in custom.disabled}
    configured = {plugin.name: plugin for plugin in custom.enabled}
    kept = [] if EVERY in disabled else [plugin for plugin in DEFAULT_PLUGINS if plugin.name not in disabled]
    merged = [configured.get(plugin.name, plugin) for plugin in kept]
    kept_names = {plugin.name for plugin in kept}
    return merged + [plugin for plugin in custom.enabled if plugin.name not in kept_names]


def _at_point(point: str, own: PluginSet, multi_point: Iterable[PluginEntry]) -> Iterator[str]:
    """Yield the plugins that the point reconfigures, then the rest of `multi_point`, then those that the point adds."""
    enabled = [plugin.name for plugin in own.enabled]
    disabled = {plugin.name for plugin in own.disabled}
    if EVERY in disabled:
        yield from enabled
        return
    general = [each.name for each in multi_point if _runs_at(point, each.name) and each.name not in disabled]
    yield from (name for name in enabled if name in general)
    yield from (name for name in general if name not in enabled)
    yield from (name for name in enabled if name not in general)


def _runs_at(point: str, name: str) -> bool:
    row = PLUGIN_BY_NAME.get(name)
    return row is not None and point in row.extension_points


def plugin_errors(plugins: Plugins, path: str) -> Iterator[FieldError]:
    """Yield the errors of `plugins` at `path`: unknown, misplaced, duplicate or missing plugins."""
    for field in Plugins.model_fields:
        point = next((each for each, name in _POINTS.items() if name == field), "")
        enabled = getattr(plugins, field).enabled
        alias = Plugins.model_fields[field].alias
        for index, plugin in enumerate(enabled):
            where = f"{path}.{alias}.enabled[{index}].name"
            if plugin.name not in PLUGIN_BY_NAME:
                yield invalid(where, plugin.name, "must be a plugin that is built into kube-scheduler 1.37")
            elif point and not _runs_at(point, plugin.name):
                yield invalid(where, plugin.name, f"does not run at the extension point {point}; leave it out here")
            elif plugin.name in [each.name for each in enabled[:index]]:
                yield FieldError(where, "Duplicate value", plugin.name, "give each plugin once")
    yield from _missing(plugins, path)


def _missing(plugins: Plugins, path: str) -> Iterator[FieldError]:
    by_point = expand(plugins).by_point
    if len(by_point["queueSort"]) != 1:
        detail = "exactly one plugin must sort the queue; enable PrioritySort"
        yield invalid(f"{path}.queueSort", list(by_point["queueSort"]), detail)
    if not by_point["bind"]:
        yield invalid(f"{path}.bind", [], "a plugin must bind; enable DefaultBinder")

"""The parts that the profiles of batch schedulers share."""

from collections.abc import Sequence
from dataclasses import replace

from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.fit_error import Wording
from webhook.placement.framework.interface import (
    ALL_NODES,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    ScorePlugin,
)
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.plugin_registry import PluginArgs
from webhook.placement.profiles.profile import Enabled, Profile, UnmodelledStep

# The reason of a node whose pods request more than it has: no smaller request helps. A scheduler has one text for both.
OVERUSED = "overused "
NOTE = " Predicted: node constraints; the queue decides when it starts."


class ReasonsOnly:
    """Runs `plugin` as a pre-filter for a scheduler that only uses its rejections, not the nodes that it names.

    `reason` returns the message of a rejection.
    """

    def __init__(self, plugin: PreFilterPlugin, reason: str = "{reason}") -> None:
        self.name = plugin.name
        self._plugin = plugin
        self._reason = reason

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Return the rejection of `plugin`, if any."""
        result = self._plugin.pre_filter(pod, nodes)
        if not result.reason:
            return ALL_NODES
        return replace(result, node_names=None, reason=self._reason.format(name=self.name, reason=result.reason))


def of_containers(pod: PodInfo) -> PodInfo:
    """Return `pod` without pod-level resources, for schedulers that do not read them."""
    return pod if pod.container_requests is None else pod._replace(requests=pod.container_requests)


def batch_profile(
    name: str,
    args: PluginArgs,
    pre_filters: Sequence[PreFilterPlugin],
    filters: Sequence[FilterPlugin],
    scores: Sequence[tuple[ScorePlugin, int]],
    carry_on: frozenset[str],
    wording: Wording,
    unmodelled_steps: tuple[UnmodelledStep, ...] = (),
) -> Profile:
    """Return the profile `name` with these plugins, in order.

    `carry_on`, `wording` and `unmodelled_steps` are the fields of `Profile`.
    """
    enabled = Enabled(_names(pre_filters), _names(filters), tuple((plugin.name, weight) for plugin, weight in scores))
    return Profile(
        name,
        args,
        enabled,
        unmodelled_steps=unmodelled_steps,
        scheduler_names=frozenset(),
        pre_filters=tuple(pre_filters),
        filters=tuple(filters),
        scores=tuple(scores),
        carry_on=carry_on,
        wording=wording,
    )


def _names(plugins: Sequence[Plugin]) -> tuple[str, ...]:
    return tuple(each.name for each in plugins)

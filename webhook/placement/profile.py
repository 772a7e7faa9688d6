"""Scheduler profiles: which plugins run, and what they prefer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from webhook.kube.resource_names import CPU, MEMORY
from webhook.kube.wellknown import DEFAULT_SCHEDULER
from webhook.placement.framework.interface import FilterPlugin, PreEnqueuePlugin, PreFilterPlugin, ScorePlugin
from webhook.placement.plugins.node_resources_fit import ScoringStrategy, most_requested_score
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.pod.spread_constraint import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY
from webhook.placement.registry import DEFAULT_PREEMPTION, PluginArgs, registrations

T = TypeVar("T")

# The profiles of deploy/scheduler/kube-scheduler-configuration.yaml, which the built-in ones follow.
BUILT_IN_SCHEDULERS = frozenset((DEFAULT_SCHEDULER, "binpack-scheduler"))


@dataclass(frozen=True, slots=True)
class Enabled:
    """The names of the plugins that run at each extension point, in their order, scores with their weights.

    A plugin that is not modelled stands among them.
    """

    pre_filter: tuple[str, ...]
    filter: tuple[str, ...]
    score: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """What kube-scheduler asks besides the plugins here, such as an extender; it is named and not modelled.

    `resources`: it has a say about pods that request one of them; none: about every pod. `only_ranks`: it bars no node.
    """

    name: str
    resources: frozenset[str] = frozenset()
    only_ranks: bool = False

    def concerns(self, info: PodInfo) -> bool:
        """Whether it has a say about the pod."""
        return not self.resources or any(resource in self.resources for resource, _ in info.requests)


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins of one KubeSchedulerProfile, in their order; `scores` with their weights.

    `enabled` is None where every plugin runs in the default order. `outside` names what is asked besides the plugins
    and is not modelled, such as an extender. `scheduler_names` are those of all profiles of the same
    kube-scheduler.
    """

    name: str
    args: PluginArgs
    enabled: Enabled | None
    outside: tuple["Outside", ...]
    scheduler_names: frozenset[str]
    pre_enqueues: tuple[PreEnqueuePlugin, ...] = field(compare=False)
    pre_filters: tuple[PreFilterPlugin, ...] = field(compare=False)
    filters: tuple[FilterPlugin, ...] = field(compare=False)
    scores: tuple[tuple[ScorePlugin, int], ...] = field(compare=False)

    @classmethod
    def of(
        cls,
        name: str,
        args: PluginArgs = PluginArgs(),  # noqa: B008 - immutable
        enabled: Enabled | None = None,
        outside: tuple["Outside", ...] = (),
        scheduler_names: frozenset[str] = BUILT_IN_SCHEDULERS,
    ) -> "Profile":
        """The profile of the plugins that are `enabled`, as `args` tell them.

        A gated pod is kept back by every profile: an API server refuses to bind it.
        """
        table = registrations(args)
        every = tuple(plugin.name for plugin, _ in table)
        scored = enabled.score if enabled else tuple((plugin.name, weight) for plugin, weight in table if weight)
        weights = dict(scored)
        pre_filters = {plugin.name: plugin for plugin, _ in table if isinstance(plugin, PreFilterPlugin)}
        filters = {plugin.name: plugin for plugin, _ in table if isinstance(plugin, FilterPlugin)}
        scores = {plugin.name: plugin for plugin, _ in table if isinstance(plugin, ScorePlugin)}
        return cls(
            name,
            args,
            enabled,
            outside,
            scheduler_names,
            tuple(plugin for plugin, _ in table if isinstance(plugin, PreEnqueuePlugin)),
            _in_order(enabled.pre_filter if enabled else every, pre_filters),
            _in_order(enabled.filter if enabled else every, filters),
            tuple((plugin, weights[plugin.name]) for plugin in _in_order(weights, scores)),
        )

    def unmodelled(
        self, info: PodInfo, required: frozenset[str], preferred: frozenset[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """What may bar the pod from nodes and is not modelled, and what is not modelled and keeps no verdict back.

        `required` and `preferred` are the plugins of which that is so, whether or not the profile runs them.
        """
        if self.enabled:
            # Nominated pods keep their nodes whichever plugins run.
            required &= {*self.enabled.filter, DEFAULT_PREEMPTION}
            preferred &= {name for name, _ in self.enabled.score} | ({NodeVolumeLimits.name} & set(self.enabled.filter))
        if PodTopologySpread.name in preferred:
            # That is so of default constraints, on pods whose controller or Services are not known.
            actions = {constraint.when_unsatisfiable for constraint in self.args.default_constraints}
            required |= {PodTopologySpread.name} if DO_NOT_SCHEDULE in actions else frozenset()
            preferred -= frozenset() if SCHEDULE_ANYWAY in actions else {PodTopologySpread.name}
        outside = [each for each in self.outside if each.concerns(info)]
        return (
            required | {each.name for each in outside if not each.only_ranks},
            preferred | {each.name for each in outside if each.only_ranks},
        )


def _in_order(names: Iterable[str], plugins: Mapping[str, T]) -> tuple[T, ...]:
    return tuple(plugins[name] for name in names if name in plugins)


# kube-scheduler without a configuration: the emptier node is the better one.
DEFAULT = Profile.of("default")

# deploy/scheduler/kube-scheduler-configuration.yaml: the fuller node is the better one, GPUs first of all.
BINPACK = Profile.of(
    "binpack",
    PluginArgs(
        scoring_strategy=ScoringStrategy(most_requested_score, (("nvidia.com/gpu", 5), (CPU, 1), (MEMORY, 1))),
        default_constraints=(),
        system_defaulted=False,
    ),
)

PROFILES = {profile.name: profile for profile in (DEFAULT, BINPACK)}

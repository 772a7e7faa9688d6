"""Scheduler profiles: the plugins that run, and their args."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from webhook.cluster.snapshot import LARGEST_AMOUNT
from webhook.kube.names import DEFAULT_SCHEDULER, VOLCANO_PLUGIN
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.placement.framework.fit_error import KUBE_SCHEDULER, Wording
from webhook.placement.framework.interface import (
    MAX_NODE_SCORE,
    CrossNodeFilterPlugin,
    FilterPlugin,
    PreFilterPlugin,
    ScorePlugin,
    UncertainScorePlugin,
)
from webhook.placement.packing.typical_pods import CardMixes
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from webhook.placement.plugins.node_resources_fit import NodeResourcesFit, ScoringStrategy, most_requested_score
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits
from webhook.placement.plugins.pack_gpus import PackGpus
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.plugins.taint_toleration import TaintToleration
from webhook.placement.pod.inter_pod_info import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.plugin_registry import DEFAULT_PREEMPTION, PLUGINS, PluginArgs, modelled_plugins
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS

T = TypeVar("T")

EXTENDER = "a scheduler extender"
"""The step that decides on shares of cards, such as those of HAMi."""

# The profiles of deploy/scheduler/kube-scheduler-configuration.yaml, which the built-in ones follow.
BUILT_IN_SCHEDULERS = frozenset((DEFAULT_SCHEDULER, "binpack-scheduler"))


@dataclass(frozen=True, slots=True)
class Enabled:
    """The names of all plugins, modelled or not, that run at each extension point in order; scores have weights."""

    pre_filter: tuple[str, ...]
    filter: tuple[str, ...]
    score: tuple[tuple[str, int], ...]
    post_filter: tuple[str, ...] = (DynamicResources.name, DEFAULT_PREEMPTION)


@dataclass(frozen=True, slots=True)
class UnmodelledStep:
    """A step of kube-scheduler that is named but not modelled, such as an extender.

    The step applies to pods that request one of `resources`, or to every pod if `resources` is empty. `scores_only` is
    true if the step excludes no node. `of_shares` is true if it only applies to pods that request a share of a card.
    """

    name: str
    resources: frozenset[str] = frozenset()
    scores_only: bool = False
    of_shares: bool = False

    def applies_to(self, info: PodInfo) -> bool:
        """Return whether the step applies to the pod."""
        if self.of_shares and not info.shares_card:
            return False
        requested = (*(resource for resource, _ in info.requests), *info.shares)
        return not self.resources or not self.resources.isdisjoint(requested)


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins of one KubeSchedulerProfile, in order. `scores` have weights.

    `enabled` is None if every plugin runs in the default order. `unmodelled_steps` are the steps that are not modelled,
    such as extenders. `preempting_extenders` are the extenders that can choose among victims. `scheduler_names` are the
    names of all profiles of the same kube-scheduler. `carry_on` is None for kube-scheduler. For another scheduler, it
    contains the rejection reasons after which the scheduler still runs the next filters on a node. `cross_node_filters`
    and `uncertain_scores` are the plugins in `filters` and `scores` that implement these protocols.
    """

    name: str
    args: PluginArgs
    enabled: Enabled | None
    unmodelled_steps: tuple["UnmodelledStep", ...]
    scheduler_names: frozenset[str]
    pre_filters: tuple[PreFilterPlugin, ...] = field(compare=False)
    filters: tuple[FilterPlugin, ...] = field(compare=False)
    scores: tuple[tuple[ScorePlugin, int], ...] = field(compare=False)
    carry_on: frozenset[str] | None = field(default=None, compare=False)
    wording: Wording = field(default=KUBE_SCHEDULER, compare=False)
    preempting_extenders: tuple["UnmodelledStep", ...] = ()
    cross_node_filters: tuple[CrossNodeFilterPlugin, ...] = field(init=False, compare=False, repr=False)
    uncertain_scores: tuple[UncertainScorePlugin, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # isinstance() with a protocol takes ten microseconds, so the plugins are asked once for each profile.
        filters = tuple(each for each in self.filters if isinstance(each, CrossNodeFilterPlugin))
        scores = tuple(each for each, _ in self.scores if isinstance(each, UncertainScorePlugin))
        object.__setattr__(self, "cross_node_filters", filters)
        object.__setattr__(self, "uncertain_scores", scores)

    @classmethod
    def of(
        cls,
        name: str,
        args: PluginArgs = PluginArgs(),  # noqa: B008 - immutable
        enabled: Enabled | None = None,
        unmodelled_steps: tuple["UnmodelledStep", ...] = (),
        scheduler_names: frozenset[str] = BUILT_IN_SCHEDULERS,
    ) -> "Profile":
        """Return the profile that runs the `enabled` plugins with `args`."""
        made = modelled_plugins(args)
        every = tuple(row.name for row in PLUGINS)
        weights = dict(enabled.score) if enabled else {row.name: row.weight for row in PLUGINS if row.weight}
        pre_filters = {plugin.name: plugin for plugin in made if isinstance(plugin, PreFilterPlugin)}
        filters = {plugin.name: plugin for plugin in made if isinstance(plugin, FilterPlugin)}
        scores = {plugin.name: plugin for plugin in made if isinstance(plugin, ScorePlugin)}
        return cls(
            name,
            args,
            enabled,
            unmodelled_steps,
            scheduler_names,
            _in_order(enabled.pre_filter if enabled else every, pre_filters),
            _in_order(enabled.filter if enabled else every, filters),
            tuple((plugin, weights[plugin.name]) for plugin in _in_order(weights, scores)),
        )

    @property
    def preempts(self) -> bool:
        """Return whether this is a profile of kube-scheduler that can evict pods for a pod."""
        return self.carry_on is None and (self.enabled is None or DEFAULT_PREEMPTION in self.enabled.post_filter)

    def counted_requests(self, info: PodInfo) -> tuple[tuple[str, int], ...]:
        """Return the requests of `info` that the filters compare with the amounts of nodes, at most LARGEST_AMOUNT."""
        fit = next((each for each in self.filters if isinstance(each, NodeResourcesFit)), None)
        counted = () if fit is None else fit.counted(info)
        return tuple([(resource, min(amount, LARGEST_AMOUNT)) for resource, amount in counted])

    def unmodelled(
        self, info: PodInfo, required: frozenset[str], preferred: frozenset[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the unmodelled plugins and steps that may exclude nodes, and those that only score."""
        if self.enabled:
            # Nominated pods keep their nodes with any set of plugins.
            required &= {*self.enabled.filter, DEFAULT_PREEMPTION}
            preferred &= {name for name, _ in self.enabled.score} | ({NodeVolumeLimits.name} & set(self.enabled.filter))
        if PodTopologySpread.name in preferred:
            # Default constraints apply to pods whose controller or Services are not known.
            actions = {constraint.when_unsatisfiable for constraint in self.args.default_constraints}
            required |= {PodTopologySpread.name} if DO_NOT_SCHEDULE in actions else frozenset()
            preferred -= frozenset() if SCHEDULE_ANYWAY in actions else {PodTopologySpread.name}
        unmodelled_steps = [each for each in self.unmodelled_steps if each.applies_to(info)]
        if info.shares and all(each.scores_only for each in unmodelled_steps):
            required |= {EXTENDER}
        required |= {*info.topologies} if info.network is None else {*info.topologies, VOLCANO_PLUGIN}
        return (
            required | {each.name for each in unmodelled_steps if not each.scores_only},
            preferred | {each.name for each in unmodelled_steps if each.scores_only},
        )


def _in_order(names: Iterable[str], plugins: Mapping[str, T]) -> tuple[T, ...]:
    return tuple(plugins[name] for name in names if name in plugins)


# kube-scheduler without a configuration: prefer the least allocated node.
DEFAULT = Profile.of("default")


def _default_plugins(weights: Mapping[str, int]) -> Enabled:
    """Return kube-scheduler's default plugins. The plugins in `weights` get these weights for their scores."""
    defaults = [row for row in PLUGINS if row.is_default]

    def at(point: str) -> tuple[str, ...]:
        return tuple(row.name for row in defaults if point in row.extension_points)

    # kube-scheduler gives a score plugin without a weight the weight 1.
    default_weights = {row.name: row.weight or 1 for row in defaults}
    scores = tuple((name, weights.get(name, default_weights[name])) for name in at("score"))
    return Enabled(at("preFilter"), at("filter"), scores)


# One more than the weights of all other score plugins together. Each plugin's score is at most 100, so a node of the
# preferred pool wins against any sum of the other scores.
PREFERRED_POOL_WEIGHT = 14

# deploy/scheduler/kube-scheduler-configuration.yaml: prefer the most allocated node, GPUs above all, in the preferred
# pool first.
BINPACK = Profile.of(
    "binpack",
    PluginArgs(
        scoring_strategy=ScoringStrategy(most_requested_score, (("nvidia.com/gpu", 5), (CPU, 1), (MEMORY, 1))),
        default_constraints=(),
        system_defaulted=False,
    ),
    _default_plugins({NodeAffinity.name: PREFERRED_POOL_WEIGHT}),
)


def _pack_gpus() -> Enabled:
    """Return the plugins of the profile `pack-gpus`.

    There are three groups: taints and node affinity of the pod and the policy, then `PackGpus`, then the other score
    plugins, which choose among equal nodes. The weights are so large that one point in a group outweighs all groups
    after it. `PackGpus` replaces the plugins that score amounts.
    """
    defaults = _default_plugins({})
    first = (TaintToleration.name, NodeAffinity.name)
    replaced = (NodeResourcesFit.name, NodeResourcesBalancedAllocation.name)
    last = tuple((name, weight) for name, weight in defaults.score if name not in (*first, *replaced))
    of_cards = MAX_NODE_SCORE * sum(weight for _, weight in last) + 1
    of_first = MAX_NODE_SCORE * (of_cards + sum(weight for _, weight in last)) + 1
    scores = (*((name, of_first) for name in first), (PackGpus.name, of_cards), *last)
    return Enabled(defaults.pre_filter, defaults.filter, scores)


def pack_gpus(cards: CardMixes) -> Profile:
    """Return the profile `pack-gpus` for `cards`. kube-scheduler uses it through the scheduler extender."""
    args = PluginArgs(default_constraints=(), system_defaulted=False, cards=cards)
    return Profile.of("pack-gpus", args, _pack_gpus())


PACK_GPUS = pack_gpus(CardMixes(tuple(name for each in BUILT_IN_ACCELERATORS for name in each.resources)))

PROFILES = {profile.name: profile for profile in (DEFAULT, BINPACK, PACK_GPUS)}

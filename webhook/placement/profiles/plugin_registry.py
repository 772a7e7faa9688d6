"""The plugins of kube-scheduler 1.37 and of this project, with order, weight, extension points and args."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from webhook.cluster.index.node_selector import NodeAffinityTerms
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.placement.framework.interface import Plugin
from webhook.placement.framework.scoring import LEAST_UTILIZED, UtilizationScore
from webhook.placement.packing.typical_pods import CardMixes
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.plugins.image_locality import ImageLocality
from webhook.placement.plugins.inter_pod_affinity import InterPodAffinity
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.plugins.node_name import NodeName
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from webhook.placement.plugins.node_resources_fit import NodeResourcesFit, ScoringStrategy
from webhook.placement.plugins.node_unschedulable import NodeUnschedulable
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits
from webhook.placement.plugins.pack_gpus import PackGpus
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.plugins.taint_toleration import TaintToleration
from webhook.placement.plugins.volume_binding import VolumeBinding
from webhook.placement.plugins.volume_restrictions import VolumeRestrictions
from webhook.placement.plugins.volume_zone import VolumeZone
from webhook.placement.pod.inter_pod_info import SYSTEM_DEFAULT_CONSTRAINTS, SpreadConstraint
from webhook.placement.profiles.plugin_args import (
    Args,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    VolumeBindingArgs,
)


@dataclass(frozen=True, slots=True)
class PluginArgs:
    """The args of a profile's plugins. The defaults are those of kube-scheduler.

    `default_constraints` are the topology spread constraints of pods that have none. `system_defaulted` is true if they
    are the built-in ones of kube-scheduler. `cards` are the args of `PackGpus`, which kube-scheduler does not have.

    Source: k8s.io/kube-scheduler/config/v1/types_pluginargs.go, and
    k8s.io/kubernetes/pkg/scheduler/apis/config/v1/defaults.go
    """

    scoring_strategy: ScoringStrategy = field(default_factory=ScoringStrategy)
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()
    balanced_resources: tuple[str, ...] = (CPU, MEMORY)
    storage_score: UtilizationScore = LEAST_UTILIZED
    added_affinity: NodeAffinityTerms = field(default_factory=NodeAffinityTerms)
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    default_constraints: tuple[SpreadConstraint, ...] = SYSTEM_DEFAULT_CONSTRAINTS
    system_defaulted: bool = True
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100
    cards: CardMixes = field(default_factory=CardMixes)


class PluginRow(NamedTuple):
    """One plugin of kube-scheduler.

    `extension_points` are the extension points that affect a profile. `weight` is the default weight of its scores, or
    0 if it does not score. `is_default` is true if kube-scheduler enables it by default. `args` is the model of its
    args, if any. `factory` returns the plugin for the args of a profile; it is None if the plugin is not modelled.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/registry.go
    """

    name: str
    extension_points: frozenset[str]
    weight: int
    is_default: bool
    args: type[Args] | None
    factory: Callable[[PluginArgs], Plugin] | None


def _row(
    plugin: type[Plugin],
    extension_points: str = "",
    *,
    weight: int = 0,
    args: type[Args] | None = None,
    factory: Callable[[PluginArgs], Plugin] | None = None,
) -> PluginRow:
    return PluginRow(
        plugin.name, frozenset(extension_points.split()), weight, True, args, factory or (lambda _: plugin())
    )


def _without_plugin(
    name: str, extension_points: str = "", *, is_default: bool = True, args: type[Args] | None = None
) -> PluginRow:
    return PluginRow(name, frozenset(extension_points.split()), 0, is_default, args, None)


DEFAULT_PREEMPTION = "DefaultPreemption"
NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
GANG_SCHEDULING = "GangScheduling"

# In the order of k8s.io/kubernetes/pkg/scheduler/apis/config/v1/default_plugins.go, then the others. Before 1.37,
# NodeName comes after NodeUnschedulable. Since 1.37, its filter rejects nothing that its pre-filter left.
PLUGINS = (
    # No profile can leave it out, because an API server binds no gated pod: see `PodInfo.gates`.
    _without_plugin("SchedulingGates"),
    _without_plugin("PrioritySort", "queueSort"),
    _row(NodeUnschedulable, "preFilter filter"),
    _row(NodeName, "preFilter filter"),
    _row(TaintToleration, "preFilter filter score", weight=3),
    _row(
        NodeAffinity,
        "preFilter filter score",
        weight=2,
        args=NodeAffinityArgs,
        factory=lambda args: NodeAffinity(args.added_affinity),
    ),
    _row(NodePorts, "preFilter filter"),
    _row(
        NodeResourcesFit,
        "preFilter filter score",
        weight=1,
        args=NodeResourcesFitArgs,
        factory=lambda args: NodeResourcesFit(
            args.scoring_strategy, args.ignored_resources, args.ignored_resource_groups
        ),
    ),
    _row(VolumeRestrictions, "preFilter filter"),
    _row(NodeVolumeLimits, "preFilter filter"),
    _row(
        VolumeBinding,
        "preFilter filter score",
        weight=1,
        args=VolumeBindingArgs,
        factory=lambda args: VolumeBinding(args.storage_score),
    ),
    _row(VolumeZone, "preFilter filter"),
    _row(
        PodTopologySpread,
        "preFilter filter score",
        weight=2,
        args=PodTopologySpreadArgs,
        factory=lambda args: PodTopologySpread(args.default_constraints, system_defaulted=args.system_defaulted),
    ),
    _row(
        InterPodAffinity,
        "preFilter filter score",
        weight=2,
        args=InterPodAffinityArgs,
        factory=lambda args: InterPodAffinity(
            args.hard_pod_affinity_weight,
            ignore_preferred_terms_of_existing_pods=args.ignore_preferred_terms_of_existing_pods,
        ),
    ),
    _row(DynamicResources, "preFilter filter postFilter score", weight=2, args=DynamicResourcesArgs),
    _without_plugin(DEFAULT_PREEMPTION, "postFilter", args=DefaultPreemptionArgs),
    _row(
        NodeResourcesBalancedAllocation,
        "score",
        weight=1,
        args=NodeResourcesBalancedAllocationArgs,
        factory=lambda args: NodeResourcesBalancedAllocation(args.balanced_resources),
    ),
    _row(ImageLocality, "score", weight=1),
    _without_plugin("DefaultBinder", "bind"),
    _without_plugin(NODE_DECLARED_FEATURES, "preFilter filter"),
    _without_plugin(GANG_SCHEDULING, is_default=False),
    _without_plugin("TopologyPlacementGenerator", is_default=False),
    _without_plugin("PodGroupPodsCount", is_default=False),
    _without_plugin("DeferredPodScheduling", "preFilter filter", is_default=False),
)

PLUGIN_BY_NAME: Mapping[str, PluginRow] = {row.name: row for row in PLUGINS}


def modelled_plugins(args: PluginArgs) -> tuple[Plugin, ...]:
    """Return every modelled plugin with `args` in default order, then those that profiles must enable."""
    return (*(row.factory(args) for row in PLUGINS if row.factory is not None), PackGpus(args.cards))

"""The plugins that there are, in the order in which kube-scheduler runs them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from webhook.cluster.index.node_selector import NodeAffinityTerms
from webhook.kube.resource_names import CPU, MEMORY
from webhook.placement.framework.interface import Plugin
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
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.plugins.scheduling_gates import SchedulingGates
from webhook.placement.plugins.taint_toleration import TaintToleration
from webhook.placement.plugins.volume_binding import VolumeBinding
from webhook.placement.plugins.volume_restrictions import VolumeRestrictions
from webhook.placement.plugins.volume_zone import VolumeZone
from webhook.placement.pod.spread_constraint import SYSTEM_DEFAULT_CONSTRAINTS, SpreadConstraint


@dataclass(frozen=True, slots=True)
class PluginArgs:
    """What a profile tells its plugins; the defaults are kube-scheduler's.

    `default_constraints` are the topology spread constraints of pods without their own; `system_defaulted`: they are
    kube-scheduler's own.

    Source: k8s.io/kube-scheduler/config/v1/types_pluginargs.go, and
    k8s.io/kubernetes/pkg/scheduler/apis/config/v1/defaults.go
    """

    scoring_strategy: ScoringStrategy = field(default_factory=ScoringStrategy)
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()
    balanced_resources: tuple[str, ...] = (CPU, MEMORY)
    added_affinity: NodeAffinityTerms = field(default_factory=NodeAffinityTerms)
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    default_constraints: tuple[SpreadConstraint, ...] = SYSTEM_DEFAULT_CONSTRAINTS
    system_defaulted: bool = True


class Registration(NamedTuple):
    """One plugin; its scores count `weight` times. A weight of 0: it does not score."""

    plugin: Plugin
    weight: int = 0


def registrations(args: PluginArgs) -> tuple[Registration, ...]:
    """Every plugin as `args` tell it, with its default weight.

    Source: k8s.io/kubernetes/pkg/scheduler/apis/config/v1/default_plugins.go
    """
    return (
        Registration(SchedulingGates()),
        Registration(NodeUnschedulable()),
        Registration(NodeName()),
        Registration(TaintToleration(), weight=3),
        Registration(NodeAffinity(args.added_affinity), weight=2),
        Registration(NodePorts()),
        Registration(
            NodeResourcesFit(args.scoring_strategy, args.ignored_resources, args.ignored_resource_groups), weight=1
        ),
        Registration(VolumeRestrictions()),
        Registration(NodeVolumeLimits()),
        Registration(VolumeBinding()),
        Registration(VolumeZone()),
        Registration(PodTopologySpread(args.default_constraints, system_defaulted=args.system_defaulted), weight=2),
        Registration(
            InterPodAffinity(
                args.hard_pod_affinity_weight,
                ignore_preferred_terms_of_existing_pods=args.ignore_preferred_terms_of_existing_pods,
            ),
            weight=2,
        ),
        Registration(DynamicResources(), weight=2),
        Registration(NodeResourcesBalancedAllocation(args.balanced_resources), weight=1),
        Registration(ImageLocality(), weight=1),
    )

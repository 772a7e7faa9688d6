"""The plugins that there are, in the order in which kube-scheduler runs them."""

from typing import NamedTuple

from webhook.placement.plugin import FilterPlugin, ScorePlugin
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.plugins.node_name import NodeName
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from webhook.placement.plugins.node_resources_fit import NodeResourcesFit, ScoringStrategy
from webhook.placement.plugins.node_unschedulable import NodeUnschedulable
from webhook.placement.plugins.taint_toleration import TaintToleration


class Registration(NamedTuple):
    """One plugin; its scores count `weight` times. A weight of 0: it does not score."""

    plugin: FilterPlugin | ScorePlugin
    weight: int = 0


def registrations(strategy: ScoringStrategy) -> tuple[Registration, ...]:
    """Every plugin with its default weight, NodeResourcesFit scoring by `strategy`.

    Source: k8s.io/kubernetes/pkg/scheduler/apis/config/v1/default_plugins.go
    """
    return (
        Registration(NodeUnschedulable()),
        Registration(NodeName()),
        Registration(TaintToleration(), weight=3),
        Registration(NodeAffinity(), weight=2),
        Registration(NodePorts()),
        Registration(NodeResourcesFit(strategy), weight=1),
        Registration(NodeResourcesBalancedAllocation(), weight=1),
    )

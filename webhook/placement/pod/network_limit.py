"""The domain in which Volcano keeps a group, by its request, the HyperNodes and the configuration of the scheduler."""

from dataclasses import replace
from typing import NamedTuple

from webhook.cluster.batch.network_topology import NetworkTopology, tier_of_key
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import cut
from webhook.kube.names import VOLCANO_PLUGIN

_LONGEST_SHOWN = 63


class NetworkLimit(NamedTuple):
    """The highest `tier` of the HyperNode that has to hold the group, or None if there is no such limit.

    Then `ignored` is the reason why Volcano ignores the request, or `unknown` the reason why the limit is not known.
    """

    tier: int | None = None
    ignored: str = ""
    unknown: str = ""


def configuration_of(snapshot: Snapshot) -> VolcanoConfiguration:
    """Return the configuration of Volcano's scheduler in `snapshot`."""
    of_cluster = snapshot.scheduler_evidence.volcano if snapshot.scheduler_evidence else None
    return snapshot.volcano.configuration or of_cluster or VolcanoConfiguration()


def with_hyper_nodes(snapshot: Snapshot, key: str) -> Snapshot:
    """Return `snapshot` with the domains of `key` as a label of its nodes: itself, unless they are HyperNodes.

    The HyperNodes must be known, see `HyperNodes.domains`.
    """
    tier, nodes = tier_of_key(key), snapshot.volcano.hyper_nodes
    if tier is None or nodes is None or snapshot.labels.has(key):
        return snapshot
    labels = nodes.domains(tier, snapshot.labels, snapshot.rows)
    return snapshot if isinstance(labels, str) else replace(snapshot, labels=labels)


def network_limit(network: NetworkTopology, snapshot: Snapshot) -> NetworkLimit:
    """Return the limit for the request `network`.

    Source: volcano.sh/volcano/pkg/scheduler/framework/session.go, addClusterTopHyperNode and adjustNetworkTopologySpec;
    session_plugins.go, HyperNodeGradientForJobFn
    """
    plugins, nodes = configuration_of(snapshot).plugins, snapshot.volcano.hyper_nodes
    if plugins is None:
        return NetworkLimit(unknown=f"it is not known whether Volcano's configuration has the plugin {VOLCANO_PLUGIN}")
    if VOLCANO_PLUGIN not in plugins:
        return NetworkLimit(ignored=f"its configuration has no plugin {VOLCANO_PLUGIN}")
    if network.subgroups:
        return NetworkLimit(unknown=f"its subgroups can have domains of their own ({network.subgroups})")
    if nodes is None:
        return NetworkLimit(unknown="the HyperNodes are not known")
    tiers = {network.tier} if network.tier is not None else nodes.tiers_named(network.tier_name)
    shown = f"the tierName {cut(network.tier_name, _LONGEST_SHOWN)}"
    if len(tiers) > 1:
        return NetworkLimit(unknown=f"HyperNodes of several tiers have {shown}")
    tier = next(iter(tiers), None)
    if tier is None or tier > nodes.top:
        why = (
            f"no HyperNode has {shown}"
            if network.tier_name
            else "mode hard needs highestTierAllowed or highestTierName"
        )
        why = why if tier is None else f"no HyperNode has tier {tier} or a higher one"
        # The tier has no effect on a preference.
        return NetworkLimit(ignored=why if network.is_hard else "")
    found = nodes.domains(tier, snapshot.labels, snapshot.rows)
    return NetworkLimit(unknown=found) if isinstance(found, str) else NetworkLimit(tier)

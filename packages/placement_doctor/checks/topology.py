"""Labels of topology domains, and the requests that pods run together within one domain."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from placement_doctor.check import Finding, check, info, named, warning
from placement_doctor.cluster import Cluster, name_of
from placement_doctor.commands import command
from placement_doctor.nodes import nodes_of, shown
from placement_doctor.source import Source
from webhook.backends.kai import Kai
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.node_info import Node
from webhook.documents.documents import JsonObject, field
from webhook.kube.names import VOLCANO_CONFIGURATION, VOLCANO_NAMESPACE, VOLCANO_PLUGIN
from webhook.kube.workloads.pod_template_path import group_of
from webhook.placement.packing.free_cards import accelerator_of
from webhook.policy.policy import Policy

_RACK = "rack"
# Source: NVIDIA/k8s-dra-driver-gpu, cmd/compute-domain-kubelet-plugin: the NVLink partition of a node.
_CLIQUE = "nvidia.com/gpu.clique"
# Source: docs.nvidia.com/topograph/v1.0.0/reference/node-labels-and-annotations; the first are those up to 0.5.
_TOPOGRAPH = (("network.topology.nvidia.com/",), ("accelerator.topograph.run/", "fabric.topograph.run/"))
_CONSTRAINTS = "schedulingConstraints"
_GATES = "GenericWorkload and TopologyAwareWorkloadScheduling"


@check(
    "`kubectl label node NODE KEY=VALUE`, or name a label that nodes have in `topologyAliases`",
    needs={Source.NODES, Source.POLICY, Source.PODS},
)
def topology_labels(cluster: Cluster) -> Iterator[Finding]:
    """Nodes lack a label of domains that policies or pods name or that others of the rack have, or have two schemes.

    Nodes with accelerators are compared, or all nodes if none has one. An alias that nothing uses is not reported.
    """
    if not cluster.knows(Source.NODES):
        return
    nodes = _with_accelerators(nodes_of(cluster), cluster.policies)
    for key, users in _named_keys(cluster).items():
        missing = [each for each in nodes if key not in each.labels]
        labelled = command("kubectl", "label", "node", *(each.name for each in missing[:1]), f"{key}=VALUE")
        remedy = f"{labelled} for each of them, or name another label"
        if missing and len(missing) == len(nodes):
            yield warning(users[0], f"no node has the label {key}, which {named(users)} names", remedy)
        elif missing:
            what = f"no label {key}, which {named(users)} names: the node is in no domain"
            yield warning(f"{shown(missing)}: metadata.labels", what, remedy)
    yield from _two_schemes(nodes)
    yield from _part_of_racks(nodes, cluster.policy.spec.topology_aliases.get(_RACK, ""))


def _with_accelerators(nodes: tuple[Node, ...], policies: Iterable[Policy]) -> list[Node]:
    accelerators = [each for policy in policies for each in policy.spec.accelerators]
    found = [
        each
        for each in nodes
        if any(amount and accelerator_of(name, accelerators) for name, amount in each.allocatable.items())
    ]
    return found or [*nodes]


def _named_keys(cluster: Cluster) -> dict[str, list[str]]:
    """Return the topology keys that policies and annotations of pods name, with the places that name them."""
    found: dict[str, list[str]] = defaultdict(list)
    for policy in cluster.policies:
        aliases = policy.spec.topology_aliases
        for name, each in policy.spec.workload_types.items():
            for field_name, topology in (("spread", each.spread.topology), ("within", each.within.topology)):
                if topology is not None:
                    place = f"{cluster.place_of(policy)}: spec.workloadTypes.{name}.{field_name}.topology"
                    found[aliases.get(topology, topology)].append(place)
    for (policy_name, value), pod in cluster.named_topologies.items():
        aliases = next(each for each in cluster.policies if each.name == policy_name).spec.topology_aliases
        found[aliases.get(value, value)].append(f"Pod {pod}")
    return found


def _two_schemes(nodes: Iterable[Node]) -> Iterator[Finding]:
    """Yield a finding if nodes have labels of topograph up to 0.5, and nodes have those since 1.0."""
    of_schemes = [[each for each in nodes if any(key.startswith(own) for key in each.labels)] for own in _TOPOGRAPH]
    if all(of_schemes):
        old, new = of_schemes
        partial = {each.name for each in old} != {each.name for each in new}
        what = (
            f"{named(_TOPOGRAPH[0])}… on {len(old)} nodes and {named(_TOPOGRAPH[1])}… on {len(new)} nodes are labels "
            "of two versions of topograph"
        )
        effect = ": a rule for one of them does not see nodes with only the other" if partial else ""
        remedy = "name the new labels in policies and queues, then remove the old ones from the nodes"
        yield (warning if partial else info)(f"{shown(old)}: metadata.labels", f"{what}{effect}", remedy)


def _part_of_racks(nodes: Iterable[Node], rack_label: str) -> Iterator[Finding]:
    """Yield a finding for the nodes without an NVLink label in a rack where others have it."""
    racks: dict[str, list[Node]] = defaultdict(list)
    for each in nodes:
        if rack_label in each.labels:
            racks[each.labels[rack_label]].append(each)
    for rack, those in sorted(racks.items()):
        missing = [each for each in those if _CLIQUE not in each.labels]
        if missing and len(missing) < len(those):
            what = f"no label {_CLIQUE}, which {len(those) - len(missing)} other nodes of rack {rack} have"
            remedy = "the log of the device plugin or of the NVIDIA DRA driver there: the fabric is not completed"
            yield warning(f"{shown(missing)}: metadata.labels", what, remedy)


@check(
    "enable the plugin or gate that the finding names, or annotate the owner of the pods",
    needs={Source.TOPOLOGY_REQUESTS, Source.PODS},
)
def topology_requests(cluster: Cluster) -> Iterator[Finding]:
    """A request to run within one domain has no effect: Volcano's plugin or a gate is off, or KAI does not see it.

    What the API server drops of a PodGroup is known by the managed fields of the PodGroup. Whether the gates of
    kube-scheduler are on is not known.
    """
    objects = cluster.of(Source.TOPOLOGY_REQUESTS)
    yield from _ignored_by_volcano(objects)
    yield from _dropped(objects)
    known = {name_of(each): each for each in objects if group_of(each.get("apiVersion")) in Kai.api_groups}
    for pod, group in sorted(cluster.kai_topologies.items()):
        found = known.get(f"{pod.partition('/')[0]}/{group}")
        if found is not None and not field(found, "spec", "topologyConstraint"):
            what = (
                f"its annotations of kai.scheduler/topology have no effect: PodGroup {group} has no topologyConstraint"
            )
            remedy = "set them on the owner of the pods, such as the StatefulSet: KAI does not read the pod template"
            yield warning(f"Pod {pod}: metadata.annotations", what, remedy)


def _ignored_by_volcano(objects: Iterable[JsonObject]) -> Iterator[Finding]:
    asking = sorted(name_of(each) for each in objects if field(each, "spec", "networkTopology"))
    configuration = next(filter(None, map(VolcanoConfiguration.of, objects)), VolcanoConfiguration())
    if asking and configuration.plugins is not None and VOLCANO_PLUGIN not in configuration.plugins:
        where = f"ConfigMap {VOLCANO_NAMESPACE}/{VOLCANO_CONFIGURATION}: data.volcano-scheduler.conf"
        what = f"no plugin {VOLCANO_PLUGIN}: Volcano ignores networkTopology of PodGroup {named(asking)}"
        yield warning(where, what, f"add `- name: {VOLCANO_PLUGIN}` to the plugins of a tier")


def _dropped(objects: Iterable[JsonObject]) -> Iterator[Finding]:
    """Yield a finding for the PodGroups that were written with constraints which the API server did not store.

    Source: k8s.io/kubernetes/pkg/registry/scheduling/podgroup/strategy.go; managedFields are written before
    """
    written = [
        name_of(each)
        for each in objects
        if not field(each, "spec", _CONSTRAINTS)
        and any(
            f"f:{_CONSTRAINTS}" in (field(entry, "fieldsV1", "f:spec") or {})
            for entry in field(each, "metadata", "managedFields") or ()
        )
    ]
    if written:
        what = f"the API server dropped spec.{_CONSTRAINTS}, so the pods can run in any domain: a gate is off there"
        remedy = f"turn on the gates {_GATES} of kube-apiserver and kube-scheduler, and create the PodGroup again"
        yield warning(f"PodGroup {named(sorted(written))}: spec.{_CONSTRAINTS}", what, remedy)

"""A plain reference implementation of the placement check: for each node, for each plugin, as kube-scheduler does.

It is the specification of `webhook.placement` and shares no code with it.
"""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from tests.oracles.oracle_cluster import Object, OracleCluster, OracleNode, namespace_of, tolerations_of
from tests.oracles.oracle_devices import class_behind, dynamic_resources, dynamic_resources_scores
from tests.oracles.oracle_kube import (
    required_node_affinity_matches,
    required_node_selector,
    term_matches,
    tolerates_any,
)
from tests.oracles.oracle_pods import (
    inter_pod_affinity,
    inter_pod_affinity_scores,
    pod_topology_spread,
    pod_topology_spread_scores,
    skips_inter_pod_affinity,
)
from tests.oracles.oracle_resources import (
    is_scalar_resource,
    is_schedulable_resource,
    pod_requests,
    scored_of,
)

# A plugin, and its reasons; empty if the plugin accepts the node.
Rejection = tuple[str, list[str]]
ClusterFilter = Callable[[Object, OracleNode, OracleCluster], list[str]]

LEAST_ALLOCATED: Mapping[str, int] = {"cpu": 1, "memory": 1}
MOST_ALLOCATED: Mapping[str, int] = {"cpu": 1, "memory": 1, "nvidia.com/gpu": 5}


@dataclass
class OracleAnswer:
    """The content of a `Placement`, as plain data."""

    verdict: str
    node: str | None
    total: int
    feasible: int
    message: str
    scores: dict[str, dict[str, int]]


def place(
    pod: Object,
    nodes: Iterable[Object],
    pods: Iterable[Object],
    others: Iterable[Object] = (),
    *,
    binpack: bool = False,
) -> OracleAnswer:
    """Return the placement of `pod` on raw `nodes` where raw `pods` are bound, in a cluster with raw `others`."""
    by_name = {node["metadata"]["name"]: OracleNode(node) for node in nodes}
    for each in pods:
        if each["status"]["phase"] in ("Succeeded", "Failed"):
            continue
        if each["spec"].get("nodeName"):
            if each["spec"]["nodeName"] in by_name:
                by_name[each["spec"]["nodeName"]].pods.append(each)
        elif each["status"].get("nominatedNodeName") in by_name:
            by_name[each["status"]["nominatedNodeName"]].nominated.append(each)
    all_nodes = [by_name[name] for name in sorted(by_name)]
    cluster = OracleCluster(all_nodes, list(others))
    if pod["spec"].get("schedulingGates"):
        blocked = "Scheduling is blocked due to non-empty scheduling gates"
        return OracleAnswer("Waiting", None, len(all_nodes), 0, blocked, {})
    if not all_nodes:
        return OracleAnswer("Infeasible", None, 0, 0, "no nodes available to schedule pods", {})
    feasible, message = find_nodes_that_fit_pod(pod, cluster)
    if not feasible:
        verdict = "Waiting" if find_nodes_that_fit_pod(pod, cluster.without_pods())[0] else "Infeasible"
        return OracleAnswer(verdict, None, len(all_nodes), 0, message, {})
    scores = prioritize_nodes(pod, feasible, cluster, binpack=binpack)
    best = min(scores, key=lambda name: (-scores[name]["total"], name))
    message = f"{len(feasible)}/{len(all_nodes)} nodes are available."
    return OracleAnswer("Feasible", best, len(all_nodes), len(feasible), message, scores)


def find_nodes_that_fit_pod(pod: Object, cluster: OracleCluster) -> tuple[list[OracleNode], str]:
    """Return the nodes that pass, and kube-scheduler's message if none passes."""
    nodes = cluster.nodes
    names, unsatisfied, refusal = pre_filter(pod)
    if refusal:
        return [], f"0/{len(nodes)} nodes are available: {refusal}."
    reasons: Counter[str] = Counter()
    feasible = []
    own = [node for node in nodes if node.name == (pod.get("status") or {}).get("nominatedNodeName")]
    for node in own:
        plugin, _ = rejection_with_nominated_pods(pod, node, cluster)
        if not plugin:
            return [node], ""
        unsatisfied.add(plugin)
    for node in nodes:
        if names is not None and node.name not in names and node not in own:
            reasons[f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(unsatisfied))}]"] += 1
            continue
        plugin, found = rejection_with_nominated_pods(pod, node, cluster)
        reasons.update(found)
        if not plugin:
            feasible.append(node)
    parts = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return feasible, f"0/{len(nodes)} nodes are available: {', '.join(parts)}."


def rejection_with_nominated_pods(pod: Object, node: OracleNode, cluster: OracleCluster) -> Rejection:
    """Return why `node` cannot take `pod`: first with its nominated pods, then without them."""
    yielded_to = [each for each in node.nominated if yields(pod, each)]
    if yielded_to:
        crowded = OracleNode(node.object, [*node.pods, *yielded_to], assumed=yielded_to)
        skipped = {inter_pod_affinity} if skips_inter_pod_affinity(pod, cluster) else set()
        plugin, found = first_rejection(pod, crowded, cluster.with_node(crowded), skipped)
        if plugin:
            return plugin, found
    return first_rejection(pod, node, cluster, set())


def yields(pod: Object, nominated: Object) -> bool:
    """Return whether the pod `nominated` has precedence over `pod`."""
    names = [each["spec"].get("schedulerName", "default-scheduler") for each in (pod, nominated)]
    if namespace_of(nominated) == namespace_of(pod) and nominated["metadata"]["name"] == pod["metadata"]["name"]:
        return False
    priorities = [int(each["spec"].get("priority", 0)) for each in (pod, nominated)]
    return names[0] == names[1] and priorities[1] >= priorities[0]


def first_rejection(pod: Object, node: OracleNode, cluster: OracleCluster, skipped: Container[object]) -> Rejection:
    """Return the first plugin that rejects `node`, and its reasons; empty if the node can take `pod`."""
    for filter_plugin in FILTERS:
        if found := filter_plugin(pod, node):
            return plugin_name(filter_plugin.__name__), found
    for cluster_filter in CLUSTER_FILTERS:
        if cluster_filter not in skipped and (found := cluster_filter(pod, node, cluster)):
            return plugin_name(cluster_filter.__name__), found
    return "", []


def plugin_name(function: str) -> str:
    """Return the name of the plugin that `function` implements: `NodeName` for `node_name`."""
    return "".join(part.title() for part in function.split("_"))


def pre_filter(pod: Object) -> tuple[set[str] | None, set[str], str]:
    """Return the only nodes to evaluate, the plugins that named them, and the reason if there can be none."""
    by_plugin: dict[str, set[str]] = {}
    if pod["spec"].get("nodeName"):
        by_plugin["NodeName"] = {pod["spec"]["nodeName"]}
    names, refusal = pre_filter_node_affinity(pod)
    if names is not None:
        by_plugin["NodeAffinity"] = names
    common = set.intersection(*by_plugin.values()) if by_plugin else None
    if common == set() and not refusal:
        refusal = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by_plugin))}] simultaneously"
    return common, set(by_plugin), refusal


def pre_filter_node_affinity(pod: Object) -> tuple[set[str] | None, str]:
    """Return the node names that every required term asks for by metadata.name, or the reason if they conflict."""
    required = required_node_selector(pod["spec"])
    terms = (required or {}).get("nodeSelectorTerms") or []
    if not terms:
        return None, ""
    names: set[str] = set()
    for term in terms:
        asked = [
            set(requirement["values"])
            for requirement in term.get("matchFields") or []
            if requirement["key"] == "metadata.name" and requirement["operator"] == "In"
        ]
        if not asked:
            return None, ""
        names |= set.intersection(*asked)
    return (names, "") if names else (None, "pod affinity terms conflict")


def node_unschedulable(pod: Object, node: OracleNode) -> list[str]:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if node.object["spec"].get("unschedulable") and not tolerates_any(tolerations_of(pod), taint):
        return ["node(s) were unschedulable"]
    return []


def node_name(pod: Object, node: OracleNode) -> list[str]:
    wanted = pod["spec"].get("nodeName")
    return ["node(s) didn't match the requested node name"] if wanted and wanted != node.name else []


def taint_toleration(pod: Object, node: OracleNode) -> list[str]:
    for taint in node.taints:
        hard = taint["effect"] in ("NoSchedule", "NoExecute")
        if hard and not tolerates_any(tolerations_of(pod), taint):
            return ["node(s) had untolerated taint(s)"]
    return []


def node_affinity(pod: Object, node: OracleNode) -> list[str]:
    if required_node_affinity_matches(pod["spec"], node.labels, node.name):
        return []
    return ["node(s) didn't match Pod's node affinity/selector"]


def node_ports(pod: Object, node: OracleNode) -> list[str]:
    for protocol, port, ip in host_ports(pod):
        for taken in node.pods:
            for taken_protocol, taken_port, taken_ip in host_ports(taken):
                same_address = ip == taken_ip or "0.0.0.0" in (ip, taken_ip)
                if (protocol, port) == (taken_protocol, taken_port) and same_address:
                    return ["node(s) didn't have free ports for the requested pod ports"]
    return []


def host_ports(pod: Object) -> list[tuple[str, int, str]]:
    sidecars = [each for each in pod["spec"].get("initContainers") or [] if each.get("restartPolicy") == "Always"]
    on_host = pod["spec"].get("hostNetwork") is True
    return [
        (port.get("protocol") or "TCP", number, port.get("hostIP") or "0.0.0.0")
        for container in [*sidecars, *pod["spec"]["containers"]]
        for port in container.get("ports") or []
        if (number := port.get("hostPort") or (port["containerPort"] if on_host else 0))
    ]


def node_resources_fit(pod: Object, node: OracleNode, cluster: OracleCluster) -> list[str]:
    short = ["Too many pods"] if len(node.pods) + 1 > node.allocatable("pods") else []
    for resource, amount in pod_requests(pod).items():
        free = node.allocatable(resource) - node.requested(resource)
        is_of_devices = node.allocatable(resource) == 0 and class_behind(resource, cluster)
        if is_schedulable_resource(resource) and amount > 0 and amount > free and not is_of_devices:
            short.append(f"Insufficient {resource}")
    return short


FILTERS: tuple[Callable[[Object, OracleNode], list[str]], ...] = (
    node_unschedulable,
    node_name,
    taint_toleration,
    node_affinity,
    node_ports,
)

# These filters read other objects too, so they run after the others.
CLUSTER_FILTERS: tuple[ClusterFilter, ...] = (
    node_resources_fit,
    pod_topology_spread,
    inter_pod_affinity,
    dynamic_resources,
)


def prioritize_nodes(
    pod: Object, nodes: list[OracleNode], cluster: OracleCluster, *, binpack: bool
) -> dict[str, dict[str, int]]:
    """Return the weighted score of each plugin for each node, and their total."""
    if len(nodes) == 1:
        return {nodes[0].name: {"total": 0}}
    weighted: dict[str, list[int]] = {}
    weighted["TaintToleration"] = [3 * score for score in taint_toleration_scores(pod, nodes)]
    if preferred_terms(pod):
        weighted["NodeAffinity"] = [(14 if binpack else 2) * score for score in node_affinity_scores(pod, nodes)]
    weighted["NodeResourcesFit"] = [node_resources_fit_score(pod, node, binpack=binpack) for node in nodes]
    # No pod here has a claim for storage.
    weighted["VolumeBinding"] = [0 for _ in nodes]
    spread = pod_topology_spread_scores(pod, nodes, cluster)
    if spread is not None:
        weighted["PodTopologySpread"] = [2 * score for score in spread]
    affine = inter_pod_affinity_scores(pod, nodes, cluster)
    if affine is not None:
        weighted["InterPodAffinity"] = [2 * score for score in affine]
    if any(pod_requests(pod).get(resource) for resource in ("cpu", "memory")):
        weighted["NodeResourcesBalancedAllocation"] = [balanced_allocation_score(pod, node) for node in nodes]
    weighted["DynamicResources"] = [2 * score for score in dynamic_resources_scores(pod, nodes, cluster)]
    weighted["ImageLocality"] = [image_locality_score(pod, node, cluster.nodes) for node in nodes]
    return {
        node.name: {"total": sum(scores[index] for scores in weighted.values())}
        | {plugin: scores[index] for plugin, scores in weighted.items()}
        for index, node in enumerate(nodes)
    }


def taint_toleration_scores(pod: Object, nodes: list[OracleNode]) -> list[int]:
    tolerations = [
        toleration
        for toleration in tolerations_of(pod)
        if not toleration.get("effect") or toleration["effect"] == "PreferNoSchedule"
    ]
    counts = [
        sum(
            1
            for taint in node.taints
            if taint["effect"] == "PreferNoSchedule" and not tolerates_any(tolerations, taint)
        )
        for node in nodes
    ]
    largest = max(counts)
    return [100 if largest == 0 else 100 - 100 * count // largest for count in counts]


def preferred_terms(pod: Object) -> list[Object]:
    node_affinity_spec = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms: list[Object] = node_affinity_spec.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return terms


def node_affinity_scores(pod: Object, nodes: list[OracleNode]) -> list[int]:
    sums = [
        sum(each["weight"] for each in preferred_terms(pod) if term_matches(each["preference"], node.labels, node.name))
        for node in nodes
    ]
    largest = max(sums)
    return [0 if largest == 0 else 100 * weight // largest for weight in sums]


def node_resources_fit_score(pod: Object, node: OracleNode, *, binpack: bool) -> int:
    scored = scored_of(pod)
    total = weights = 0
    for resource, weight in (MOST_ALLOCATED if binpack else LEAST_ALLOCATED).items():
        capacity = node.allocatable(resource)
        if capacity == 0 or (is_scalar_resource(resource) and not scored.get(resource)):
            continue
        requested = node.counted(resource) + scored.get(resource, 0)
        if binpack:
            score = 100 * min(requested, capacity) // capacity
        else:
            score = 0 if requested > capacity else 100 * (capacity - requested) // capacity
        total += weight * score
        weights += weight
    return total // weights if weights else 0


def balanced_allocation_score(pod: Object, node: OracleNode) -> int:
    requests = pod_requests(pod)
    with_pod, without_pod = [], []
    for resource in ("cpu", "memory"):
        capacity = node.allocatable(resource)
        if capacity:
            without_pod.append(min(node.requested(resource) / capacity, 1.0))
            with_pod.append(min((node.requested(resource) + requests.get(resource, 0)) / capacity, 1.0))
    return 50 + (50 + balance(with_pod) - balance(without_pod)) // 2


def balance(shares: list[float]) -> int:
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return math.trunc((1 - deviation) * 100)


def image_locality_score(pod: Object, node: OracleNode, all_nodes: list[OracleNode]) -> int:
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    volumes = [each["image"]["reference"] for each in pod["spec"].get("volumes") or [] if each.get("image")]
    held = 0
    for image in [*(container["image"] for container in containers), *volumes]:
        name = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
        sizes = [size for each in all_nodes for held_name, size in each.images() if held_name == name]
        if any(held_name == name for held_name, _ in node.images()):
            spread = sum(any(held_name == name for held_name, _ in each.images()) for each in all_nodes)
            held += math.trunc(sizes[0] * (spread / len(all_nodes)))
    least, most = 23 * 1024 * 1024, 1000 * 1024 * 1024 * (len(containers) + len(volumes))
    return 100 * (min(max(held, least), most) - least) // (most - least)

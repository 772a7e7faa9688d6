"""Queues and pod groups of Volcano, KAI and Kueue, as their controllers store them, and minimal CRDs of them."""

from collections.abc import Mapping
from typing import Any

from webhook.cluster.optional_kinds import BATCH_KINDS

Object = dict[str, Any]
Amounts = Mapping[str, str]

_OF_CLUSTER = ("Queue.scheduling.volcano.sh", "Queue.scheduling.run.ai", "ClusterQueue", "ResourceFlavor", "HyperNode")


def volcano_queue(
    name: str = "default", *, state: str = "Open", capability: Amounts | None = None, allocated: Amounts | None = None
) -> Object:
    """Return a Queue of Volcano."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True, **({"capability": dict(capability)} if capability else {})},
        "status": {"state": state, "allocated": dict(allocated or {})},
    }


def volcano_group(
    name: str, *, namespace: str = "default", queue: str = "default", phase: str = "Inqueue", members: int = 2
) -> Object:
    """Return a PodGroup of Volcano."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": members, "queue": queue},
        "status": {"phase": phase},
    }


def volcano_configuration(text: object) -> Object:
    """Return the ConfigMap of Volcano's scheduler with this file."""
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"volcano-scheduler.conf": text}}


def hyper_node(name: str, tier: int, *selectors: Object, of: str = "Node", tier_name: str = "") -> Object:
    """Return a HyperNode of Volcano, with a member of the type `of` for each selector."""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "members": [{"type": of, "selector": each} for each in selectors],
            **({"tierName": tier_name} if tier_name else {}),
        },
    }


def named(*names: str) -> list[Object]:
    """Return a selector of members for each name."""
    return [{"exactMatch": {"name": each}} for each in names]


def kai_queue(
    name: str, *, parent: str = "", limits: Mapping[str, float] | None = None, allocated: Amounts | None = None
) -> Object:
    """Return a Queue of KAI; `limits` by gpu, cpu and memory, in the units of KAI; without one: not limited."""
    resources = {
        each: {"quota": -1, "overQuotaWeight": 1, "limit": (limits or {}).get(each, -1)}
        for each in ("gpu", "cpu", "memory")
    }
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": resources, **({"parentQueue": parent} if parent else {})},
        "status": {"allocated": dict(allocated or {})},
    }


def kai_group(name: str, *, namespace: str = "default", queue: str = "team", members: int = 2) -> Object:
    """Return a PodGroup of KAI."""
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": members, "queue": queue},
    }


def pod_group(name: str, *, group: str, namespace: str = "default", members: int = 2, **spec: Any) -> Object:
    """Return a PodGroup of the Coscheduling plugin, or of kube-scheduler itself, by its API `group`.

    Without `members` that of kube-scheduler starts its pods one by one.
    """
    is_native = group == "scheduling.k8s.io"
    policy: Object = {"gang": {"minCount": members}} if members else {"basic": {}}
    spec = {**({"schedulingPolicy": policy} if is_native else {"minMember": members}), **spec}
    version = {"scheduling.x-k8s.io": "v1alpha1", "scheduling.k8s.io": "v1beta1"}[group]
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def local_queue(
    name: str, cluster_queue: str = "cards", *, namespace: str = "default", stop: str | None = None
) -> Object:
    """Return a LocalQueue of Kueue."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterQueue": cluster_queue, **({"stopPolicy": stop} if stop else {})},
    }


def cluster_queue(
    name: str,
    flavors: Mapping[str, Amounts],
    *,
    cohort: str = "",
    borrowing: Amounts | None = None,
    stop: str | None = None,
) -> Object:
    """Return a ClusterQueue of Kueue with one group of resources; `flavors` are the nominal quotas of each flavor."""
    limits = borrowing or {}
    quotas = [
        {
            "name": flavor,
            "resources": [
                {"name": each, "nominalQuota": amount} | ({"borrowingLimit": limits[each]} if each in limits else {})
                for each, amount in amounts.items()
            ],
        }
        for flavor, amounts in flavors.items()
    ]
    covered = sorted({each for amounts in flavors.values() for each in amounts})
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": covered, "flavors": quotas}]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": spec | ({"cohort": cohort} if cohort else {}) | ({"stopPolicy": stop} if stop else {}),
    }


def resource_flavor(name: str, **labels: str) -> Object:
    """Return a ResourceFlavor of Kueue for nodes with `labels`; `__` in a key stands for a slash."""
    node_labels = {key.replace("__", "/"): value for key, value in labels.items()}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ResourceFlavor",
        "metadata": {"name": name},
        "spec": {"nodeLabels": node_labels},
    }


def topology(name: str, api_version: str, *levels: str) -> Object:
    """Return a Topology of Kueue or KAI, by its `api_version`, with the node labels of its levels."""
    spec = {"levels": [{"nodeLabel": each} for each in levels]}
    return {"apiVersion": api_version, "kind": "Topology", "metadata": {"name": name}, "spec": spec}


def workload(
    name: str, pod: Object, levels: list[str], *domains: tuple[list[str], int], namespace: str = "default"
) -> Object:
    """Return a Workload of Kueue whose pods, like `pod`, have domains: the values of `levels`, and a number of pods."""
    topology = {"levels": levels, "domains": [{"values": values, "count": count} for values, count in domains]}
    count = sum(count for _, count in domains)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"podSets": [{"name": "main", "count": count, "template": {"spec": pod["spec"]}}]},
        "status": {"admission": {"podSetAssignments": [{"name": "main", "topologyAssignment": topology}]}},
    }


KUEUE_TOPOLOGY, KAI_TOPOLOGY = "kueue.x-k8s.io/v1beta1", "kai.scheduler/v1alpha1"
BATCH_OBJECTS: Mapping[str, Object] = dict(
    zip(
        BATCH_KINDS,
        (
            volcano_queue("optional"),
            volcano_group("optional"),
            hyper_node("optional", 1, *named("n1")),
            kai_queue("optional"),
            kai_group("optional"),
            topology("optional", KAI_TOPOLOGY, "rack"),
            local_queue("optional"),
            cluster_queue("optional", {"spot": {"cpu": "9"}}),
            resource_flavor("optional", pool="spot"),
            topology("optional", KUEUE_TOPOLOGY, "rack"),
            workload("optional", {"spec": {}}, ["rack"], (["1"], 2)),
            pod_group("optional", group="scheduling.x-k8s.io"),
            pod_group("optional", group="scheduling.k8s.io"),
        ),
        strict=True,
    )
)
"""An object of each of BATCH_KINDS, by the name of its row."""


def definition(name: str) -> Object:
    """Return a minimal CustomResourceDefinition of one of BATCH_KINDS, which accepts any object."""
    row, (kind, _, group) = BATCH_KINDS[name], name.partition(".")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": row.api_version.rpartition("/")[2], "served": True, "storage": True, "schema": schema}
    scope = "Cluster" if name in _OF_CLUSTER or kind in _OF_CLUSTER else "Namespaced"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{row.plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": row.plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    }

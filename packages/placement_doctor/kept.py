"""The parts of objects that are kept for checks. A large cluster is read in pages, and little of it is kept. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placement_doctor.check import MOST_NAMED
from placement_doctor.cluster import Cluster, Unprotected, name_of
from placement_doctor.source import Source
from webhook.admission.missed import NO_SCOPE, MissedPod, Scope, missed_pod
from webhook.admission.registered_selection import Selection
from webhook.backends.backend import Backend
from webhook.backends.kai import GROUP as KAI_GROUP
from webhook.backends.registry import backend_of, batch_names_of, starts_whole
from webhook.cli.inputs.installed_servers import VARIABLE_PREFIX, containers_of
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.documents import documents
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.documents.parts import listed, texts
from webhook.kube.names import KAI_TOPOLOGY, MIRROR_POD_ANNOTATION
from webhook.kube.pod.gang_key import gangs_of
from webhook.policy.policy_set import PolicySet

Shape = Mapping[str, Any]

_MOST_COLLECTED = 100
_KAI_TOPOLOGIES = (KAI_TOPOLOGY, "kai.scheduler/topology-preferred-placement")
_NOWHERE = "none"
_ALL: Shape = {}
_NAMES: Shape = {"name": _ALL, "namespace": _ALL}
_CONTAINER: Shape = dict.fromkeys(("name", "command", "args", "ports", "volumeMounts", "env", "resources"), _ALL)
_POD: Shape = {"volumes": _ALL, "serviceAccountName": _ALL, "priorityClassName": _ALL, "containers": _CONTAINER}
_WRITTEN: Shape = {"time": _ALL, "fieldsV1": {"f:spec": {"f:renewTime": _ALL, "f:holderIdentity": _ALL}}}
# Sources without a shape are few objects, which are kept as they are.
_SHAPES: Mapping[Source, Shape] = {
    Source.NAMESPACES: {"metadata": {**_NAMES, "labels": _ALL, "annotations": _ALL}},
    Source.NODES: {
        "metadata": {**_NAMES, "labels": _ALL},
        "spec": {"taints": _ALL, "unschedulable": _ALL},
        "status": {"allocatable": _ALL, "capacity": _ALL},
    },
    Source.DEPLOYMENTS: {
        "kind": _ALL,
        "metadata": {**_NAMES, "annotations": {"meta.helm.sh/release-name": _ALL}},
        "spec": {"replicas": _ALL, "template": {"metadata": {"labels": _ALL}, "spec": _POD}},
        "status": {"readyReplicas": _ALL, "conditions": _ALL},
    },
    Source.LEASES: {
        "metadata": {**_NAMES, "creationTimestamp": _ALL, "managedFields": _WRITTEN},
        "spec": {"renewTime": _ALL, "holderIdentity": _ALL, "leaseDurationSeconds": _ALL},
    },
    Source.QUOTAS: {"metadata": _NAMES, "spec": _ALL, "status": _ALL},
    Source.LIMIT_RANGES: {"metadata": _NAMES, "spec": _ALL},
    Source.QUEUES: {"metadata": _NAMES},
    Source.TOPOLOGY_REQUESTS: {
        "apiVersion": _ALL,
        "kind": _ALL,
        "metadata": {**_NAMES, "managedFields": {"fieldsV1": {"f:spec": {"f:schedulingConstraints": _ALL}}}},
        "spec": dict.fromkeys(("networkTopology", "schedulingConstraints", "topologyConstraint"), _ALL),
        "data": _ALL,
    },
    Source.NODE_POOLS: {
        "kind": _ALL,
        "metadata": {**_NAMES, "labels": _ALL},
        "spec": dict.fromkeys(("limits", "replicas", "taints", "template"), _ALL),
        "status": {"allocatable": _ALL},
    },
    Source.ALL_BUDGETS: {"metadata": _NAMES, "spec": {"selector": _ALL}},
    Source.POLICY: {"metadata": {**_NAMES, "generation": _ALL}, "status": _ALL},
}


def kept(source: Source, content: JsonObject) -> JsonObject:
    """Return the part of an object of `source` that checks read."""
    found: JsonObject = _part(content, _SHAPES.get(source, _ALL))
    if source is Source.DEPLOYMENTS:
        for each in containers_of(found):
            # Variables of other programs can have secrets.
            variables = listed(each, "env")
            each["env"] = [one for one in variables if str(one.get("name")).startswith(VARIABLE_PREFIX)]
    return found


def _part(value: Any, shape: Shape) -> Any:
    """Return the fields of `value` that are in `shape`. For a list, this applies to each item."""
    if not shape:
        return value
    if isinstance(value, list):
        return [_part(each, shape) for each in value]
    if not isinstance(value, dict):
        return None
    return {key: _part(value[key], part) for key, part in shape.items() if key in value}


@dataclass(slots=True)
class PodsRead:
    """Collects, from all pods, the schedulers of bound pods and the first of `missed_count` missed pods.

    `bound_schedulers` has the time of the newest binding by scheduler, or empty if it is not known.

    `selection` are the pods that are sent to the webhook; if it is None, no pod counts as missed. `scopes` are the
    namespaces. `selects_a_pod` is true if the objectSelector selects one of the pods, or None without an objectSelector
    or without pods.

    `named_topologies` has a pod for each topology that pods name in annotations, by the policy's name and the value.
    `kai_topologies` are the PodGroups of pods with a topology annotation of KAI, by pod. Both have at most
    `_MOST_COLLECTED` entries.

    `budgets` are the PodDisruptionBudgets of each namespace, or None if they are not known. `unprotected` are the bound
    pods of gangs that none of them selects, by namespace and workload type. `networks` has the first pod of a pod
    network in each namespace that has one.
    """

    policies: PolicySet
    selection: Selection | None
    scopes: Mapping[str, Scope]
    selects_a_pod: bool | None = None
    bound_schedulers: dict[str, str] = field(default_factory=dict)
    missed: list[MissedPod] = field(default_factory=list)
    missed_count: int = 0
    budgets: Mapping[str, Sequence[DisruptionBudget]] | None = None
    unprotected: dict[tuple[str, str], Unprotected] = field(default_factory=dict)
    named_topologies: dict[tuple[str, str], str] = field(default_factory=dict)
    kai_topologies: dict[str, str] = field(default_factory=dict)
    networks: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster) -> "PodsRead":
        """Return the collector before the first pod. If the namespaces are not known, no pod counts as missed."""
        own = cluster.pods_webhook if cluster.knows(Source.NAMESPACES) else None
        scopes = {
            name_of(each): Scope(texts(each, "metadata", "annotations"), texts(each, "metadata", "labels"))
            for each in cluster.of(Source.NAMESPACES)
        }
        selection = None if own is None else Selection.of(own[1])
        return cls(cluster.policies, selection, scopes, budgets=_budgets_of(cluster))

    def add(self, pod: JsonObject) -> None:
        """Add `pod`, which has not ended."""
        self._add_topologies(pod)
        if is_of_network(pod):
            namespace, _, name = name_of(pod).partition("/")
            self.networks.setdefault(namespace, name)
        scheduler = documents.field(pod, "spec", "schedulerName")
        if documents.field(pod, "spec", "nodeName") and isinstance(scheduler, str):
            self.bound_schedulers[scheduler] = max(self.bound_schedulers.get(scheduler, ""), _bound_at(pod))
            self._add_unprotected(pod, scheduler)
        if self.selection is None:
            return
        if self.selection.pods:
            self.selects_a_pod = bool(self.selects_a_pod) or self.selection.selects(pod)
        if (missed := missed_pod(pod, self.policies, self.selection, self.scopes)) is not None:
            self.missed_count += 1
            if len(self.missed) < MOST_NAMED:
                self.missed.append(missed)

    def _add_topologies(self, pod: JsonObject) -> None:
        annotations, namespace = (
            texts(pod, "metadata", "annotations"),
            str(documents.field(pod, "metadata", "namespace")),
        )
        if not annotations:
            return
        policy = self.policies.of_namespace(namespace, self.scopes.get(namespace, NO_SCOPE).labels)
        for key in (policy.keys.spread, policy.keys.within):
            value = annotations.get(key, _NOWHERE)
            if value != _NOWHERE and len(self.named_topologies) < _MOST_COLLECTED:
                self.named_topologies.setdefault((policy.name, value), name_of(pod))
        if any(key in annotations for key in _KAI_TOPOLOGIES) and len(self.kai_topologies) < _MOST_COLLECTED:
            self.kai_topologies[name_of(pod)] = annotations.get(KAI_GROUP, "")

    def _add_unprotected(self, pod: JsonObject, scheduler: str) -> None:
        """Add the pod to `unprotected` if it is a bound pod of a gang that no PodDisruptionBudget selects."""
        if self.budgets is None:
            return
        namespace = str(documents.field(pod, "metadata", "namespace"))
        policy = self.policies.of_namespace(namespace, self.scopes.get(namespace, NO_SCOPE).labels)
        workload_type = texts(pod, "metadata", "annotations").get(policy.keys.workload_type)
        if workload_type is None or not _is_of_gang(pod, namespace, backend_of(policy.spec, scheduler)):
            return
        labels = texts(pod, "metadata", "labels")
        if not any(each.selects(labels) for each in self.budgets.get(namespace, ())):
            key, name = (namespace, workload_type), name_of(pod).rpartition("/")[2]
            first, count = self.unprotected.get(key, Unprotected(name, 0))
            self.unprotected[key] = Unprotected(first, count + 1)


# Source: the manifests and charts of the projects. Their pods and operators use the network of the node.
_NETWORKS = (
    *("antrea", "aws-node", "calico", "canal", "cilium", "flannel", "kube-ovn", "kube-router", "multus", "ovnkube"),
    *("spiderpool", "terway", "tigera", "weave"),
)


def is_of_network(pod: JsonObject) -> bool:
    """Return whether `pod` is of a CNI plugin or its operator, without which no other pod gets a network."""
    name = name_of(pod)
    return documents.field(pod, "spec", "hostNetwork") is True and any(each in name for each in _NETWORKS)


def _is_of_gang(pod: JsonObject, namespace: str, backend: type[Backend]) -> bool:
    return bool(gangs_of(namespace, pod["metadata"])) or starts_whole(pod, batch_names_of(pod, backend))


def _budgets_of(cluster: Cluster) -> dict[str, list[DisruptionBudget]] | None:
    """Return the budgets by namespace, without malformed ones."""
    if not cluster.knows(Source.ALL_BUDGETS):
        return None
    found: dict[str, list[DisruptionBudget]] = {}
    for content in cluster.of(Source.ALL_BUDGETS):
        try:
            budget = DisruptionBudget.of(content)
        except InvalidInput:
            continue
        found.setdefault(budget.namespace, []).append(budget)
    return found


def _bound_at(pod: JsonObject) -> str:
    """Return the time at which a scheduler bound `pod`, or "" if the kubelet created it or the time is not known."""
    if MIRROR_POD_ANNOTATION in texts(pod, "metadata", "annotations"):
        return ""
    conditions = listed(pod, "status", "conditions")
    times = (each.get("lastTransitionTime") for each in conditions if each.get("type") == "PodScheduled")
    return next((each for each in times if isinstance(each, str)), "")

"""The parts of a cluster that a diagnosis reads."""

from collections.abc import Mapping
from enum import Enum

from webhook.cluster.cache.resources import BATCH_RESOURCES, PRIORITY_CLASSES, Resource


class Source(Enum):
    """Parts of a cluster that are read once. Each has a name for messages and the permissions that it needs.

    A part that is a list has a path, in which {} is the namespace of the webhook.
    """

    CONFIGURATIONS = ("MutatingWebhookConfigurations", "list mutatingwebhookconfigurations")
    NAMESPACES = ("Namespaces", "list namespaces", "/api/v1/namespaces")
    NODES = ("Nodes", "list nodes", "/api/v1/nodes")
    PODS = ("Pods", "list pods")
    SERVICE = ("the Service of the webhook", "get services in its namespace")
    ENDPOINTS = ("the EndpointSlices of the webhook", "list endpointslices in its namespace")
    DEPLOYMENTS = ("Deployments and StatefulSets", "list deployments and statefulsets")
    CONTROLLER_PODS = ("the pods of the certs controller", "list pods in the namespace of the webhook")
    BUDGETS = (
        "the PodDisruptionBudgets of the webhook",
        "list poddisruptionbudgets in its namespace",
        "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    )
    ALL_BUDGETS = ("PodDisruptionBudgets", "list poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets")
    POLICY = ("the ConfigMap of the policy", "get configmaps in the namespace of the webhook")
    NETWORK_POLICIES = (
        "the NetworkPolicies of the webhook",
        "list networkpolicies in its namespace",
        "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    )
    QUOTAS = ("ResourceQuotas", "list resourcequotas", "/api/v1/resourcequotas")
    LIMIT_RANGES = ("LimitRanges", "list limitranges", "/api/v1/limitranges")
    PRIORITY_CLASSES = ("PriorityClasses", "list PriorityClasses", PRIORITY_CLASSES.path)
    LEASES = ("Leases", "list leases", "/apis/coordination.k8s.io/v1/leases")
    GROUPS = ("API groups", "none")
    EXPORTED = ("the exported policy", "list MutatingAdmissionPolicies and their bindings")
    QUEUES = ("queues of Volcano, KAI and Kueue", "list queues and localqueues")
    TOPOLOGY_REQUESTS = (
        "PodGroups, and the configuration of Volcano",
        "list podgroups, get the ConfigMap volcano-system/volcano-scheduler-configmap",
    )
    NODE_POOLS = ("NodePools and NodeClaims of Karpenter", "list nodepools and nodeclaims")
    RIGHTS = ("the rights of the service accounts", "create subjectaccessreviews")
    PROBE = ("a TLS handshake with the webhook", "none")
    TRIAL = ("the dry-run creation of a pod", "create pods")
    CLOCK = ("the time of the API server and the user", "create selfsubjectreviews, which every user has")
    VERSION = ("the version of the API server", "none")

    def __init__(self, title: str, rights: str, path: str = "") -> None:
        self.title, self.rights, self.path = title, rights, path


BEFORE: Mapping[Source, tuple[Source, ...]] = {
    Source.CONTROLLER_PODS: (Source.SERVICE, Source.DEPLOYMENTS),
    Source.POLICY: (Source.SERVICE, Source.DEPLOYMENTS),
    Source.PODS: (Source.NAMESPACES, Source.POLICY, Source.ALL_BUDGETS),
    Source.TRIAL: (Source.NAMESPACES, Source.POLICY, Source.CLOCK),
    Source.PROBE: (Source.ENDPOINTS,),
    Source.RIGHTS: (Source.SERVICE, Source.DEPLOYMENTS, Source.GROUPS, Source.POLICY),
    Source.QUEUES: (Source.GROUPS,),
    Source.NODE_POOLS: (Source.GROUPS,),
    Source.TOPOLOGY_REQUESTS: (Source.GROUPS,),
}
"""The sources that are read before another one, which is found by them."""

KINDS: Mapping[Source, tuple[Resource, ...]] = {
    Source.QUEUES: tuple(each for each in BATCH_RESOURCES if each.plural in ("queues", "localqueues")),
    Source.TOPOLOGY_REQUESTS: tuple(each for each in BATCH_RESOURCES if each.plural == "podgroups"),
    Source.NODE_POOLS: (
        Resource("NodePool", "karpenter.sh/v1", "nodepools"),
        Resource("NodeClaim", "karpenter.sh/v1", "nodeclaims"),
    ),
}
"""The kinds of the sources that not every cluster serves."""

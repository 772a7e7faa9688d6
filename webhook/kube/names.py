"""Well-known names of Kubernetes and of schedulers; the rules of names, label keys and label values.

Source: k8s.io/apimachinery/pkg/util/validation/validation.go
"""

import re

ADMISSION_API_VERSION = "admission.k8s.io/v1"
DEFAULT_SCHEDULER = "default-scheduler"

# The phases of pods that no longer use resources.
ENDED_PHASES = ("Succeeded", "Failed")
# The label that the API server gives to every namespace.
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
REGION_LABEL = "topology.kubernetes.io/region"
OS_LABEL = "kubernetes.io/os"
ARCH_LABEL = "kubernetes.io/arch"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
# The annotation in which the API server notes what LimitRanger has set.
LIMIT_RANGER = "kubernetes.io/limit-ranger"
MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"
# `kubectl create job --from=cronjob/NAME` sets it: a user, not the controller of the CronJob, has created the Job.
MANUAL_JOB_ANNOTATION, MANUAL_JOB = "cronjob.kubernetes.io/instantiate", "manual"
# The annotation with the PodGroup of a pod of Volcano. Its controller sets it on pods that name none.
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
# The ConfigMap of Volcano's scheduler in its chart, with the default names.
VOLCANO_NAMESPACE, VOLCANO_CONFIGURATION = "volcano-system", "volcano-scheduler-configmap"
VOLCANO_API_GROUP = "scheduling.volcano.sh"
# The queues of pods that name none.
VOLCANO_DEFAULT_QUEUE, KAI_DEFAULT_QUEUE = "default", "default-queue"
KUEUE_GROUP = "kueue.x-k8s.io"
# The ConfigMap of Kueue's manager in its manifests and its chart, with the default names.
KUEUE_NAMESPACE, KUEUE_CONFIGURATION = "kueue-system", "kueue-manager-config"
# The label with the LocalQueue of a pod that Kueue holds until the queue has quota for it.
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
# The start of the names of the scheduling gates that Kueue adds to such pods, and removes once the quota has room.
KUEUE_GATES = "kueue.x-k8s.io/"
# The annotations with which a pod of KAI requests a share of a card: a fraction, or memory of the card in MiB.
KAI_SHARES = ("gpu-fraction", "gpu-memory")
# The annotation and the label by which Kueue marks the pods of a Workload that it places, see `TopologyAssignment`.
KUEUE_WORKLOAD, KUEUE_POD_SET = "kueue.x-k8s.io/workload", "kueue.x-k8s.io/podset"
KUEUE_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
KAI_TOPOLOGY = "kai.scheduler/topology-required-placement"
KAI_SUBGROUP, KAI_DEFAULT_SUBGROUP = "kai.scheduler/subgroup-name", "default"
"""The label of a pod with its part of a PodGroup, and the part of a pod without it."""
# The modes of a network topology of Volcano are `soft` and `hard`, which is the default.
VOLCANO_TOPOLOGY, VOLCANO_SOFT = "volcano.sh/network-topology-mode", "soft"
VOLCANO_TIER = "volcano.sh/network-topology-highest-tier"
# The plugin without which Volcano ignores them.
VOLCANO_PLUGIN = "network-topology-aware"
# The annotations by which Kueue, KAI and Volcano keep the pods of a group within a domain.
REQUIRED_TOPOLOGIES = frozenset(
    (
        KUEUE_TOPOLOGY,
        "kueue.x-k8s.io/podset-slice-required-topology",
        "kueue.x-k8s.io/podset-slice-required-topology-constraints",
        KAI_TOPOLOGY,
        VOLCANO_TOPOLOGY,
        VOLCANO_TIER,
    )
)
# The annotation with the number of cards that such a pod shares.
KAI_SHARE_DEVICES = "gpu-fraction-num-devices"
DEFAULT_NAMESPACE = "default"
# The kind whose controller chooses the node of each pod, in any API group.
DAEMON_SET = "DaemonSet"


_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = re.compile(_DNS_LABEL)
_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

LABEL_VALUE_RULE = "must be a label value: at most 63 letters, digits, '-', '_', '.', its ends letters or digits"
DNS_LABEL_RULE = "must be a DNS label: lower case letters, digits and '-', at most 63, its ends letters or digits"
SUBDOMAIN_RULE = "must be a DNS subdomain: lower case letters, digits, '-' and '.', at most 253, like maip.mxsf.io"
QUALIFIED_NAME_RULE = "must be a label key: NAME or DOMAIN/NAME, NAME at most 63 letters, digits, '-', '_', '.'"


def is_dns_label(text: str) -> bool:
    """Return true if `text` is a DNS label: a valid name of a namespace."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Return true if `text` is a DNS subdomain: a valid name of most objects and prefix of a label key."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Return true if `text` is a valid label value. The empty string is valid."""
    return len(text) <= 63 and (not text or _NAME.fullmatch(text) is not None)


def is_qualified_name(text: str) -> bool:
    """Return true if `text` is a valid key of a label, an annotation or a taint."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return 0 < len(name) <= 63 and _NAME.fullmatch(name) is not None

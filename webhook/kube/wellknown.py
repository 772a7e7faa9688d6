"""Names that Kubernetes itself defines."""

ADMISSION_API_VERSION = "admission.k8s.io/v1"
DEFAULT_SCHEDULER = "default-scheduler"

# The phases of pods that no longer use resources.
ENDED_PHASES = ("Succeeded", "Failed")
# The label that the API server gives to every namespace.
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
OS_LABEL = "kubernetes.io/os"
ARCH_LABEL = "kubernetes.io/arch"
MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"
# `kubectl create job --from=cronjob/NAME` sets it: a user, not the controller of the CronJob, has created the Job.
MANUAL_JOB_ANNOTATION, MANUAL_JOB = "cronjob.kubernetes.io/instantiate", "manual"
# The annotation with the PodGroup of a pod of Volcano. Its controller sets it on pods that name none.
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
# The label with the LocalQueue of a pod that Kueue holds until the queue has quota for it.
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
# The annotations with which a pod of KAI requests a share of a card: a fraction, or memory of the card in MiB.
KAI_SHARES = ("gpu-fraction", "gpu-memory")
DEFAULT_NAMESPACE = "default"

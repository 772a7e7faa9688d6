"""Names that Kubernetes itself defines."""

ADMISSION_API_VERSION = "admission.k8s.io/v1"
DEFAULT_SCHEDULER = "default-scheduler"
HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"
DEFAULT_NAMESPACE = "default"

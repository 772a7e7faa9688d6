"""Well-known kinds that create no pods, as they are in everyday manifests beside kinds that do."""

from collections.abc import Mapping

_CORE = (
    *("ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume"),
    *("PersistentVolumeClaim", "ResourceQuota", "Secret", "Service", "ServiceAccount"),
)
# Every kind of these groups.
_GROUPS = frozenset(
    (
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "autoscaling"),
        *("autoscaling.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io"),
        *("flowcontrol.apiserver.k8s.io", "gateway.networking.k8s.io", "kueue.x-k8s.io", "kustomize.config.k8s.io"),
        *("networking.istio.io", "networking.k8s.io", "node.k8s.io", "placement.maip.mxsf.io", "policy"),
        *("rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "scheduling.volcano.sh"),
        *("scheduling.x-k8s.io", "security.istio.io", "snapshot.storage.k8s.io", "storage.k8s.io"),
        *("topology.volcano.sh", "storagemigration.k8s.io"),
    )
)
_KINDS: Mapping[str, tuple[str, ...]] = {
    "": _CORE,
    "apps": ("ControllerRevision",),
    "cert-manager.io": ("Certificate", "CertificateRequest", "ClusterIssuer", "Issuer"),
    "external-secrets.io": ("ClusterExternalSecret", "ClusterSecretStore", "ExternalSecret", "SecretStore"),
    "keda.sh": ("ClusterTriggerAuthentication", "ScaledObject", "TriggerAuthentication"),
    "monitoring.coreos.com": ("AlertmanagerConfig", "PodMonitor", "Probe", "PrometheusRule", "ServiceMonitor"),
    "serving.kserve.io": ("ClusterServingRuntime", "ClusterStorageContainer", "ServingRuntime", "TrainedModel"),
    "serving.knative.dev": ("DomainMapping", "Route"),
}


def creates_no_pods(group: str, kind: str) -> bool:
    """Return true if objects of the kind certainly create no pods."""
    return group in _GROUPS or kind in _KINDS.get(group, ())

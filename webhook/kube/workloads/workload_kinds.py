"""The kinds of objects that create pods, create no pods, or queue pods, and the kinds that may be patched.

The templates of a kind may be patched if they are PodTemplateSpecs that the controller copies to the pods, and if the
admission of the kind accepts every field of a pod. Not patched are kinds whose templates are not PodTemplateSpecs
(InferenceService, Notebook, Workflow), kinds that reject fields of a pod (Knative's Service rejects affinity and
tolerations by default), kinds whose pods are bypassed (DaemonSet), and kinds that the policy adds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from webhook.kube.names import DAEMON_SET, KAI_DEFAULT_QUEUE, KUEUE_QUEUE, VOLCANO_DEFAULT_QUEUE
from webhook.kube.workloads.operator_kinds import OPERATOR_KINDS
from webhook.kube.workloads.pod_template_path import STATEFUL_SET_LABELS, Count, PodTemplatePath, WorkloadKind


def _controller(kind: str, resource: str, suspended: str = "", **template: Any) -> WorkloadKind:
    found = PodTemplatePath("spec.template", (Count("spec.replicas"),), **template)
    return WorkloadKind("apps", kind, resource, (found,), suspended=suspended)


def _job(kind: str, resource: str, spec: str) -> WorkloadKind:
    labels = (("batch.kubernetes.io/job-name", "{name}"), ("job-name", "{name}")) if kind == "Job" else ()
    template = PodTemplatePath(
        f"{spec}.template",
        (Count(f"{spec}.parallelism", at_most=f"{spec}.completions"),),
        labels=labels,
        owner_kind="Job",
        completion_mode=f"{spec}.completionMode",
        # The name of a CronJob's Job ends with the time of its schedule.
        indexed_name="{name}-{0}-" if kind == "Job" else "",
    )
    return WorkloadKind("batch", kind, resource, (template,), suspended="spec.suspend")


BUILT_IN_KINDS: tuple[WorkloadKind, ...] = (
    _controller("Deployment", "deployments", "spec.paused", owner_kind="ReplicaSet"),
    WorkloadKind(
        "apps",
        "StatefulSet",
        "statefulsets",
        (
            PodTemplatePath(
                "spec.template",
                (Count("spec.replicas", start="spec.ordinals.start"),),
                name="{name}-{0}",
                labels=STATEFUL_SET_LABELS,
                claims="spec.volumeClaimTemplates",
            ),
        ),
    ),
    _controller("ReplicaSet", "replicasets"),
    WorkloadKind("apps", DAEMON_SET, "daemonsets", (PodTemplatePath("spec.template"),), is_per_node=True),
    _job("Job", "jobs", "spec"),
    _job("CronJob", "cronjobs", "spec.jobTemplate.spec"),
    replace(_controller("ReplicationController", "replicationcontrollers"), group=""),
    WorkloadKind("", "PodTemplate", "podtemplates", (PodTemplatePath("template"),)),
    *OPERATOR_KINDS,
)

Kinds = Mapping[tuple[str, str], WorkloadKind]


def kinds_by_name(configured: Iterable[WorkloadKind] = ()) -> Kinds:
    """Return the built-in kinds by group and kind; `configured` kinds are added or replace them."""
    return {(each.group, each.kind): each for each in (*BUILT_IN_KINDS, *configured)}


_ALWAYS = frozenset(("CREATE", "UPDATE"))
# For kinds whose changed template the API server or an operator refuses or ignores.
# Source: k8s.io/kubernetes/pkg/apis/batch/validation/validation.go, ValidateJobSpecUpdate;
# volcano.sh/volcano/pkg/webhooks/admission/jobs/validate/admit_job.go, validateJobUpdate
_ON_CREATION = frozenset(("CREATE",))

PATCHED_TEMPLATES: Mapping[tuple[str, str], frozenset[str]] = {
    ("apps", "Deployment"): _ALWAYS,
    ("apps", "StatefulSet"): _ALWAYS,
    ("apps", "ReplicaSet"): _ALWAYS,
    ("", "ReplicationController"): _ALWAYS,
    ("batch", "CronJob"): _ALWAYS,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _ALWAYS,
    ("argoproj.io", "Rollout"): _ALWAYS,
    ("batch", "Job"): _ON_CREATION,
    ("batch.volcano.sh", "Job"): _ON_CREATION,
    ("jobset.x-k8s.io", "JobSet"): _ON_CREATION,
    **{
        ("kubeflow.org", kind): _ON_CREATION
        for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
    },
    **{("ray.io", kind): _ON_CREATION for kind in ("RayCluster", "RayJob", "RayService")},
}


CORE_KINDS = (
    *("ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume"),
    *("PersistentVolumeClaim", "ResourceQuota", "Secret", "Service", "ServiceAccount"),
)
"""The kinds of the group v1 that create no pods."""
# Every kind of these groups.
_GROUPS = frozenset(
    (
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "autoscaling"),
        *("autoscaling.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io"),
        *("flowcontrol.apiserver.k8s.io", "gateway.networking.k8s.io", "kueue.x-k8s.io", "kustomize.config.k8s.io"),
        *("networking.istio.io", "networking.k8s.io", "node.k8s.io", "placement.maip.mxsf.io", "policy"),
        *("rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "scheduling.volcano.sh"),
        *("scheduling.x-k8s.io", "security.istio.io", "snapshot.storage.k8s.io", "storage.k8s.io"),
        *("topology.volcano.sh", "storagemigration.k8s.io", "scheduling.run.ai", "kai.scheduler"),
        *("resource.nvidia.com", "nfd.k8s-sigs.io", "karpenter.sh", "karpenter.k8s.aws", "kyverno.io", "cilium.io"),
        *("constraints.gatekeeper.sh", "templates.gatekeeper.sh", "policies.kyverno.io", "helm.toolkit.fluxcd.io"),
        *("inference.networking.k8s.io", "inference.networking.x-k8s.io", "source.toolkit.fluxcd.io"),
        *("bitnami.com", "cloud.google.com", "crd.projectcalico.org", "eks.amazonaws.com", "k8s.cni.cncf.io"),
        *("kustomize.toolkit.fluxcd.io", "metallb.io", "monitoring.googleapis.com", "networking.gke.io"),
        *("nv-ipam.nvidia.com", "projectcalico.org", "route.openshift.io", "secrets-store.csi.x-k8s.io"),
        *("telemetry.istio.io", "traefik.io"),
    )
)
_KINDS: Mapping[str, tuple[str, ...]] = {
    "": CORE_KINDS,
    "apps": ("ControllerRevision",),
    "cert-manager.io": ("Certificate", "CertificateRequest", "ClusterIssuer", "Issuer"),
    "external-secrets.io": ("ClusterExternalSecret", "ClusterSecretStore", "ExternalSecret", "SecretStore"),
    "argoproj.io": ("AppProject", "Application", "ApplicationSet"),
    "grove.io": ("ClusterTopology", "ClusterTopologyBinding"),
    "keda.sh": ("ClusterTriggerAuthentication", "ScaledObject", "TriggerAuthentication"),
    "kubeflow.org": ("PodDefault", "Profile"),
    "sriovnetwork.openshift.io": ("OVSNetwork", "SriovIBNetwork", "SriovNetwork", "SriovNetworkNodePolicy"),
    "monitoring.coreos.com": ("AlertmanagerConfig", "PodMonitor", "Probe", "PrometheusRule", "ServiceMonitor"),
    "serving.kserve.io": (
        "LLMInferenceServiceConfig",
        "ClusterServingRuntime",
        "ClusterStorageContainer",
        "ServingRuntime",
        "TrainedModel",
    ),
    "serving.knative.dev": ("DomainMapping", "Route"),
}


def creates_no_pods(group: str, kind: str) -> bool:
    """Return true if objects of the kind certainly create no pods."""
    return group in _GROUPS or kind in _KINDS.get(group, ())


# The objects by which pods wait in a queue. Every pod that Volcano, KAI or Kueue queues has such an object in its
# namespace, written by a user or by a controller, and its queue decides: whether a label, an annotation, a field of an
# owner or a default has chosen it.
# Source: volcano.sh/volcano/pkg/controllers/podgroup/pg_controller_handler.go, buildPodGroupFromPod;
# github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/defaultgrouper/default_grouper.go,
# CalcPodGroupQueue; sigs.k8s.io/kueue/apis/kueue/v1beta1/workload_types.go, WorkloadSpec
_QUEUED = (
    WorkloadKind(
        "scheduling.volcano.sh", "PodGroup", "podgroups", (), queue="spec.queue", default_queue=VOLCANO_DEFAULT_QUEUE
    ),
    WorkloadKind("scheduling.run.ai", "PodGroup", "podgroups", (), queue="spec.queue", default_queue=KAI_DEFAULT_QUEUE),
    WorkloadKind("kueue.x-k8s.io", "Workload", "workloads", (), queue="spec.queueName"),
)
QUEUED_KINDS: Mapping[tuple[str, str], WorkloadKind] = {(each.group, each.kind): each for each in _QUEUED}
"""The objects by which pods wait in a queue, by group and kind."""

# Source: github.com/NVIDIA/KAI-scheduler/pkg/common/constants/constants.go; github.com/ray-project/kuberay/
# ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go; sigs.k8s.io/lws/pkg/schedulerprovider/
# volcano_provider.go; sigs.k8s.io/kueue/pkg/controller/jobframework/interface.go, QueueNameForObject
QUEUE_KEYS = (KUEUE_QUEUE, "kai.scheduler/queue", "volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")
"""The labels and annotations by which an object that creates pods can name the queue of its pods."""

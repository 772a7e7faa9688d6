"""The kinds whose pod templates may be patched, and when.

A kind is here if its templates are PodTemplateSpecs that its controller copies to the pods, and if its own admission
takes every field of a pod. Left out are kinds whose templates are no PodTemplateSpecs (InferenceService, Notebook,
Workflow), that refuse fields of a pod (Knative's Service refuses affinity and tolerations by default), whose pods are
left alone (DaemonSet), and kinds that the policy adds.
"""

from collections.abc import Mapping

_ALWAYS = frozenset(("CREATE", "UPDATE"))
# Where the API server, or an operator, refuses or ignores a changed template.
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

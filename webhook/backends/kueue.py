"""Kueue: admits pods to a queue before their scheduler sees them. It works with any scheduler.

Measured with Kueue 0.15.0: it reads the queue and the group of a plain pod only from labels, and holds the pods of a
group until all of them exist and fit the quota. A missing LocalQueue is reported on the Workload, not on the pod.
"""

from webhook.backends.backend import (
    Backend,
    BatchRequest,
    DomainRequest,
    Expressed,
    InDomain,
    annotation,
    label,
)
from webhook.documents.documents import field
from webhook.kube.names import KUEUE_QUEUE, KUEUE_TOPOLOGY

QUEUE = KUEUE_QUEUE
GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count"
NEEDS_QUEUE = "admits only the pods of a queue"
"""The warning for a gang without a queue by annotation. A label of the pod can name a queue, too."""
# With one of these annotations it admits pods by the room on nodes, too (topology-aware scheduling), see
# sigs.k8s.io/kueue/apis/kueue/v1beta1/topology_types.go.
PODSET = "kueue.x-k8s.io/podset-"
TOPOLOGIES = frozenset(f"{PODSET}{each}-topology" for each in ("required", "preferred", "unconstrained"))
# The objects that it suspends until all of their pods have quota, if the object itself has the label of the queue, see
# sigs.k8s.io/kueue/pkg/controller/jobs.
_KUBEFLOW = ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
QUEUED_WHOLE = frozenset(
    (("batch", "Job"), ("jobset.x-k8s.io", "JobSet"), *(("kubeflow.org", kind) for kind in _KUBEFLOW))
)
# With it, it admits a Job with fewer pods, see sigs.k8s.io/kueue/pkg/controller/jobs/job/job_controller.go.
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"


class Kueue(Backend):
    """Reads labels and annotations of the pod.

    Source: sigs.k8s.io/kueue/pkg/controller/constants/constants.go, pkg/controller/jobs/pod/constants/constants.go
    """

    name = "kueue"
    api_groups = ("kueue.x-k8s.io",)
    gang_fields = (
        (("metadata", "labels", QUEUE), ("metadata", "labels", GROUP), ("metadata", "annotations", TOTAL_COUNT)),
    )
    queue_at = (("labels", QUEUE),)
    required_level_at = KUEUE_TOPOLOGY
    domain_keys = (*sorted(TOPOLOGIES), f"{PODSET}slice-required-topology")

    @classmethod
    def express(cls, request: BatchRequest) -> Expressed:
        """Return the labels and, for a gang, the size, without which Kueue admits none of its pods."""
        fields, missing = [], []
        if request.queue is not None:
            fields.append(label(QUEUE, request.queue))
        if request.gang is not None and request.gang_size is not None:
            fields.append(label(GROUP, request.gang))
            fields.append(annotation(TOTAL_COUNT, str(request.gang_size)))
        elif request.gang is not None:
            missing.append(("gang", "needs the size of a gang, too"))
        elif request.gang_size is not None:
            missing.append(("gang_size", "needs the name of the gang, too"))
        if request.gang is not None and request.queue is None:
            missing.append(("gang", NEEDS_QUEUE))
        return Expressed(fields, missing)

    @classmethod
    def in_domain(cls, domain: DomainRequest) -> InDomain:
        """Return the annotation of the pod, which Kueue reads from the pod template if the owner is in a queue."""
        key = f"{PODSET}{'required' if domain.is_required else 'preferred'}-topology"
        if domain.request.queue is None and not field(domain.pod, "metadata", "labels", QUEUE):
            if not domain.controller_kind:
                return InDomain(missing=NEEDS_QUEUE)
            if not domain.is_in_objects:
                return InDomain(missing="reads it from pod templates, which only workloadObjects.mutateTemplates edits")
            if not domain.is_of_patched_template and field(domain.pod, "metadata", "annotations", key) is None:
                return InDomain(
                    missing="reads it from the pod template, which is only patched in a new object with a name"
                )
        return InDomain([annotation(key, domain.key)])

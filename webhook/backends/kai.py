"""KAI scheduler: queues by label, gangs by PodGroup, shares of a card.

Measured with KAI 0.12.0 and 0.17.0: it packs by default, ignores preferred node affinity, and places the pods of a
DoNotSchedule spread constraint on one node. A pod of a missing PodGroup waits without a condition.
"""

from functools import partial
from typing import ClassVar

from webhook.backends.backend import (
    PREFERRED_NODE_AFFINITY,
    SIZE_IN_POD_GROUP,
    SPREAD_CONSTRAINTS,
    Backend,
    DomainRequest,
    InDomain,
    Terms,
    annotation,
    label,
)
from webhook.documents.documents import field
from webhook.kube.names import KAI_SHARES, KAI_TOPOLOGY

QUEUE = "kai.scheduler/queue"
PROJECT = "project"
GROUP = "pod-group-name"
OWN_GROUP = "pg-"
"""The start of the names of the PodGroups that it makes. It replaces other names in pods with an owner.

Source: github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/pod_controller.go, isOrphanPodWithPodGroup
"""
PREEMPTIBILITY = "kai.scheduler/preemptibility"
# The controller of a pod of a LeaderWorkerSet is a StatefulSet; KAI makes a gang of each group.
LWS_LABEL = "leaderworkerset.sigs.k8s.io/name"
TOPOLOGY = "kai.scheduler/topology"
"""The beginning of the annotations of the top owner that state a domain. On a pod template they do nothing.

Source: github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/defaultgrouper/default_grouper.go
"""
GPU_FRACTION, _ = KAI_SHARES
# The kinds of the controllers whose pods each have a PodGroup: a ReplicaSet belongs to a Deployment.
# Source: github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/job/job_grouper.go, deployment
_EACH_POD = ("Job", "ReplicaSet")
# The Job of a pod with one of these labels belongs to a larger object, which has one PodGroup.
_OF_LARGER_OBJECT = ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name")
# Source: github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/hub/hub.go, plugins/kubeflow/distributed_common.go
# plugins/leaderworkerset, plugins/ray
GROUPED = (
    *(("kubeflow.org", kind) for kind in ("TFJob", "PyTorchJob", "XGBoostJob", "JAXJob", "MPIJob")),
    *(("ray.io", kind) for kind in ("RayCluster", "RayJob", "RayService")),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
)


class Kai(Backend):
    """Reads labels and annotations of the pod.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/common/constants/constants.go
    """

    name = "kai"
    api_groups = ("scheduling.run.ai", "kai.scheduler")
    gang_fields = ((("metadata", "annotations", GROUP),), (("metadata", "labels", LWS_LABEL),))
    gang_owners = GROUPED
    profile = "kai"
    queue_at = (("labels", QUEUE), ("labels", PROJECT))
    group_at = ("metadata", "annotations", GROUP)
    required_level_at = KAI_TOPOLOGY
    ignores = (PREFERRED_NODE_AFFINITY, SPREAD_CONSTRAINTS)
    terms: ClassVar[Terms] = {
        "queue": partial(label, QUEUE),
        "gang": partial(annotation, GROUP),
        "gang_size": SIZE_IN_POD_GROUP,
        "preemptible": lambda value: label(PREEMPTIBILITY, "preemptible" if value else "non-preemptible"),
        "gpu_fraction": partial(annotation, GPU_FRACTION),
    }
    domain_keys = (TOPOLOGY,)

    @classmethod
    def in_domain(cls, domain: DomainRequest) -> InDomain:
        """Return the annotations of the pod, or of its top owner if it has one."""
        if not domain.controller_kind and domain.names_group(cls.group_at):
            return InDomain(missing="reads only spec.topologyConstraint of the PodGroup that the pod names")
        if not domain.topology:
            return InDomain(missing="has no topologyName in the policy (schedulers.NAME.topologyName)")
        labels = field(domain.pod, "metadata", "labels") or {}
        if domain.controller_kind in _EACH_POD and labels.keys().isdisjoint(_OF_LARGER_OBJECT):
            return InDomain(missing="makes a PodGroup for each pod of a Job or a Deployment")
        mode = "required" if domain.is_required else "preferred"
        fields = annotation(TOPOLOGY, domain.topology), annotation(f"{TOPOLOGY}-{mode}-placement", domain.key)
        if not domain.controller_kind:
            return InDomain(fields)
        if not domain.is_in_objects:
            owner = f"reads {TOPOLOGY} of the pod's top owner, which only workloadObjects.mutateTemplates sets"
            return InDomain(missing=owner)
        return InDomain(of_owner=fields)

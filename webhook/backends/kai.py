"""KAI scheduler: queues by label, gangs by PodGroup, shares of a card.

Measured with KAI 0.12.0 and 0.17.0: it packs by default, ignores preferred node affinity, and places the pods of a
DoNotSchedule spread constraint on one node. A pod of a missing PodGroup waits without a condition.
"""

from collections.abc import Sequence
from typing import ClassVar

from webhook.backends.backend import (
    PREFERRED_NODE_AFFINITY,
    SPREAD_CONSTRAINTS,
    BatchRequest,
    Expressed,
    FieldPath,
    annotation,
    label,
)
from webhook.kube.names import KAI_SHARES

QUEUE = "kai.scheduler/queue"
PROJECT = "project"
GROUP = "pod-group-name"
PREEMPTIBILITY = "kai.scheduler/preemptibility"
GPU_FRACTION, _ = KAI_SHARES
# Source: github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/hub/hub.go, plugins/kubeflow/distributed_common.go
GROUPED = tuple(("kubeflow.org", kind) for kind in ("TFJob", "PyTorchJob", "XGBoostJob", "JAXJob", "MPIJob"))


class Kai:
    """Reads labels and annotations of the pod.

    Source: github.com/NVIDIA/KAI-scheduler/pkg/common/constants/constants.go
    """

    name: ClassVar[str] = "kai"
    api_groups: ClassVar[Sequence[str]] = ("scheduling.run.ai", "kai.scheduler")
    gang_fields: ClassVar[Sequence[Sequence[FieldPath]]] = ((("metadata", "annotations", GROUP),),)
    gang_owners: ClassVar[Sequence[tuple[str, str]]] = GROUPED
    profile: ClassVar[str] = "kai"
    queue_at: ClassVar[Sequence[tuple[str, str]]] = (("labels", QUEUE), ("labels", PROJECT))
    group_at: ClassVar[FieldPath] = ("metadata", "annotations", GROUP)
    ignores: ClassVar[Sequence[str]] = (PREFERRED_NODE_AFFINITY, SPREAD_CONSTRAINTS)

    @staticmethod
    def express(request: BatchRequest) -> Expressed:
        """Return the labels and annotations; the size of a gang is a field of its PodGroup."""
        fields, missing = [], []
        if request.queue is not None:
            fields.append(label(QUEUE, request.queue))
        if request.gang is not None:
            fields.append(annotation(GROUP, request.gang))
        elif request.gang_size is not None:
            missing.append(("gang_size", "reads the size of a gang from minMember of its PodGroup: name it"))
        if request.preemptible is not None:
            fields.append(label(PREEMPTIBILITY, "preemptible" if request.preemptible else "non-preemptible"))
        if request.gpu_fraction is not None:
            fields.append(annotation(GPU_FRACTION, request.gpu_fraction))
        return Expressed(fields, missing)

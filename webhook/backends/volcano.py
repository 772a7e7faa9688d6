"""Volcano: queues, and gangs by PodGroup.

Measured with Volcano 1.15.1: it reads the queue from this annotation alone, the group from
`scheduling.k8s.io/group-name` alone. A pod of a missing group or queue waits without a condition or an event.
"""

from collections.abc import Sequence
from typing import ClassVar

from webhook.backends.backend import BatchRequest, Expressed, FieldPath, annotation
from webhook.kube.names import VOLCANO_GROUP

QUEUE = "scheduling.volcano.sh/queue-name"
GROUP = VOLCANO_GROUP
PREEMPTABLE = "volcano.sh/preemptable"
# The PodGroup of a Volcano Job, which has the queue of the Job, decides for its pods.
JOB_LABEL = "volcano.sh/job-name"


class Volcano:
    """Reads annotations of the pod.

    Source: volcano.sh/apis/pkg/apis/scheduling/v1beta1/labels.go
    """

    name: ClassVar[str] = "volcano"
    api_groups: ClassVar[Sequence[str]] = ("scheduling.volcano.sh",)
    gang_fields: ClassVar[Sequence[Sequence[FieldPath]]] = (
        (("metadata", "annotations", GROUP),),
        (("metadata", "labels", JOB_LABEL),),
    )
    gang_owners: ClassVar[Sequence[tuple[str, str]]] = ()
    profile: ClassVar[str] = "volcano"
    queue_at: ClassVar[Sequence[tuple[str, str]]] = (("annotations", QUEUE),)
    group_at: ClassVar[FieldPath] = ("metadata", "annotations", GROUP)
    ignores: ClassVar[Sequence[str]] = ()

    @staticmethod
    def express(request: BatchRequest) -> Expressed:
        """Return the annotations; the size of a gang is a field of its PodGroup, and cards are shared by resources."""
        fields, missing = [], []
        if request.queue is not None:
            fields.append(annotation(QUEUE, request.queue))
        if request.gang is not None:
            fields.append(annotation(GROUP, request.gang))
        elif request.gang_size is not None:
            missing.append(("gang_size", "reads the size of a gang from minMember of its PodGroup: name it"))
        if request.preemptible is not None:
            fields.append(annotation(PREEMPTABLE, str(request.preemptible).lower()))
        if request.gpu_fraction is not None:
            missing.append(("gpu_fraction", "shares cards by the resources of its device plugin"))
        return Expressed(fields, missing)

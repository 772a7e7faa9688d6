"""Volcano: queues, and gangs by PodGroup.

Measured with Volcano 1.15.1: it reads the queue only from this annotation, and the group only from
`scheduling.k8s.io/group-name`. A pod of a missing group or queue waits without a condition or an event.
"""

from functools import partial
from typing import ClassVar

from webhook.backends.backend import SIZE_IN_POD_GROUP, Backend, Terms, annotation
from webhook.kube.names import VOLCANO_GROUP

QUEUE = "scheduling.volcano.sh/queue-name"
GROUP = VOLCANO_GROUP
PREEMPTABLE = "volcano.sh/preemptable"
# The PodGroup of a Volcano Job, which has the queue of the Job, decides for its pods.
JOB_LABEL = "volcano.sh/job-name"


class Volcano(Backend):
    """Reads annotations of the pod.

    Source: volcano.sh/apis/pkg/apis/scheduling/v1beta1/labels.go
    """

    name = "volcano"
    api_groups = ("scheduling.volcano.sh",)
    gang_fields = ((("metadata", "annotations", GROUP),), (("metadata", "labels", JOB_LABEL),))
    profile = "volcano"
    queue_at = (("annotations", QUEUE),)
    group_at = ("metadata", "annotations", GROUP)
    terms: ClassVar[Terms] = {
        "queue": partial(annotation, QUEUE),
        "gang": partial(annotation, GROUP),
        "gang_size": SIZE_IN_POD_GROUP,
        "preemptible": lambda value: annotation(PREEMPTABLE, str(value).lower()),
        "gpu_fraction": "shares cards by the resources of its device plugin",
    }

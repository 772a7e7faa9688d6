"""Volcano: queues, and gangs by PodGroup.

Measured with Volcano 1.15.1: it reads the queue only from this annotation, and the group only from
`scheduling.k8s.io/group-name`. A pod of a missing group or queue waits without a condition or an event.
"""

from functools import partial
from typing import ClassVar

from webhook.backends.backend import (
    SIZE_IN_POD_GROUP,
    Backend,
    DomainRequest,
    InDomain,
    Terms,
    annotation,
)
from webhook.documents.documents import field
from webhook.kube.names import VOLCANO_API_GROUP, VOLCANO_GROUP

QUEUE = "scheduling.volcano.sh/queue-name"
GROUP = VOLCANO_GROUP
PREEMPTABLE = "volcano.sh/preemptable"
# The PodGroup of a Volcano Job, which has the queue of the Job, decides for its pods.
JOB_LABEL = "volcano.sh/job-name"
NETWORK_TOPOLOGY = "volcano.sh/network-topology"
"""The beginning of the annotations that state a domain. It reads them where its controller creates the PodGroup.

Source: volcano.sh/volcano/pkg/controllers/podgroup/pg_controller_handler.go, parseNetworkTopologyFromPod
"""


class Volcano(Backend):
    """Reads annotations of the pod.

    Source: volcano.sh/apis/pkg/apis/scheduling/v1beta1/labels.go
    """

    name = "volcano"
    api_groups = (VOLCANO_API_GROUP,)
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
    domain_keys = (NETWORK_TOPOLOGY,)

    @classmethod
    def in_domain(cls, domain: DomainRequest) -> InDomain:
        """Return the annotations of the pod, or the field of its Volcano Job."""
        is_of_job = field(domain.pod, "metadata", "labels", JOB_LABEL) is not None
        if not is_of_job and domain.names_group(cls.group_at):
            return InDomain(missing="reads only spec.networkTopology of the PodGroup that the pod names")
        if not domain.tier:
            return InDomain(missing=f"has no tier of {domain.key} in the policy (schedulers.NAME.tiers)")
        mode = "hard" if domain.is_required else "soft"
        if not is_of_job:
            fields = {"mode": mode, "highest-tier": str(domain.tier)}
            return InDomain([annotation(f"{NETWORK_TOPOLOGY}-{key}", value) for key, value in fields.items()])
        if not domain.is_in_objects:
            owner = "reads spec.networkTopology of the Job, which only workloadObjects.mutateTemplates sets"
            return InDomain(missing=owner)
        return InDomain(of_owner=((("spec", "networkTopology"), {"mode": mode, "highestTierAllowed": domain.tier}),))

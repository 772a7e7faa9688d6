"""The Coscheduling plugin of kubernetes-sigs/scheduler-plugins, in a profile of kube-scheduler: gangs by PodGroup.

Measured with scheduler-plugins 0.34.7: it reads the group from this label alone.
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from webhook.backends.backend import BatchRequest, Expressed, FieldPath, label
from webhook.backends.default import with_group

GROUP = "scheduling.x-k8s.io/pod-group"


class Coscheduling:
    """Reads a label of the pod.

    Source: sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1/types.go, PodGroupLabel
    """

    name: ClassVar[str] = "coscheduling"
    api_groups: ClassVar[Sequence[str]] = ("scheduling.x-k8s.io",)
    gang_fields: ClassVar[Sequence[Sequence[FieldPath]]] = ((("metadata", "labels", GROUP),),)
    gang_owners: ClassVar[Sequence[tuple[str, str]]] = ()
    profile: ClassVar[str] = ""
    queue_at: ClassVar[Sequence[tuple[str, str]]] = ()
    group_at: ClassVar[FieldPath] = ("metadata", "labels", GROUP)
    ignores: ClassVar[Sequence[str]] = ()

    @staticmethod
    def express(request: BatchRequest) -> Expressed:
        """Return the label; apart from gangs, it is kube-scheduler."""
        return with_group(request, partial(label, GROUP), "minMember")

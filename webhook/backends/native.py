"""kube-scheduler's own gang scheduling (gate GenericWorkload; before 1.37 also GangScheduling): `spec.schedulingGroup`.

A pod of a missing PodGroup is held before the queue without a word. An API server without the gate drops the field.
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from webhook.backends.backend import BatchRequest, Expressed, FieldPath, PodField
from webhook.backends.default import with_group

GROUP = ("spec", "schedulingGroup", "podGroupName")


class Native:
    """Reads a field of the pod, which is immutable once the pod exists.

    Source: k8s.io/api/core/v1/types.go, PodSchedulingGroup
    """

    name: ClassVar[str] = "native"
    api_groups: ClassVar[Sequence[str]] = ()
    gang_fields: ClassVar[Sequence[Sequence[FieldPath]]] = ((GROUP,),)
    gang_owners: ClassVar[Sequence[tuple[str, str]]] = ()
    profile: ClassVar[str] = ""
    queue_at: ClassVar[Sequence[tuple[str, str]]] = ()
    group_at: ClassVar[FieldPath] = GROUP
    ignores: ClassVar[Sequence[str]] = ()

    @staticmethod
    def express(request: BatchRequest) -> Expressed:
        """Return the field; apart from gangs, it is kube-scheduler."""
        return with_group(request, partial(PodField, GROUP), "minCount")

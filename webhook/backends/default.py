"""A profile of kube-scheduler, or an unknown scheduler."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from webhook.backends.backend import BatchRequest, Expressed, FieldPath, PodField


class Default:
    """Schedules one pod at a time. A pod of lower priority can be preempted for any other."""

    name: ClassVar[str] = "default"
    api_groups: ClassVar[Sequence[str]] = ()
    gang_fields: ClassVar[Sequence[Sequence[FieldPath]]] = ()
    gang_owners: ClassVar[Sequence[tuple[str, str]]] = ()
    profile: ClassVar[str] = ""
    queue_at: ClassVar[Sequence[tuple[str, str]]] = ()
    group_at: ClassVar[FieldPath] = ()
    ignores: ClassVar[Sequence[str]] = ()

    @staticmethod
    def express(request: BatchRequest) -> Expressed:
        """Return what is missing: everything but priority."""
        missing = []
        if request.queue is not None:
            missing.append(("queue", "has no queues"))
        if request.gang is not None:
            missing.append(("gang", "starts the pods of a gang one by one"))
        if request.gpu_fraction is not None:
            missing.append(("gpu_fraction", "cannot share a card"))
        if request.preemptible is not None:
            missing.append(("preemptible", "preempts by spec.priorityClassName alone"))
        return Expressed((), missing)


def with_group(request: BatchRequest, field: Callable[[str], PodField], size_field: str) -> Expressed:
    """Return `request` in the terms of a kube-scheduler that schedules gangs: `field` names the PodGroup.

    `size_field` is the field of the PodGroup with the size of the gang.
    """
    missing = [each for each in Default.express(request).missing if each[0] != "gang"]
    if request.gang is not None:
        return Expressed((field(request.gang),), missing)
    if request.gang_size is not None:
        missing.append(("gang_size", f"reads the size of a gang from {size_field} of its PodGroup: name it"))
    return Expressed((), missing)

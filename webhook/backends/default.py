"""A profile of kube-scheduler, or an unknown scheduler."""

from collections.abc import Sequence
from typing import ClassVar

from webhook.backends.backend import BatchRequest, Expressed


class Default:
    """Schedules one pod at a time. A pod of lower priority can be preempted for any other."""

    name: ClassVar[str] = "default"
    api_groups: ClassVar[Sequence[str]] = ()
    schedules_gangs: ClassVar[bool] = False
    profile: ClassVar[str] = ""
    queue_at: ClassVar[Sequence[tuple[str, str]]] = ()
    group_at: ClassVar[Sequence[tuple[str, str]]] = ()
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

"""The suggestions for a pod."""

from tests.support.objects.builders import PodBuilder
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler


def suggestions(pod: PodBuilder, snapshot: Snapshot) -> tuple[str, ...]:
    return Scheduler(suggestions=3).place(pod.obj(), snapshot).suggestions

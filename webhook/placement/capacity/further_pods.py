"""The further pods of one template, as they are placed one after the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.cluster.node_info import RunningPod
from webhook.placement.pod.nomination import Nomination
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

# The largest number of pods that are placed one after the other: more than a cluster of 5,000 nodes takes of most pods.
MOST_PODS = 100_000


@dataclass
class FurtherPods:
    """The pods `pod_at(0)`, `pod_at(1)`, … that `scheduler` places, at most `most`.

    With several templates, `share` of them are placed in each turn.
    """

    scheduler: Scheduler
    pod_at: Callable[[int], Mapping[str, Any]]
    share: int = 1
    most: int = MOST_PODS
    _read_pod: Mapping[str, Any] | None = field(default=None, init=False)
    _read: tuple[PodSignature, RunningPod] | None = field(default=None, init=False)

    def read(self, index: int) -> tuple[PodSignature, RunningPod]:
        """Return what the scheduler reads of pod number `index`, and the pod as a running one.

        A further pod is a new one, so the nominated node of a stored pod does not count.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        pod = self.pod_at(index)
        if self._read is None or pod is not self._read_pod:
            signature = PodSignature.of(pod)
            nomination = Nomination(signature.info.nomination.scheduler_name)
            self._read = replace(signature, info=signature.info._replace(nomination=nomination)), RunningPod.of(pod)
            self._read_pod = pod
        return self._read

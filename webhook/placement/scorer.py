"""The interface of what predicts the node of a pod."""

from typing import Protocol

from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import Expired
from webhook.placement.framework.result import Placement
from webhook.placement.pod_signature import PodSignature


class Scorer(Protocol):
    """Predicts the node of a pod: a scheduler, or a wrapper of schedulers."""

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Expired) -> Placement:
        """Return the placement on `snapshot` of a pod with the signature `asked`."""
        ...

    def feasible_rows(self, asked: PodSignature, snapshot: Snapshot, expired: Expired) -> Rows:
        """Return the rows of the nodes of `snapshot` that pass every filter.

        Raises:
            DeadlineNearError: `expired()` holds.
        """
        ...

"""What follows a live view of a cluster, such as the pods that wait and the predictions of a server."""

from collections.abc import Mapping
from typing import Any

import structlog

from webhook.cluster.cache.object_key import Key
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.stored_pod import Binding


class ClusterFollower:
    """Takes what happens in a live view; each method does nothing but log here.

    An error that a method raises interrupts nothing: `raised` is called while it is handled.
    """

    def object_changed(self, kind: str, key: Key, content: Mapping[str, Any] | None) -> None:
        """Take an object of a list or an event; None: it was deleted."""

    def pod_bound(self, pod: Binding, generation: int) -> None:
        """Take a pod that an event shows to be bound; snapshots from `generation` on show it, too."""

    def page_read(self) -> None:
        """Note that the objects of a page of a list have been taken."""

    def settled(self, snapshot: Snapshot) -> bool:  # noqa: ARG002 - those that override it read it
        """Take a snapshot that was taken in the background; return whether all pods have to be listed again."""
        return False

    def configuration_changed(self, configuration: Mapping[str, Any] | None) -> None:
        """Take the MutatingWebhookConfiguration, raw; None: it is invalid or not known.

        Raises:
            InvalidInput: it is invalid.
        """

    def failed(self) -> None:
        """Count an internal error of the view or of this follower; it is in the log."""

    def raised(self) -> None:
        """Log and count the error, raised by another method, that is being handled."""
        self.failed()
        structlog.get_logger().exception("a follower of the view failed")

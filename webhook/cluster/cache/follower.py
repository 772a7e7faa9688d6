"""The interface for objects that follow a live view of a cluster, such as the waiting pods of a server."""

from collections.abc import Mapping
from typing import Any

import structlog

from webhook.cluster.cache.object_key import Key
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.stored_pod import Binding


class ClusterFollower:
    """Gets the changes of a live view. The methods here do nothing, except for a log of errors.

    If a method raises an error, the view continues, and calls `raised` while it handles the error.
    """

    def object_changed(self, kind: str, key: Key, content: Mapping[str, Any] | None) -> None:
        """Handle an object of a list or an event, or its deletion if `content` is None."""

    def pod_bound(self, pod: Binding, generation: int) -> None:
        """Handle a pod that an event shows as bound. Snapshots from `generation` on also show it as bound."""

    def page_read(self) -> None:
        """Handle the end of a page of a list, after its objects."""

    def settled(self, snapshot: Snapshot) -> bool:  # noqa: ARG002 - those that override it read it
        """Handle a snapshot that was made in the background. Return whether all pods must be listed again."""
        return False

    def configuration_changed(self, configuration: Mapping[str, Any] | None) -> None:
        """Handle the raw MutatingWebhookConfiguration, or None if it is invalid or not known.

        Raises:
            InvalidInput: the configuration is invalid.
        """

    def failed(self) -> None:
        """Count an internal error of the view or of this follower, which is already logged."""

    def raised(self) -> None:
        """Log and count the error of another method that is currently handled."""
        self.failed()
        structlog.get_logger().exception("a follower of the view failed")

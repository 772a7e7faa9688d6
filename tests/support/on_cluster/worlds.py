"""A cluster that tests share which begin with the same objects."""

from collections.abc import Callable

from tests.controlplane.cleanup import is_own
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane

Prepare = Callable[[Cluster], None]


class Worlds:
    """Prepares a cluster for several tests, one after the other, and lets each find it as it was prepared.

    Pods of a test need names that no other has: the scheduler may still write about a pod that is deleted.
    """

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        self._prepare: Prepare | None = None
        self._cluster: Cluster | None = None
        self._revisions: dict[str, str] = {}

    def of(self, prepare: Prepare) -> Cluster:
        """Return a cluster with what `prepare` made in it, and nothing else.

        It is the one of the test before, unless that had another `prepare` or changed an object of it.
        """
        if self._cluster is None or self._prepare is not prepare or not self._is_restored(self._cluster):
            self.remove()
            self._cluster, self._prepare = Cluster(self._control_plane), prepare
            prepare(self._cluster)
            self._revisions = self._stored()
        return self._cluster

    def remove(self) -> None:
        """Remove the cluster, if one is prepared."""
        if self._cluster is not None:
            self._cluster.remove_everything()
            self._cluster = None

    def _is_restored(self, cluster: Cluster) -> bool:
        """Remove what a test has added; return whether it left the rest as it was."""
        cluster.remove_added(self._revisions)
        return self._stored() == self._revisions

    def _stored(self) -> dict[str, str]:
        return {key: revision for key, revision in self._control_plane.stored_keys().items() if not is_own(key)}

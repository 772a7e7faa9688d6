"""Clusters of one test, or of several."""

from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.support.on_cluster.worlds import Worlds


@pytest.fixture(scope="module")
def worlds(control_plane: ControlPlane) -> Iterator[Worlds]:
    """The clusters that tests of a file share; the last is removed at its end."""
    made = Worlds(control_plane)
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture
def cluster(control_plane: ControlPlane, worlds: Worlds) -> Iterator[Cluster]:
    """An empty cluster of the test, not beside one that others share."""
    worlds.remove()
    made = Cluster(control_plane)
    try:
        yield made
    finally:
        made.remove_everything()

"""A domain of Kueue or KAI is a path of node labels."""

import pytest

from tests.support.objects.batch_objects import KAI_TOPOLOGY, KUEUE_TOPOLOGY, topology
from webhook.cluster.batch.topologies import Topology

RACKS = Topology("racks", ("zone", "rack"))


@pytest.mark.parametrize("api_version", [KUEUE_TOPOLOGY, KAI_TOPOLOGY])
def test_levels_are_read_in_their_order(api_version: str) -> None:
    assert Topology.of(topology("racks", api_version, "zone", "rack")) == RACKS
    assert Topology.of({"metadata": {"name": "x"}, "spec": {"levels": [{"nodeLabel": 3}, "zone"]}}).levels == ()

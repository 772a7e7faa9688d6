"""The nodes from which devices are reached."""

import numpy as np
import pytest

from tests.support.objects.devices import DRIVER, make_device, make_slice
from tests.support.plugins import node
from webhook.cluster.dra.device import NodeAccess
from webhook.cluster.dra.resource_slice import ResourceSlice
from webhook.cluster.index.node_selector import Requirement, Term
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.placement.dra.device_selection import Selection, accessible_nodes

_NODES = Snapshot.of([node("a"), node("b", labels={"pool": "x"}), node("c")])
_IN_POOL = (Term((Requirement("pool", "Exists", ()),), ()),)


@pytest.mark.parametrize(
    ("access", "rows"),
    [
        pytest.param(NodeAccess("c", all_nodes=False, terms=None), [2], id="a node"),
        pytest.param(NodeAccess("gone", all_nodes=False, terms=None), [], id="a node that there is not"),
        pytest.param(NodeAccess("", all_nodes=True, terms=None), [0, 1, 2], id="all"),
        pytest.param(NodeAccess("", all_nodes=True, terms=_IN_POOL), [0, 1, 2], id="all, for any selector says"),
        pytest.param(NodeAccess("", all_nodes=False, terms=_IN_POOL), [1], id="a selector"),
        pytest.param(NodeAccess("", all_nodes=False, terms=None), [], id="none"),
    ],
)
def test_devices_are_reached_from_the_nodes_that_their_slice_says(access: NodeAccess, rows: list[int]) -> None:
    found = accessible_nodes(access, _NODES)
    assert np.arange(3)[found].tolist() == rows


def test_a_selector_of_an_unknown_kind_leaves_open_only_what_the_others_select() -> None:
    cards = ResourceSlice.of(make_slice("a", make_device("old", model="T4"), make_device("new", model="H20")))
    newer = f'device.attributes["{DRIVER}"].model == "H20"'

    assert Selection(never).taken(cards, (newer, None)) == [False, None]
    assert Selection(never).taken(cards, (None, newer)) == [None, None]

"""ResourceSlices by node and by pool, and the devices that a selector matches."""

from tests.support.objects.devices import DRIVER, make_counters, make_device, make_slice
from webhook.cluster.dra.resource_slice import ResourceSlice, Slices


def test_slices_of_one_node_are_apart_from_those_of_several() -> None:
    of_a = ResourceSlice.of(make_slice("a", make_device("c0"), name="1"))
    of_all = ResourceSlice.of(make_slice("", make_device("c1"), name="2", pool="net", allNodes=True))
    found = Slices.of([of_all, of_a])

    assert (found.of_node, found.shared) == ({"a": (of_a,)}, (of_all,))
    assert found.of_pool == {(DRIVER, "a"): (of_a,), (DRIVER, "net"): (of_all,)}


def test_the_answers_of_a_selector_are_kept() -> None:
    slice_ = ResourceSlice.of(make_slice("a", make_device("c0", x=1), make_device("c1", x=2)))
    selector = f'device.attributes["{DRIVER}"].x == 1'

    assert not slice_.has_cached(selector)
    assert slice_.matches(selector) == (True, False)
    assert slice_.has_cached(selector)


def test_pools_of_one_name_whose_devices_consume_counters_are_ambiguous() -> None:
    consuming = make_device("c0", consumesCounters=[{"counterSet": "s", "counters": {"memory": {"value": "1"}}}])
    slices = [
        ResourceSlice.of(make_slice("a", consuming, name=driver, pool="p", driver=driver)) for driver in ("x", "y")
    ]

    assert Slices.of(slices).ambiguous_pools == {"p"}
    assert Slices.of(slices[:1]).ambiguous_pools == frozenset()


def test_counters_of_a_pool_are_those_of_all_nodes_also_if_their_slice_names_one() -> None:
    """Devices of other nodes can consume them, too."""
    counters = ResourceSlice.of(make_counters("a", {"memory": "4"}))
    found = Slices.of([counters])

    assert (found.of_node, found.shared) == ({}, (counters,))

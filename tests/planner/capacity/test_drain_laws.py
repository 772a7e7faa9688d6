"""A drain of random nodes ends as the plain placement check says, pod by pod."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.support.objects.moves import drained
from tests.support.random.crowded import crowded


@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 2))
def test_each_pod_gets_the_node_or_the_message_of_the_plain_check(seed: int, minds: bool, count: int) -> None:
    world = crowded(Random(seed), minds=minds)
    nodes = [node["metadata"]["name"] for node in world.nodes[:count]]
    found = drained([*world.nodes, *world.pods, *world.budgets], *nodes)

    for node in nodes:
        world.cordon(node)
    again = {each.pod.full_name: world.remove(each.pod.full_name) for each in found.pods}
    for each in found.pods:
        if each.pod.controller is None:
            assert each.outcome == "Lost"
            continue
        expected = oracle.place(again[each.pod.full_name], world.nodes, world.pods)
        message = expected.message if expected.node is None else ""
        assert (each.node, each.message) == (expected.node, message)
        assert each.outcome == ("Waiting" if expected.node is None else "Fits")
        if expected.node is not None:
            world.bind(again[each.pod.full_name], expected.node)

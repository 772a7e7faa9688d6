"""Random devices, claims and nodes: the search for an allocation finds what trying every way finds."""

from typing import Any

from hypothesis import given, settings

from tests.oracles.oracle import place
from tests.oracles.strategies_devices import NODES, device_worlds
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]


@settings(deadline=None, max_examples=examples(300))
@given(device_worlds())
def test_the_search_finds_what_trying_every_way_finds(world: tuple[list[Object], Object]) -> None:
    others, pod = world
    nodes = [make_node_object(name) for name in NODES]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *others))

    found = Scheduler().place(pod, snapshot)

    expected = place(pod, nodes, [], others)
    assert found.unmodelled == ()
    assert (found.verdict, found.message, found.feasible) == (expected.verdict, expected.message, expected.feasible)
    assert {node: dict(scores) for node, scores in found.scores.items()} == expected.scores

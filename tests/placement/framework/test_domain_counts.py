"""Sums over topology domains."""

import numpy as np
import pytest

from tests.support.objects.builders import make_node_object
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.framework.domain_counts import DomainCounts


@pytest.fixture
def counts() -> DomainCounts:
    """No pods on two nodes of a zone, one of another, and one of none."""
    zones = {"a": "east", "b": "east", "c": "west"}
    nodes = [make_node_object(name, labels={"zone": zone}) for name, zone in zones.items()] + [make_node_object("d")]
    return DomainCounts(snapshot_from_documents([Document("cluster", node) for node in nodes]).labels)


def test_a_pod_counts_on_all_nodes_of_its_domain(counts: DomainCounts) -> None:
    counts.add("zone", np.array([0, 2, 2]), 1)

    assert counts.of_nodes.tolist() == [1, 1, 2, 0]


def test_pods_have_weights_of_their_own(counts: DomainCounts) -> None:
    counts.add("zone", np.array([0, 1]), np.array([3, -5]))

    assert counts.of_nodes.tolist() == [-2, -2, 0, 0]


def test_pods_on_nodes_without_the_label_count_nowhere(counts: DomainCounts) -> None:
    counts.add("zone", np.array([3]), 1)
    counts.add_one("zone", 3, 1)

    assert (counts.is_empty, counts.of_nodes.tolist()) == (True, [0, 0, 0, 0])


@pytest.mark.parametrize(("key", "sums"), [("zone", [4, 4, 0, 0]), ("kubernetes.io/hostname", [0, 4, 0, 0])])
def test_one_pod_more_or_less_changes_its_domain(counts: DomainCounts, key: str, sums: list[int]) -> None:
    counts.add_one(key, 1, 6)
    counts.add_one(key, 1, -2)

    assert counts.of_nodes.tolist() == sums

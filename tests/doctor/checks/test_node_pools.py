"""Nodes without a label of the policy, and accelerators with several product labels."""

import pytest

from placement_doctor.cluster import Cluster
from placement_doctor.source import Source
from tests.doctor.healthy import PRODUCT, USAGE, commands_of, found, make_installation, node_of, objects, read_of
from tests.support.admission import policy_with
from tests.support.objects.manifests import Object

NEW, OLD, TAINT = "example.com/gpu.name", "example.com/gpu.model", "example.com/gpu.product"


def test_a_node_outside_of_all_pools_makes_no_pool_empty() -> None:
    outside = node_of("training", labels={USAGE: None}, taints=[])
    outside["metadata"]["name"] = "system-1"

    assert found(read_of(Source.NODES, outside, *objects()[Source.NODES]), "pools") == []


def with_products(*nodes: Object) -> Cluster:
    """Return an installation whose accelerator has two product labels, of which discovery writes the first."""
    own = {
        "name": "own",
        "resources": ["example.com/gpu"],
        "card": "example.com/gpu",
        "labels": {"product": [NEW, OLD]},
    }
    read = {**objects(), Source.NODES: nodes}
    return make_installation(policy=policy_with(accelerators=[own]), objects=read, trial=None)


@pytest.mark.parametrize(
    ("others", "written"),
    [
        pytest.param({NEW: "MI300X", OLD: "MI300X"}, NEW, id="the first one that a node has"),
        pytest.param({OLD: "MI300X"}, OLD, id="the only one that a node has"),
        pytest.param({}, OLD, id="the one that people write"),
    ],
)
def test_a_node_with_a_product_taint_gets_the_label_that_other_nodes_have(others: dict[str, str], written: str) -> None:
    bare = node_of("training", labels={PRODUCT: None}, taints=[f"{TAINT}=MI300X:NoSchedule"])
    other = node_of("inference", labels={PRODUCT: None, **others}, taints=[])

    (finding,) = (each for each in found(with_products(bare, other), "node-products") if "taint" in each.what)

    assert finding.where == "Node training-1: metadata.labels"
    assert commands_of(finding.remedy) == [["kubectl", "label", "node", "training-1", f"{written}=MI300X"]]

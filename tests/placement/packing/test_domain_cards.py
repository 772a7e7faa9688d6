"""The largest gang of whole nodes that one domain could start."""

from typing import Any

from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.domain_cards import largest_gangs

RACK, PRODUCT = "topology.kubernetes.io/rack", "nvidia.com/gpu.product"
POLICY = policy_with(topologyAliases={"host": "kubernetes.io/hostname", "rack": RACK, "row": "example.com/row"})


def test_gang_has_a_pod_for_each_node_of_a_product_whose_cards_are_all_free() -> None:
    def rack_node(
        name: str, rack: str, *pods: PodBuilder, cards: int = 8, product: str = "H20", **more: Any
    ) -> NodeInfo:
        labels = {RACK: rack, PRODUCT: product, "kubernetes.io/hostname": name}
        return node(name, *pods, labels=labels, capacity={"nvidia.com/gpu": str(cards)}, **more)

    snapshot = Snapshot.of(
        [
            rack_node("a1", "r1"),
            rack_node("a2", "r1", cards=4),
            rack_node("a3", "r1", product="A100"),
            rack_node("a4", "r1", unschedulable=True),
            rack_node("a5", "r1", cards=0),
            rack_node("b1", "r2"),
            rack_node("b2", "r2", make_pod("p").gpu(1)),
            *(node(f"c{number}", capacity={"nvidia.com/gpu": "8"}) for number in range(3)),
        ]
    )

    assert largest_gangs(snapshot, POLICY) == {RACK: 2}


def test_domains_without_a_whole_node_can_start_none() -> None:
    in_use = node("a", make_pod("p").gpu(1), labels={RACK: "r1"}, capacity={"nvidia.com/gpu": "8"})

    assert largest_gangs(Snapshot.of([in_use]), POLICY) == {RACK: 0}
    assert largest_gangs(Snapshot.of([node("a", labels={RACK: "r1"})]), POLICY) == {}

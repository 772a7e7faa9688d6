"""The largest gang of whole nodes that one domain could start."""

from typing import Any

from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.domain_cards import DomainCards, cards_by_domain, largest_gangs

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


def test_cards_of_a_domain_and_product_are_summed_in_the_order_of_domains_with_the_nodes_of_none_last() -> None:
    def made(name: str, rack: str | None, cards: int, used: int = 0, product: str = "H20", **more: Any) -> NodeInfo:
        labels = {PRODUCT: product} | ({} if rack is None else {RACK: rack})
        pods = [make_pod("p").gpu(used)] if used else []
        return node(name, *pods, labels=labels, capacity={"nvidia.com/gpu": str(cards)}, **more)

    snapshot = Snapshot.of(
        [
            made("a", None, 8),
            made("b", "r2", 8, used=3),
            made("c", "r1", 8, product="H20"),
            made("d", "r1", 4, product="A100"),
            made("e", "r2", 4, used=4),
            made("f", "", 8, unschedulable=True),
            made("g", "r2", 4),
            node("h", labels={RACK: "r1"}, capacity={"nvidia.com/gpu": "2"}),
        ]
    )

    assert cards_by_domain(snapshot, RACK, POLICY) == [
        DomainCards("", "H20", nodes=1, cards=8, free=0, largest=0, whole=0),
        DomainCards("r1", "A100", nodes=1, cards=4, free=4, largest=4, whole=1),
        DomainCards("r1", "H20", nodes=1, cards=8, free=8, largest=8, whole=1),
        DomainCards("r1", "nvidia.com/gpu", nodes=1, cards=2, free=2, largest=2, whole=1),
        DomainCards("r2", "H20", nodes=3, cards=16, free=9, largest=5, whole=1),
        DomainCards(None, "H20", nodes=1, cards=8, free=8, largest=8, whole=1),
    ]

"""The cards of each topology domain, such as a rack."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import HOSTNAME_LABEL
from webhook.placement.framework.node_states import open_nodes
from webhook.placement.packing.free_cards import accelerator_of, free_amounts
from webhook.policy.policy import Policy


class DomainCards(NamedTuple):
    """The cards of one product in one domain. `value` is that of the label, or None for nodes without it.

    `largest` is the largest number of free cards on one node. `whole` is the number of nodes whose cards are all free.
    """

    value: str | None
    product: str
    nodes: int
    cards: int
    free: int
    largest: int
    whole: int


def cards_by_domain(snapshot: Snapshot, key: str, policy: Policy) -> list[DomainCards]:
    """Return the cards of each domain of the label `key` and product, in order; the nodes without the label are last.

    For cards without a product label, the product is their resource.
    """
    spec, found = policy.spec, defaultdict[tuple[str | None, str], list[tuple[int, int]]](list)
    is_open = open_nodes(snapshot, spec.temporary_taints)
    for resource in snapshot.allocatable_columns:
        accelerator = accelerator_of(resource, spec.accelerators)
        if accelerator is None:
            continue
        offered, free = snapshot.allocatable(resource), free_amounts(snapshot, resource, is_open)
        for row in offered.nonzero()[0].tolist():
            labels = snapshot.nodes[row].node.labels
            kind = (labels.get(key), accelerator.product_of(labels) or resource)
            found[kind].append((int(offered[row]), int(free[row])))
    made = []
    for (value, product), cards in found.items():
        total, unused = (sum(each) for each in zip(*cards, strict=True))
        largest, whole = max(free for _, free in cards), sum(free == all_cards for all_cards, free in cards)
        made.append(DomainCards(value, product, len(cards), total, unused, largest, whole))
    return sorted(made, key=lambda each: (each.value is None, each.value or "", each.product))


def largest_gangs(snapshot: Snapshot, policy: Policy) -> Mapping[str, int]:
    """Return, by topology key, the size of the largest gang that one domain could start now.

    Each pod of such a gang takes all cards of a node, and all pods have the same product. The keys are those of the
    policy's topology aliases that nodes with cards have. A host has no more than one such pod, so its key is left out.
    """
    found: dict[str, int] = {}
    for key in {*policy.spec.topology_aliases.values()} - {HOSTNAME_LABEL}:
        if snapshot.labels.has(key):
            sizes = [each.whole for each in cards_by_domain(snapshot, key, policy) if each.value is not None]
            found |= {key: max(sizes)} if sizes else {}
    return found

"""The cards of each pool and product of a policy, as facts in JSON."""

from typing import Any

from webhook.placement.packing.free_cards import FreeCards, FreeCardsByProduct
from webhook.placement.packing.typical_pods import ExpectedMixes
from webhook.placement.profiles.policy_profiles import card_mixes
from webhook.policy.policy import Policy


def card_count(policy: Policy) -> FreeCardsByProduct:
    """Return the counter of the cards of each pool and product of a policy."""
    spec = policy.spec
    mixes, temporary = ExpectedMixes(card_mixes(spec)), spec.temporary_taints
    return FreeCardsByProduct(policy.node_usage_key, spec.accelerators, mixes, temporary_taints=temporary)


def group_facts(group: FreeCards) -> dict[str, Any]:
    """Return the nodes and cards of one product in one pool.

    `cards` is the number of cards that the nodes offer, and `usable` the number of these on nodes that accept pods.
    `largest` is the largest number of free cards on a node, and `fragmented` the share of the free cards that typical
    pods cannot use.
    """
    return {
        "pool": group.pool,
        "product": group.product,
        "nodes": sum(group.nodes.values()),
        "cards": group.offered,
        "free": group.free,
        "largest": max(group.nodes, default=0),
        "fragmented": round(group.unusable_share, 3),
        "usable": group.usable,
    }

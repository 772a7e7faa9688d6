"""The product labels and taints of nodes agree, and a workload type reaches each product."""

from collections import defaultdict
from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, named, warning
from webhook.doctor.installation import Installation
from webhook.doctor.node_facts import NodeFacts, nodes_of, pools_of, product_labels, shown
from webhook.doctor.source import Source


@check(
    "node-products",
    "A node has a product taint without the label, or another value, or a product is in no pool of any type",
    "make the taint equal to the label, which vendor discovery writes; allow the pool of the nodes in the policy",
    Source.NODES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for the nodes of each product whose label and taint disagree, and each product out of reach."""
    nodes = nodes_of(installation)
    for key in product_labels(installation.policies):
        yield from _disagreeing(key, nodes)
        yield from _out_of_reach(installation, key, nodes)


def _disagreeing(key: str, nodes: tuple[NodeFacts, ...]) -> Iterator[Fault]:
    """Yield a fault for each taint without the label or with another value.

    Vendor discovery writes the label, and people write the taint. So the label is right where there is one.
    """
    found: dict[tuple[str, str | None, tuple[str, ...]], list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        label = node.labels.get(key)
        for value in sorted(node.tainted(key) - {label}):
            found[value, label, node.effects(key, value)].append(node)
    for (value, label, effects), those in found.items():
        if label is None:
            what = f"taint {key}={value} without the label: no pod that names the product selects the node"
            command = commands.on_nodes(those, "label", "node", f"{key}={value}")
            yield warning(f"{shown(those)}: metadata.labels", what, command)
        else:
            what = f"label {key}={label}, but taint {key}={value}: a pod must name both products to run there"
            taints = (f"{key}={label}:{effect}" for effect in effects)
            command = commands.on_nodes(those, "taint", "node", *taints, "--overwrite")
            yield warning(f"{shown(those)}: spec.taints", what, f"{command}: vendor discovery writes the label")


def _out_of_reach(installation: Installation, key: str, nodes: tuple[NodeFacts, ...]) -> Iterator[Fault]:
    """Yield a fault for each product of which every node is outside of the pools of all workload types."""
    pools = {
        (policy.node_usage_key, pool)
        for policy in installation.policies
        if key in product_labels([policy])
        for pool in pools_of(policy)
    }
    by_product: dict[str, list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        if key in node.labels:
            by_product[node.labels[key]].append(node)
    for product, those in sorted(by_product.items()):
        if any(not pools.isdisjoint(node.labels.items()) for node in those):
            continue
        what = f"{product}: no workload type reaches this product, as none of its nodes is in a pool of the policy"
        remedy = _within_reach(those, sorted({usage for usage, _ in pools}))
        yield warning(f"{shown(those)}: metadata.labels[{key}]", what, remedy)


def _within_reach(nodes: list[NodeFacts], usages: list[str]) -> str:
    """Return how a workload type reaches the nodes; those in a pool of their own can be there on purpose."""
    for usage in usages:
        own = sorted({node.labels[usage] for node in nodes if usage in node.labels})
        if own:
            allowed = f"add {named(own)} to nodeUsage.allow of a workload type"
            return f"{allowed}, or move the nodes: {commands.into_pool(nodes, usage)}"
    return commands.into_pool(nodes, usages[0])

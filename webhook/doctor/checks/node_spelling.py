"""The keys and values of node labels and taints are spelt as in the policy."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation
from webhook.doctor.node_facts import NodeFacts, nodes_of, pools_by_key, product_labels, shown
from webhook.doctor.source import Source
from webhook.doctor.spelling import meant
from webhook.policy.policy import Policy

# More distinct keys or values than a cluster of people has; a comparison takes some microseconds.
_MOST_COMPARED = 2000


@check(
    "node-spelling",
    "A label or taint of a node is spelt a little differently from the policy",
    "`kubectl label node NODE WRONG- RIGHT=VALUE`",
    Source.NODES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for the nodes of each key and value that is probably mistyped."""
    nodes, policies = nodes_of(installation), tuple(installation.policies)
    pools, products = pools_by_key(policies), product_labels(policies)
    yield from _keys(nodes, [*pools, *products], _other_known_keys(policies))
    for usage, known in pools.items():
        yield from _values(nodes, [usage], known)
    yield from _values(nodes, products, {name for each in policies for name in _named_products(each)})


def _keys(nodes: tuple[NodeFacts, ...], known: list[str], others: set[str]) -> Iterator[Fault]:
    found: dict[str, list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        for key in {*node.labels, *(taint.key for taint in node.taints)} - others:
            if len(found) < _MOST_COMPARED:
                found[key].append(node)
    for key, those in sorted(found.items()):
        if (right := meant(key, known)) is not None:
            what = f"key {key}: did you mean {right}?"
            yield warning(
                shown(those), what, f"`kubectl label node {those[0].name} {key}- {right}=VALUE`, and its taint"
            )


def _values(nodes: tuple[NodeFacts, ...], keys: list[str], known: set[str]) -> Iterator[Fault]:
    for key in keys:
        found: dict[str, list[NodeFacts]] = defaultdict(list)
        for node in nodes:
            for value in node.tainted(key) | ({node.labels[key]} if key in node.labels else set()):
                if len(found) < _MOST_COMPARED:
                    found[value].append(node)
        for value, those in sorted(found.items()):
            if (right := meant(value, known)) is not None:
                what = f"{key}={value}: did you mean {right}?"
                command = f"`kubectl label --overwrite node {those[0].name} {key}={right}`, and its taint"
                yield warning(f"{shown(those)}: metadata.labels[{key}]", what, command)


def _named_products(policy: Policy) -> set[str]:
    """Return the products that the policy names, without patterns."""
    spec = policy.spec
    limited = (product for each in spec.namespace_limits for product in each.products or ())
    templates = (each.labels.get(key) for each in spec.node_templates for key in product_labels([policy]))
    names = (*spec.allowed_products, *limited, *templates)
    return {name for name in names if name and "*" not in name}


def _other_known_keys(policies: Iterable[Policy]) -> set[str]:
    """Return keys that are not mistyped, even though they resemble one of a policy."""
    cards = {each.card for policy in policies for each in policy.spec.accelerators}
    return {f"{card}.{name}" for card in cards for name in ("count", "memory", "driver-version", "present")}

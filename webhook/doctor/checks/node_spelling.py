"""The keys and values of node labels and taints are spelt as in the policy."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation
from webhook.doctor.node_facts import NodeFacts, nodes_of, pools_by_key, product_labels, shown
from webhook.doctor.source import Source
from webhook.doctor.spelling import meant
from webhook.kube.taints import Taint
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
            yield warning(shown(those), what, _with_key(those, key, right))


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
                yield warning(f"{shown(those)}: metadata.labels[{key}]", what, _with_value(those, key, value, right))


def _with_key(nodes: list[NodeFacts], key: str, right: str) -> str:
    """Return the commands that rename the key, for the nodes that are like the first of them."""

    def state(node: NodeFacts) -> tuple[str | None, bool, list[Taint]]:
        return node.labels.get(key), right in node.labels, [each for each in node.taints if each.key == key]

    value, is_there, taints = state(nodes[0])
    those = [each for each in nodes if state(each) == (value, is_there, taints)]
    found = []
    if value is not None:
        kept = [] if is_there else [f"{right}={value}"]
        found.append(commands.on_nodes(those, "label", "node", f"{key}-", *kept))
    for taint in taints:
        wanted = (f"{key}:{taint.effect}-", f"{right}={taint.value}:{taint.effect}", "--overwrite")
        found.append(commands.on_nodes(those, "taint", "node", *wanted))
    return " and ".join(found)


def _with_value(nodes: list[NodeFacts], key: str, value: str, right: str) -> str:
    """Return the commands that correct the value, of label and taints."""
    found = []
    if labelled := [each for each in nodes if each.labels.get(key) == value]:
        found.append(commands.on_nodes(labelled, "label", "node", f"{key}={right}", "--overwrite"))
    tainted: dict[str, list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        for taint in node.taints:
            if (taint.key, taint.value) == (key, value):
                tainted[taint.effect].append(node)
    found += [
        commands.on_nodes(those, "taint", "node", f"{key}={right}:{effect}", "--overwrite")
        for effect, those in tainted.items()
    ]
    return " and ".join(found)


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

"""The keys and values of node labels and taints are spelt as in the policy."""

from collections.abc import Iterator

from placement_doctor.check import Finding, check, warning
from placement_doctor.cluster import Cluster
from placement_doctor.commands import on_nodes, respelt
from placement_doctor.nodes import (
    Spelling,
    grouped,
    meant,
    named_products,
    nodes_of,
    pools_by_key,
    product_labels,
    shown,
    tainted,
)
from placement_doctor.source import Source
from webhook.cluster.node_info import Node
from webhook.kube.pod.taints import Taint
from webhook.policy.policy import Policy
from webhook.policy.spec.accelerators import FACTS, Accelerator, Fact, similar_labels

# More distinct keys or values than a cluster of people has; a comparison takes some microseconds.
_MOST_COMPARED = 2000


@check("`kubectl label node NODE WRONG- RIGHT=VALUE`", needs={Source.NODES, Source.POLICY})
def node_spelling(cluster: Cluster) -> Iterator[Finding]:
    """A label or taint of a node is spelt a little differently from the policy."""
    yield from misspelt(nodes_of(cluster), tuple(cluster.policies))


def misspelt(nodes: tuple[Node, ...], policies: tuple[Policy, ...]) -> Iterator[Finding]:
    """Yield a finding for each label or taint of `nodes` that is spelt a little differently from `policies`."""
    pools, products = pools_by_key(policies), product_labels(policies)
    accelerators = [each for policy in policies for each in policy.spec.accelerators]
    # They are not mistyped, even though they resemble a key of a policy.
    others = {f"{each.card}.present" for each in accelerators}
    others |= {label for each in accelerators for fact in FACTS for label in _of_labellers(each, fact)}
    yield from _keys(nodes, [*pools, *products], others)
    for usage, known in pools.items():
        yield from _values(nodes, usage, known)
    for product in products:
        yield from _values(nodes, product, named_products(policies))


def _of_labellers(accelerator: Accelerator, fact: Fact) -> Iterator[str]:
    """Yield the labels that labellers and clouds write for `fact`, also those of AMD's former domain."""
    for label in (*accelerator.labels_of(fact), *similar_labels(accelerator, fact)):
        yield from (label, f"beta.{label}")


def _keys(nodes: tuple[Node, ...], known: list[str], others: set[str]) -> Iterator[Finding]:
    def keys(node: Node) -> set[str]:
        return {*node.labels, *(taint.key for taint in node.taints)} - others

    for key, those in sorted(grouped(nodes, keys, _MOST_COMPARED).items()):
        if (right := meant(key, known)) is not None:
            yield warning(shown(those), f"key {key}: did you mean {right}?", _with_key(those, key, right))


def _values(nodes: tuple[Node, ...], key: str, known: set[str]) -> Iterator[Finding]:
    spelling = Spelling(key, nodes, known)

    def values(node: Node) -> set[str]:
        return {*tainted(node, key), *([node.labels[key]] if key in node.labels else [])}

    for value, those in sorted(grouped(nodes, values, _MOST_COMPARED).items()):
        where = f"{shown(those)}: metadata.labels[{key}]"
        if (right := spelling.right(value)) is not None:
            yield warning(where, f"{key}={value}: did you mean {right}?", respelt(those, key, value, right))
        elif (wrong := spelling.named_wrongly(value)) is not None:
            what = f"{key}={value}, but the policy names {wrong}, which no node has"
            yield warning(where, what, f"correct the policy; or, if it is right, {respelt(those, key, value, wrong)}")


def _with_key(nodes: list[Node], key: str, right: str) -> str:
    """Return the commands that rename the key on the nodes whose labels and taints are like those of the first node."""

    def state(node: Node) -> tuple[str | None, bool, list[Taint]]:
        return node.labels.get(key), right in node.labels, [each for each in node.taints if each.key == key]

    value, is_there, taints = state(nodes[0])
    those = [each for each in nodes if state(each) == (value, is_there, taints)]
    found = []
    if value is not None:
        found.append(on_nodes(those, "label", f"{key}-", *([] if is_there else [f"{right}={value}"])))
    for taint in taints:
        wanted = (f"{key}:{taint.effect}-", f"{right}={taint.value}:{taint.effect}", "--overwrite")
        found.append(on_nodes(those, "taint", *wanted))
    return " and ".join(found)

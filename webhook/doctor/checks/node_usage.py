"""The usage labels and taints of nodes agree with each other and with the policy."""

from collections import defaultdict
from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, info, warning
from webhook.doctor.installation import Installation
from webhook.doctor.node_facts import NodeFacts, nodes_of, pools_by_key, shown
from webhook.doctor.source import Source
from webhook.doctor.spelling import meant


@check(
    "node-usage",
    "A node has the usage label without the taint, the taint without the label, or different values",
    "`kubectl taint node NODE KEY=VALUE:NoSchedule`, `kubectl label node NODE KEY=VALUE`",
    Source.NODES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for the nodes of each kind of disagreement, one for each value."""
    nodes = nodes_of(installation)
    for key, pools in pools_by_key(installation.policies).items():
        yield from _disagreeing(key, pools, nodes)


def _disagreeing(key: str, pools: set[str], nodes: tuple[NodeFacts, ...]) -> Iterator[Fault]:
    untainted: dict[str, list[NodeFacts]] = defaultdict(list)
    unlabelled: dict[str, list[NodeFacts]] = defaultdict(list)
    unused: dict[str, list[NodeFacts]] = defaultdict(list)
    different: dict[tuple[str, str], list[NodeFacts]] = defaultdict(list)
    for node in nodes:
        label, tainted = node.labels.get(key), node.tainted(key)
        if label is not None and label not in pools and meant(label, pools) is None:
            unused[label].append(node)
        if label is not None and not tainted:
            untainted[label].append(node)
        elif label is None:
            for value in sorted(tainted):
                unlabelled[value].append(node)
        else:
            for value in sorted(tainted - {label}):
                different[label or "", value].append(node)
    yield from _faults(key, untainted, unlabelled, different)
    for value, those in unused.items():
        what = f"{value}: no workload type of the policy allows this pool"
        yield info(f"{shown(those)}: metadata.labels[{key}]", what, "add it to nodeUsage.allow of a type, if one is to")


def _faults(
    key: str,
    untainted: dict[str, list[NodeFacts]],
    unlabelled: dict[str, list[NodeFacts]],
    different: dict[tuple[str, str], list[NodeFacts]],
) -> Iterator[Fault]:
    for value, nodes in untainted.items():
        what = f"label {key}={value} without the taint: pods without a workload type run there, too"
        command = commands.on_nodes(nodes, "taint", "node", f"{key}={value}:NoSchedule")
        yield warning(f"{shown(nodes)}: spec.taints", what, command)
    for value, nodes in unlabelled.items():
        what = f"taint {key}={value} without the label: no workload type selects the node, so it stays empty"
        command = commands.on_nodes(nodes, "label", "node", f"{key}={value}")
        yield warning(f"{shown(nodes)}: metadata.labels", what, command)
    for (label, value), nodes in different.items():
        what = f"label {key}={label}, but taint {key}={value}: a type needs both pools to run there"
        command = commands.on_nodes(nodes, "label", "node", f"{key}={value}", "--overwrite")
        yield warning(f"{shown(nodes)}: spec.taints", what, f"{command}, or change the taint")

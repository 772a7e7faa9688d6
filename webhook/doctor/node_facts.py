"""The nodes of an installation, as far as checks read them. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from webhook.doctor.finding import named
from webhook.doctor.installation import Installation, JsonObject, listed, name_of, texts
from webhook.doctor.source import Source
from webhook.kube.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from webhook.policy.policy import Policy


class NodeFacts(NamedTuple):
    """The labels and taints of a node, and the resources that it offers."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    resources: frozenset[str]

    def tainted(self, key: str) -> set[str]:
        """Return the values of the taints of `key` that keep pods away."""
        return {each.value for each in self.taints if each.key == key and each.effect in (NO_SCHEDULE, NO_EXECUTE)}

    def effects(self, key: str, value: str) -> tuple[str, ...]:
        """Return the effects of the taints of `key` and `value` that keep pods away."""
        found = {each.effect for each in self.taints if (each.key, each.value) == (key, value)}
        return tuple(effect for effect in (NO_SCHEDULE, NO_EXECUTE) if effect in found)


def nodes_of(installation: Installation) -> tuple[NodeFacts, ...]:
    """Return the nodes by name."""
    return tuple(_facts(each) for each in sorted(installation.of(Source.NODES), key=name_of))


def product_labels(policies: Iterable[Policy]) -> list[str]:
    """Return the product labels of all accelerators, which are the keys of their taints, too."""
    return list(dict.fromkeys(f"{each.card}.product" for policy in policies for each in policy.spec.accelerators))


def pools_of(policy: Policy) -> dict[str, list[str]]:
    """Return the workload types that may use each value of the usage label."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, each in policy.spec.workload_types.items():
        for pool in each.node_usage.allow:
            found[pool].append(name)
    return dict(found)


def pools_by_key(policies: Iterable[Policy]) -> dict[str, set[str]]:
    """Return the values that a workload type of any policy allows, by the usage label of the policy."""
    found: dict[str, set[str]] = defaultdict(set)
    for policy in policies:
        found[policy.node_usage_key].update(pools_of(policy))
    return dict(found)


def offered_cards(policy: Policy, nodes: Iterable[NodeFacts]) -> list[str]:
    """Return a resource of cards that `nodes` offer for each accelerator of the policy, if they offer one."""
    offered = sorted({name for each in nodes for name in each.resources})
    found = []
    for accelerator in policy.spec.accelerators:
        names = (name for pattern in accelerator.resources for name in offered if fnmatchcase(name, pattern))
        found += list(names)[:1]
    return found


def shown(nodes: Iterable[NodeFacts]) -> str:
    """Return the names of nodes, for the place of a fault."""
    names = [each.name for each in nodes]
    return f"{'Node' if len(names) == 1 else 'Nodes'} {named(names)}"


def _facts(node: JsonObject) -> NodeFacts:
    taints = tuple(Taint.of(each) for each in listed(node, "spec", "taints"))
    offered = texts(node, "status", "allocatable") or texts(node, "status", "capacity")
    resources = frozenset(name for name, amount in offered.items() if amount != "0")
    return NodeFacts(name_of(node), texts(node, "metadata", "labels"), taints, resources)

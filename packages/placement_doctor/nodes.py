"""The nodes of a cluster, the names in policies for them, and the probable meaning of mistyped names. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TypeVar

from placement_doctor.check import named
from placement_doctor.cluster import Cluster
from placement_doctor.source import Source
from webhook.cluster.node_info import Node
from webhook.documents.documents import field
from webhook.documents.field import InvalidInput
from webhook.kube.pod.taints import NO_EXECUTE, NO_SCHEDULE
from webhook.policy.policy import Policy

_AWAY = (NO_SCHEDULE, NO_EXECUTE)
_MOST_EDITS = 2
_SHORTEST = 4
_LONGEST = 128
# Characters that people and fonts confuse, and separators.
_CONFUSED = str.maketrans({"o": "0", "i": "1", "l": "1", "_": "-", ".": "-", " ": "-"})
K = TypeVar("K", bound=Hashable)


def nodes_of(cluster: Cluster) -> tuple[Node, ...]:
    """Return the nodes by name, without malformed ones."""
    found = []
    for each in cluster.of(Source.NODES):
        with suppress(InvalidInput):
            status = field(each, "status")
            # A node whose kubelet has not reported yet may state only its capacity.
            is_unreported = isinstance(status, dict) and not status.get("allocatable")
            found.append(Node.of({**each, "status": {**status, "allocatable": None}} if is_unreported else each))
    return tuple(sorted(found, key=lambda node: node.name))


def tainted(node: Node, key: str) -> dict[str, tuple[str, ...]]:
    """Return the NoSchedule and NoExecute effects by the value of the taints of `key`, both sorted."""
    found = {(each.value, each.effect) for each in node.taints if each.key == key}
    values = sorted({value for value, effect in found if effect in _AWAY})
    return {value: tuple(effect for effect in _AWAY if (value, effect) in found) for value in values}


def grouped(
    nodes: Iterable[Node], keys_of: Callable[[Node], Iterable[K]], most: int | None = None
) -> dict[K, list[Node]]:
    """Return the nodes by the keys that `keys_of` returns for a node. Beyond `most` keys, no key is added."""
    found: dict[K, list[Node]] = defaultdict(list)
    for node in nodes:
        for key in keys_of(node):
            if most is None or len(found) < most:
                found[key].append(node)
    return found


def shown(nodes: Iterable[Node]) -> str:
    """Return the names of nodes as the place of a finding."""
    names = [each.name for each in nodes]
    return f"{'Node' if len(names) == 1 else 'Nodes'} {named(names)}"


def product_labels(policies: Iterable[Policy]) -> list[str]:
    """Return the product labels of all accelerators, and the keys of their taints."""
    return list(dict.fromkeys(key for taint, labels in product_keys(policies) for key in (*labels, taint)))


def product_keys(policies: Iterable[Policy]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the key of the product taint of each accelerator, with its product labels."""
    accelerators = (each for policy in policies for each in policy.spec.accelerators)
    return list(dict.fromkeys((each.product_taint, each.product_labels) for each in accelerators))


def named_products(policies: Iterable[Policy]) -> set[str]:
    """Return the products that the policies name, without patterns."""
    found: set[str] = set()
    for policy in policies:
        spec = policy.spec
        limited = (product for each in spec.namespace_limits for product in each.products or ())
        templates = (each.labels.get(key) for each in spec.node_templates for key in product_labels([policy]))
        found.update(name for name in (*spec.allowed_products, *limited, *templates) if name and "*" not in name)
    return found


class Spelling:
    """The values of the label `key` on `nodes`, and the values in the policies. Either can be mistyped."""

    def __init__(self, key: str, nodes: Iterable[Node], named: Iterable[str]) -> None:
        self._named = set(named)
        self._counts = Counter(node.labels[key] for node in nodes if key in node.labels)

    def right(self, value: str) -> str | None:
        """Return the known value that `value` probably means, or None.

        Values of policies or on more nodes are preferred.

        If several nodes have `value` and no node has the value of the policies, the policy is mistyped, not the nodes.
        """
        wanted = meant(value, self._named)
        if wanted is not None:
            return None if self._counts[value] > 1 and not self._counts[wanted] else wanted
        if value in self._named:
            return None
        others = (other for other, count in self._counts.most_common() if count > self._counts[value])
        return next((each for each in others if _looks_like(value, each)), None)

    def named_wrongly(self, value: str) -> str | None:
        """Return the value of the policies that is a mistyped form of `value`, which several nodes have, or None."""
        wanted = meant(value, self._named)
        return wanted if wanted is not None and self.right(value) is None else None


def pools_of(policy: Policy) -> dict[str, list[str]]:
    """Return the workload types that may use each value of the usage label."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, each in policy.spec.workload_types.items():
        for pool in each.node_usage.allow:
            found[pool].append(name)
    return found


def pools_by_key(policies: Iterable[Policy]) -> dict[str, set[str]]:
    """Return the values that a workload type of any policy allows, by the usage label of the policy."""
    found: dict[str, set[str]] = defaultdict(set)
    for policy in policies:
        found[policy.node_usage_key].update(pools_of(policy))
    return found


def offered_cards(policy: Policy, nodes: Iterable[Node]) -> list[str]:
    """Return, for each accelerator of the policy, a card resource that `nodes` offer, if they offer one."""
    offered = sorted({name for each in nodes for name, amount in each.allocatable.items() if amount})
    found = []
    for accelerator in policy.spec.accelerators:
        names = (name for pattern in accelerator.resources for name in offered if fnmatchcase(name, pattern))
        found += list(names)[:1]
    return found


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the name in `known` that `name` probably means, or None if it is in `known` or similar to none.

    Names with different digits are different names (80GB and 40GB), unless a letter replaces a digit (H2O and H20).
    """
    candidates = sorted(set(known))
    if name in candidates or not _SHORTEST <= len(name) <= _LONGEST:
        return None
    for each in candidates:
        if _looks_like(name, each):
            return each
    similar = [each for each in candidates if _digits(each) == _digits(name) and _SHORTEST <= len(each) <= _LONGEST]
    near = (each for edits in range(1, _MOST_EDITS + 1) for each in similar if is_within(edits, name, each))
    return next(near, None)


def is_within(edits: int, left: str, right: str) -> bool:
    """Return whether at most `edits` insertions, deletions and replacements turn `left` into `right`, ignoring case."""
    left, right = left.casefold(), right.casefold()
    differing = (at for at, (one, other) in enumerate(zip(left, right, strict=False)) if one != other)
    if (at := next(differing, None)) is None:
        return abs(len(left) - len(right)) <= edits
    left, right = left[at:], right[at:]
    rests = ((left[1:], right), (left, right[1:]), (left[1:], right[1:]))
    return edits > 0 and any(is_within(edits - 1, *rest) for rest in rests)


def _looks_like(name: str, other: str) -> bool:
    """Return whether two different names look alike: H2O and H20, but not L40 and L40S."""
    return name != other and _folded(name) == _folded(other)


def _folded(name: str) -> str:
    return name.casefold().translate(_CONFUSED)


def _digits(name: str) -> str:
    return "".join(char for char in name if char.isdigit())

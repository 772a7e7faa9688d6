"""The HyperNodes of Volcano, groups of nodes in tiers that stand for switches, and all objects of Volcano."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import islice
from math import comb
from typing import Any, NamedTuple

import numpy as np

from webhook.cluster.batch import fields
from webhook.cluster.batch.network_topology import key_of_tier
from webhook.cluster.batch.queues import PodGroup, VolcanoQueue
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.index.labels import LabelColumns, Mask
from webhook.cluster.index.node_selector import Requirement, Term, matches
from webhook.documents.documents import field
from webhook.documents.parts import items_at

# More nodes than a cluster has.
_MOST_MEMBERS = 10_000
# Volcano's patterns are Go's, which match in linear time. Here they go back over a name for each repetition, so the
# tries of all patterns on all names are limited, to about a second.
_MOST_TRIES = 200_000_000
_LONGEST_PATTERN = 256
# It could mean something else than in Go. {n}, {n,} and {n,m} below 1,000 do not.
_NOT_EVALUATED = re.compile(r"\(\?|\)[*+{]|[*+?}][*+]|\\[^.dw-]|\[:|[^ -~]|\{(?!\d{1,3}(,\d{0,3})?\})")
_PATTERN = ("selector", "regexMatch", "pattern")


class HyperNode(NamedTuple):
    """A HyperNode. It has the nodes `names`, those that match one of `terms` or `patterns`, and those of `children`.

    Source: volcano.sh/apis/pkg/apis/topology/v1alpha1/hypernode_types.go
    """

    name: str
    tier: int
    tier_name: str
    names: tuple[str, ...]
    terms: tuple[Term, ...]
    patterns: tuple[str, ...]
    children: tuple[str, ...]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "HyperNode":
        """Return the facts of `content`, a raw API object."""
        terms, patterns, names, children = [], [], [], []
        for each in islice(items_at(content, "spec", "members"), _MOST_MEMBERS):
            name, pattern = fields.text(each, "selector", "exactMatch", "name"), field(each, *_PATTERN)
            if field(each, "type") == "HyperNode":
                children.append(name)
            elif name:
                names.append(name)
            elif isinstance(pattern, str):
                patterns.append(pattern)
            else:
                terms.append(_labels(field(each, "selector", "labelMatch")))
        return cls(
            fields.text(content, "metadata", "name"),
            fields.count(content, "spec", "tier"),
            fields.text(content, "spec", "tierName"),
            tuple(names),
            tuple(terms),
            tuple(patterns),
            tuple(filter(None, children)),
        )


@dataclass(frozen=True, slots=True)
class HyperNodes:
    """All HyperNodes of a cluster."""

    by_name: Mapping[str, HyperNode]
    _domains: dict[int, tuple[LabelColumns, LabelColumns | str]] = dataclass_field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def top(self) -> int:
        """Return the highest tier. Above it, Volcano has one HyperNode with all nodes."""
        return max((each.tier for each in self.by_name.values()), default=0)

    def tiers_named(self, name: str) -> set[int]:
        """Return the tiers with the name `name`; if they are several, Volcano takes one of them."""
        return {each.tier for each in self.by_name.values() if name and each.tier_name == name}

    def domains(self, tier: int, labels: LabelColumns, rows: Mapping[str, int]) -> LabelColumns | str:
        """Return `labels` with the domains of `tier` as a label of the nodes, or the reason why they are not known.

        The key of the label is that of `key_of_tier`. The domains are the HyperNodes of `tier` and below that are in no
        other one of these: a group that may use them may use all of their nodes. `rows` are those of the nodes.

        Source: volcano.sh/volcano/pkg/scheduler/plugins/network-topology-aware, hyperNodeGradientFn;
        pkg/scheduler/api/hyper_node_info.go, BuildHyperNodeCache
        """
        known = self._domains.get(tier)
        if known is None or known[0] is not labels:
            known = self._domains[tier] = labels, self._read(tier, labels, rows)
        return known[1]

    def _read(self, tier: int, labels: LabelColumns, rows: Mapping[str, int]) -> LabelColumns | str:
        parents: dict[str, str] = {}
        lengths, left = Counter(map(len, rows)), _MOST_TRIES
        for each in self.by_name.values():
            if not all(map(_compiled, each.patterns)):
                return f"the pattern of HyperNode {each.name} is not evaluated"
            left -= sum(
                most_tries(pattern, length) * number for pattern in each.patterns for length, number in lengths.items()
            )
            if left < 0:
                return (
                    f"the pattern of HyperNode {each.name} can take too long: begin it with ^, with fewer repetitions"
                )
            for child in each.children:
                if parents.setdefault(child, each.name) != each.name:
                    return f"HyperNode {child} is a member of two HyperNodes, so Volcano starts no such gang"
                if child in self.by_name and self.by_name[child].tier >= each.tier:
                    return f"HyperNode {child} is a member of one that is not of a higher tier"
        allowed = {name: each for name, each in self.by_name.items() if each.tier <= tier}
        highest = [each for name, each in allowed.items() if parents.get(name) not in allowed]
        codes = np.full(labels.count, -1, dtype=np.intp)
        for code, each in enumerate(highest):
            own = self._nodes(each, labels, rows)
            if (codes[own] >= 0).any():
                other = highest[int(codes[own].max())].name
                return f"the HyperNodes {other} and {each.name} have nodes in common"
            codes[own] = code
        return labels.with_column(key_of_tier(tier), [each.name for each in highest], codes)

    def _nodes(self, of: HyperNode, labels: LabelColumns, rows: Mapping[str, int]) -> Mask:
        """Return a mask of the nodes of `of` and of its children, whose tiers are lower."""
        found, left = np.zeros(labels.count, dtype=np.bool_), [of]
        while left:
            each = left.pop()
            found[[rows[name] for name in each.names if name in rows]] = True
            for compiled in filter(None, map(_compiled, each.patterns)):
                found[[row for name, row in rows.items() if compiled.search(name)]] = True
            for term in each.terms:
                found |= matches(term, labels, rows)
            left += [self.by_name[child] for child in each.children if child in self.by_name]
        return found


@dataclass(frozen=True, slots=True)
class VolcanoObjects:
    """The objects of Volcano by name, or by namespace and name, and the configuration in a cluster file.

    None means not known.
    """

    queues: Mapping[str, VolcanoQueue] | None = None
    groups: Mapping[tuple[str, str], PodGroup] | None = None
    hyper_nodes: HyperNodes | None = None
    configuration: VolcanoConfiguration | None = None


NO_VOLCANO = VolcanoObjects()


def _labels(selector: Any) -> Term:
    """Return the requirements of a LabelSelector. As in Volcano, one that is empty or invalid matches nothing."""
    exact = [Requirement(key, "In", (value,)) for key, value in fields.texts(selector, "matchLabels").items()]
    others = [
        Requirement(fields.text(each, "key"), fields.text(each, "operator"), _texts(items_at(each, "values")))
        for each in fields.items(selector, "matchExpressions")
    ]
    is_valid = all(each.operator not in ("Gt", "Lt") for each in others)
    return Term((*exact, *others) if is_valid else (), ())


def _texts(values: list[Any]) -> tuple[str, ...]:
    return tuple(each for each in values if isinstance(each, str))


def most_tries(pattern: str, length: int) -> int:
    """Return an upper bound of the ways in which `pattern` is tried on a name of `length` characters.

    Each repetition can end at any character, each `?` doubles the ways, and each group can take any alternative.
    """
    repeats, alternatives = len(re.findall(r"[*+{]", pattern)), pattern.count("|") + 1
    ways: int = 2 ** pattern.count("?") * alternatives ** max(1, pattern.count("("))
    starts = 1 if pattern.startswith("^") and alternatives == 1 else length + 1
    return starts * comb(length + repeats, repeats) * ways


def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Return the pattern, or None if it is too long or could mean something else than in Go."""
    if len(pattern) > _LONGEST_PATTERN or _NOT_EVALUATED.search(pattern):
        return None
    try:
        return re.compile(pattern, re.ASCII)
    except re.error:
        return None

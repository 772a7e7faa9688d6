"""The typical pods of a cluster: the requests of pods with cards, and their frequency."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import compress
from operator import is_not
from typing import NamedTuple

import numpy as np

from webhook.cluster.node_info import NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.amounts import CPU, MEMORY, is_extended_resource

# More kinds of pods would make a placement slower. Those that request the most cards in total are kept.
MOST_KINDS = 64

# The cards of the pods of `default_mix`.
_DEFAULT_CARDS = (1, 2, 4, 8, 16)

# The weight of `default_mix` beside the running pods. Measured with `python -m bench.outcome`: with 0, small pods have
# opened all nodes when the first large pod arrives; with 16, a cluster of 150 nodes learns its own mix too late.
_DEFAULT_WEIGHT = 4


class TypicalPod(NamedTuple):
    """The requests of one kind of pod: thousandths of a core, bytes, and cards of one resource."""

    milli_cpu: int
    memory_bytes: int
    cards: int


# The weight of each kind of pod, such as the number of its pods.
Mix = Mapping[TypicalPod, float]


@dataclass(frozen=True, slots=True)
class CardMixes:
    """The `resources` whose units are cards, as patterns, and the typical pods of some of them, by resource.

    For other resources, the mix consists of the running pods and a few default pods.
    """

    resources: tuple[str, ...] = ()
    mixes: Mapping[str, Mix] = field(default_factory=dict)


class RunningMix:
    """The mix of the running pods, by resource of the cards.

    The last counted nodes are cached, so the next count only processes the differences. `is_card` returns true for the
    name of a resource whose units are cards.
    """

    def __init__(self, is_card: Callable[[str], bool]) -> None:
        self._is_card = is_card
        # One tuple, written in one step: threads share a profile.
        self._last: tuple[tuple[NodeInfo, ...], Mapping[str, Counter[TypicalPod]]] = ((), {})

    def of(self, nodes: tuple[NodeInfo, ...]) -> Mapping[str, Mix]:
        """Return the mix of the pods of `nodes`, weighted by their number, by resource."""
        before, counts = self._last
        if len(before) != len(nodes):
            before, counts = (), {}
        is_changed = tuple(map(is_not, before, nodes)) if before else (True,) * len(nodes)
        if True in is_changed:
            counts = {resource: counter.copy() for resource, counter in counts.items()}
            self._count(counts, compress(before, is_changed), -1)
            self._count(counts, compress(nodes, is_changed), 1)
            self._last = (nodes, counts)
        return {resource: counter for resource, counter in counts.items() if counter}

    def _count(self, counts: dict[str, Counter[TypicalPod]], nodes: Iterable[NodeInfo], step: int) -> None:
        for info in nodes:
            for resource in filter(self._is_card, info.requested):
                counter = counts.setdefault(resource, Counter())
                for pod in info.pods:
                    asked = pod.requests.get
                    if cards := asked(resource, 0):
                        kind = TypicalPod(asked(CPU, 0), asked(MEMORY, 0), cards)
                        counter[kind] += step
                        if not counter[kind]:
                            del counter[kind]


class ExpectedMixes:
    """The expected mix for each resource whose units are cards. Counts are cached."""

    def __init__(self, cards: CardMixes) -> None:
        @lru_cache(maxsize=1024)
        def is_card(resource: str) -> bool:
            return is_extended_resource(resource) and any(fnmatchcase(resource, each) for each in cards.resources)

        self._is_card = is_card
        self._mixes = cards.mixes
        self._running = RunningMix(is_card)

    def of(self, nodes: Snapshot) -> Mapping[str, Mix]:
        """Return the non-empty mixes of the resources of `nodes`, in the order of their names."""
        running = self._running.of(tuple(nodes.nodes))
        mixes = {
            resource: self._mixes.get(resource) or expected_mix(running.get(resource, {}), default_mix(nodes, resource))
            for resource in sorted(filter(self._is_card, nodes.allocatable_columns))
        }
        return {resource: mix for resource, mix in mixes.items() if mix}


def expected_mix(running: Mix, default: Mix) -> Mix:
    """Return the expected mix: the `running` pods, and the `default` mix with the weight of a few pods.

    Without the default, no cards would be kept free for pods of sizes that are not running now.
    """
    mix = dict(running)
    for kind, weight in default.items():
        mix[kind] = mix.get(kind, 0) + _DEFAULT_WEIGHT * weight
    return mix


def default_mix(snapshot: Snapshot, resource: str) -> Mix:
    """Return the mix for a cluster without running pods, derived only from its nodes.

    It has pods with 1, 2, 4, 8 and 16 cards, up to the largest node. The pods of each size together request the same
    number of cards. Each pod requests half of the CPU and memory that the median node has for the same number of cards.
    """
    cards = snapshot.allocatable(resource)
    with_cards = cards > 0
    if not with_cards.any():
        return {}

    def half_of_a_card(name: str) -> float:
        return float(np.median(snapshot.allocatable(name)[with_cards] / cards[with_cards])) / 2

    milli_cpu, memory_bytes = half_of_a_card(CPU), half_of_a_card(MEMORY)
    numbers = [number for number in _DEFAULT_CARDS if number <= int(cards.max())]
    return {TypicalPod(int(milli_cpu * each), int(memory_bytes * each), each): 1 / each for each in numbers}


def most_frequent(mix: Mix) -> Mix:
    """Return the `MOST_KINDS` kinds of `mix` that request the most cards in total."""
    if len(mix) <= MOST_KINDS:
        return mix
    kinds = sorted(mix, key=lambda kind: (-mix[kind] * kind.cards, kind))[:MOST_KINDS]
    return {kind: mix[kind] for kind in kinds}

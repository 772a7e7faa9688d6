"""Cards that are held and not used: a row of the report."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, NamedTuple

from webhook.placement.packing.held_cards import CONFIG_ERROR, CRASH_LOOP, IMAGE_PULL, SNAPSHOT_CLASSES

PARTIAL_GANG, UNUSED_CLAIM = "partial-gang", "unused-claim"
UNUSED_QUOTA, REJECTING_NODE, IDLE = "unused-quota", "rejecting-node", "idle"
CLASSES = (*SNAPSHOT_CLASSES, PARTIAL_GANG, UNUSED_CLAIM, UNUSED_QUOTA, REJECTING_NODE, IDLE)
# The pods of these classes wait for nothing but an owner: an eviction frees their cards.
EVICTABLE = frozenset((CRASH_LOOP, IMAGE_PULL, CONFIG_ERROR, PARTIAL_GANG))


class Since(NamedTuple):
    """The time since which cards are not used, in Unix seconds.

    `is_least` is true if they may have been unused for longer. `is_known` is false if the API has no such time;
    `seconds` is then the earliest possible time.
    """

    seconds: int
    is_least: bool = False
    is_known: bool = True


class Step(NamedTuple):
    """A command that frees cards, and what must be true before a person runs it."""

    command: str
    only_if: str


@dataclass(frozen=True, slots=True)
class Held:
    """Cards that are held and not used, by a pod, a gang, a claim, a quota or a node.

    `cards` are by resource. `pods` are the raw objects of the pods that hold them. `frees` names who or what frees
    them. `is_down` is true if the cards are on nodes that are down, so that no other pod can use them. `returns` is
    true if a controller creates the pods again at once.
    """

    reason: str
    cards: Mapping[str, int]
    nodes: tuple[str, ...]
    namespace: str
    name: str
    since: Since
    why: str
    frees: str
    steps: tuple[Step, ...] = ()
    pods: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    is_down: bool = False
    returns: bool = False

    def in_context(self, context: str) -> "Held":
        """Return the row with commands for the cluster of `context`, a context of the kubeconfig."""
        program = f"kubectl --context {quote(context)}"
        steps = (each._replace(command=program + each.command.removeprefix("kubectl")) for each in self.steps)
        return replace(self, steps=tuple(steps))

    @property
    def count(self) -> int:
        """Return the number of cards."""
        return sum(self.cards.values())

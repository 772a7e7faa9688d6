"""A row of the report: cards that are held and not used, and who can free them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import NamedTuple

from placement_reclaim.cluster import HoldingPod, Raw, full_name
from webhook.kube.pod.top_controller import Controller, top_controller
from webhook.placement.packing.held_cards import CONFIG_ERROR, CRASH_LOOP, IMAGE_PULL, SNAPSHOT_CLASSES

PARTIAL_GANG, UNUSED_CLAIM = "partial-gang", "unused-claim"
UNUSED_QUOTA, REJECTING_NODE, IDLE = "unused-quota", "rejecting-node", "idle"
CLASSES = (*SNAPSHOT_CLASSES, PARTIAL_GANG, UNUSED_CLAIM, UNUSED_QUOTA, REJECTING_NODE, IDLE)
# The pods of these classes wait for nothing but an owner: an eviction frees their cards.
EVICTABLE = frozenset((CRASH_LOOP, IMAGE_PULL, CONFIG_ERROR, PARTIAL_GANG))
_SCALED = frozenset(("Deployment", "StatefulSet", "ReplicaSet"))


class Since(NamedTuple):
    """The time since which cards are not used, in Unix seconds, or before (`is_least`).

    If the API has no such time, `is_known` is false, and `seconds` is the earliest possible one.
    """

    seconds: int
    is_least: bool = False
    is_known: bool = True

    def age(self, now: int) -> int:
        """Return the seconds until `now`. They are negative for a pod of a gang that is within its grace period."""
        return now - self.seconds


class Remedy(NamedTuple):
    """A text about who or what frees cards, and commands of kubectl, each with the condition that a person checks."""

    text: str
    commands: Mapping[str, str] = {}


def owner_of(pod: Raw) -> Controller:
    """Return the object that a person changes to free the cards of `pod`: its controller, or the pod without one."""
    return top_controller(pod) or Controller("Pod", full_name(pod)[1], "v1")


def owner_remedy(pod: Raw) -> Remedy:
    """Return the change of the owner of `pod` that frees the cards."""
    kind, name, api_version = owner_of(pod)
    group = api_version.rpartition("/")[0]
    # kubectl prefers the kinds of Kubernetes; their groups have no dot, but for kinds without pods.
    resource = f"{kind.lower()}.{group}" if "." in group else kind.lower()
    target = f"{quote(resource)} {quote(name)} -n {quote(full_name(pod)[0])}"
    text, command = f"delete {kind} {name}", f"delete {target}"
    if kind in _SCALED and group == "apps":
        text, command = f"scale {kind} {name} to 0", f"scale {target} --replicas=0"
    return Remedy(text, {command: f"the owner of {kind} {name} agrees"})


@dataclass(frozen=True, slots=True)
class Held:
    """Cards that are held and not used, by a pod, a gang, a claim, a quota or a node.

    `cards` are by resource. `pods` are the raw objects of the pods that hold them. `is_down` is true if the cards are
    on nodes that are down, so that no other pod can use them.
    """

    reason: str
    cards: Mapping[str, int]
    nodes: tuple[str, ...]
    namespace: str
    name: str
    since: Since
    why: str
    remedy: Remedy
    pods: tuple[Raw, ...] = field(default=(), repr=False)
    is_down: bool = False

    @classmethod
    def of(
        cls, pods: Sequence[HoldingPod], reason: str, since: Since, why: str, remedy: Remedy, name: str = ""
    ) -> "Held":
        """Return the row of one pod, or of the pods of the gang `name`."""
        contents = tuple(pod.content for pod in pods)
        (namespace, own_name), cards = full_name(contents[0]), sum((Counter(pod.cards) for pod in pods), Counter[str]())
        nodes = tuple(sorted({pod.running.node_name for pod in pods}))
        is_down = any(pod.node.not_ready_seconds is not None for pod in pods)
        return cls(reason, cards, nodes, namespace, name or own_name, since, why, remedy, contents, is_down)

    @property
    def count(self) -> int:
        """Return the number of cards."""
        return sum(self.cards.values())

    @property
    def returns(self) -> bool:
        """Return whether a controller creates the pods again at once."""
        return any(map(top_controller, self.pods))

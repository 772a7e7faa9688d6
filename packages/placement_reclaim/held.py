"""A row of the report: cards that are held and not used, and who can free them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, NamedTuple

from placement_reclaim.cluster import HoldingPod, Raw, full_name
from webhook.kube.pod.top_controller import top_controller
from webhook.placement.packing.held_cards import CONFIG_ERROR, CRASH_LOOP, IMAGE_PULL, SNAPSHOT_CLASSES

PARTIAL_GANG, UNUSED_CLAIM = "partial-gang", "unused-claim"
UNUSED_QUOTA, REJECTING_NODE, IDLE = "unused-quota", "rejecting-node", "idle"
CLASSES = (*SNAPSHOT_CLASSES, PARTIAL_GANG, UNUSED_CLAIM, UNUSED_QUOTA, REJECTING_NODE, IDLE)
# The pods of these classes wait for nothing but an owner: an eviction frees their cards.
EVICTABLE = frozenset((CRASH_LOOP, IMAGE_PULL, CONFIG_ERROR, PARTIAL_GANG))
_SCALED = frozenset(("Deployment", "StatefulSet", "ReplicaSet"))


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


class Remedy(NamedTuple):
    """A text about who or what frees cards, and the commands for it."""

    text: str
    steps: tuple[Step, ...] = ()


class Owner(NamedTuple):
    """The object that a person changes to free the cards of a pod: its controller, or the pod if it has none.

    `group` is the API group of `kind`, or empty for the core group.
    """

    kind: str
    name: str
    namespace: str
    group: str = ""

    @classmethod
    def of(cls, pod: Raw) -> "Owner":
        """Return the owner of `pod`. For a ReplicaSet of a Deployment, this is the Deployment."""
        namespace, name = full_name(pod)
        if (found := top_controller(pod)) is None:
            return cls("Pod", name, namespace)
        return cls(found.kind, found.name, namespace, found.api_version.rpartition("/")[0])

    @property
    def is_controller(self) -> bool:
        """Return whether the owner creates the pod again after a deletion."""
        return self.kind != "Pod"

    @property
    def remedy(self) -> Remedy:
        """Return the change of the owner that frees the cards."""
        # kubectl prefers the kinds of Kubernetes; their groups have no dot, but for kinds without pods.
        resource = quote(f"{self.kind.lower()}.{self.group}" if "." in self.group else self.kind.lower())
        target, shown = f"{resource} {quote(self.name)} -n {quote(self.namespace)}", f"{self.kind} {self.name}"
        if self.kind in _SCALED and self.group == "apps":
            text, command = f"scale {shown} to 0", f"kubectl scale {target} --replicas=0"
        else:
            text, command = f"delete {shown}", f"kubectl delete {target}"
        return Remedy(text, (Step(command, f"the owner of {shown} agrees"),))


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
    pods: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    is_down: bool = False

    @classmethod
    def of_pod(cls, pod: HoldingPod, reason: str, since: Since, why: str, remedy: Remedy) -> "Held":
        """Return the row of one pod."""
        namespace, name = full_name(pod.content)
        node, down = (pod.running.node_name,), pod.node.is_down
        return cls(reason, pod.cards, node, namespace, name, since, why, remedy, (pod.content,), down)

    def in_context(self, context: str) -> "Held":
        """Return the row with commands for the cluster of `context`, a context of the kubeconfig."""
        program = f"kubectl --context {quote(context)}"
        steps = (each._replace(command=program + each.command.removeprefix("kubectl")) for each in self.remedy.steps)
        return replace(self, remedy=Remedy(self.remedy.text, tuple(steps)))

    @property
    def count(self) -> int:
        """Return the number of cards."""
        return sum(self.cards.values())

    @property
    def returns(self) -> bool:
        """Return whether a controller creates the pods again at once."""
        return any(Owner.of(pod).is_controller for pod in self.pods)

"""The largest gang of a given pod that each topology domain, such as a rack, could start."""

from typing import NamedTuple

from placement_planner.capacity.simulation import FurtherPods
from webhook.backends.references import Within
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.framework.node_states import open_nodes
from webhook.placement.gang.domains import domains_together, follows_itself, is_countable
from webhook.placement.packing.free_cards import accelerator_of, free_amounts
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.policy.policy import Policy

_MOST_PODS = 1000


class DomainRoom(NamedTuple):
    """The room of a domain for a gang of pods that are all alike.

    `fits` is the size of the largest gang that could start now, and `fits_empty` an upper bound of that on empty nodes,
    or None if it is not known. `free` and `largest` are the free cards, and the most of them on one node, of the first
    kind of cards that a pod requests, or None if it requests none.
    """

    value: str
    fits: int
    fits_empty: int | None
    free: int | None = None
    largest: int | None = None


def topology_key(policy: Policy, name: str) -> str:
    """Return the label of a topology alias of the policy; another name is the label itself."""
    return policy.spec.topology_aliases.get(name, name)


def room_by_domain(pods: FurtherPods, snapshot: Snapshot, key: str, policy: Policy) -> list[DomainRoom] | None:
    """Return the room of each domain of the label `key` for a gang of `pods`, or None if it is not known.

    It is not known for pods with claims of their own, and for pods with a DoNotSchedule constraint that do not follow
    each other by pod affinity. If pods on one node decide about other nodes, at most `_MOST_PODS` are counted.

    Raises:
        InvalidInput: a field of a pod that is read is malformed; holds every error.
    """
    signature, running = pods.read(0)
    follow = follows_itself(signature.info, key, snapshot)
    if signature.info.volumes.claims or not is_countable(pods.scheduler, signature.info, counts_all=follow):
        return None
    spec, gang = policy.spec, GangKey(running.namespace, "", "")
    requested = (name for name, amount in signature.info.requests if amount and accelerator_of(name, spec.accelerators))
    resource = next(requested, None)
    codes, paths = snapshot.labels.paths((key,))
    cards: dict[str, tuple[int, int]] = {}
    if resource is not None:
        free = free_amounts(snapshot, resource, open_nodes(snapshot, spec.temporary_taints))
        for code, (value,) in enumerate(paths):
            own = free[codes == code]
            cards[value] = int(own.sum()), int(own.max(initial=0))
    pod, within = WaitingPod(signature, running), Within(key)
    found = domains_together(pods.scheduler, pod, gang, within, snapshot, _MOST_PODS, _MOST_PODS, never)
    return [DomainRoom(each.value, each.fits, each.fits_empty, *cards.get(each.value, ())) for each in found.domains]

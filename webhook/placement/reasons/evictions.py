"""Describe kube-scheduler's preemption for a pod as text."""

from collections import Counter
from collections.abc import Iterator, Sequence

from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.documents.listing import some
from webhook.kube.pod.gang_key import GangKey
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import Placement
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS

CARDS = tuple(name for each in BUILT_IN_ACCELERATORS for name in each.resources)
OF_NAMESPACE = "; of this namespace, "
"""Before the names of the user's own pods in a warning."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def eviction_text(preemption: PredictedPreemption, described: Sequence[str] = ()) -> str:
    """Return a text such as `kube-scheduler would evict 2 pods on node-7: team-a/a, team-a/b`.

    `described` is a text about the victims that replaces their names.
    """
    count = preemption.count
    pods = "pod" if preemption.most == 1 else "pods"
    if not preemption.nodes:
        where = f"one of at least {preemption.candidates} nodes"
        return f"kube-scheduler would evict {count} {pods} on {where}: {preemption.why}"
    victims = [*(described or preemption.names())]
    shown = some(victims)
    if len(preemption.nodes) > 1:
        each = "victim" if preemption.most == 1 else "victims"
        return f"kube-scheduler would evict pods on one of {some(preemption.nodes)}; {count} {each} each, of: {shown}"
    if not preemption.is_exact and len(victims) > preemption.most:
        return f"kube-scheduler would evict {count} of these {len(victims)} pods on {preemption.nodes[0]}: {shown}"
    return f"kube-scheduler would evict {count} {pods} on {preemption.nodes[0]}: {shown}"


def eviction_warning(placement: Placement, namespace: str) -> str:
    """Return the text for a user of `namespace`: counts of pods, and only the names of pods in this namespace.

    It is the reason if the evictions are not known, and empty if there are none for the pod by itself.

    Source: https://github.com/kubernetes/kubernetes/issues/114923
    """
    preemption = placement.preemption
    if preemption is None or placement.verdict != "Waiting":
        return ""
    if not preemption.evicts and not preemption.is_exact:
        return f"evictions are not known: {preemption.why}"
    if placement.waits_for != "preemption":
        return ""
    own = [each.name for each in preemption.victims if each.namespace == namespace]
    pods = "pod" if preemption.most == 1 else "pods"
    where = preemption.nodes[0] if len(preemption.nodes) == 1 else "one node"
    text = f"kube-scheduler would evict {preemption.count} {pods} of lower priority on {where}"
    if not own:
        return text
    among = "may be" if not preemption.is_exact else "are" if len(own) > 1 else "is"
    return f"{text}{OF_NAMESPACE}{some(own)} {among} among them"


def eviction_lines(preemption: PredictedPreemption, snapshot: Snapshot, now_seconds: float) -> list[str]:
    """Return lines about the evictions in `snapshot` and their consequences."""
    if not preemption.evicts:
        return []
    described, last = [], ""
    for each in preemption.victims:
        details = ", ".join(_details(each, now_seconds))
        described.append(f"{each.namespace}/{each.name}" + (f" ({details})" if details != last else ""))
        last = details
    lines = [eviction_text(preemption, described), *violations(preemption)]
    lines += _idle_gangs(preemption, snapshot)
    lines += _controllers(preemption, snapshot)
    return [*lines, *certainty(preemption)]


def violations(preemption: PredictedPreemption) -> list[str]:
    """Return texts about the PodDisruptionBudgets that the evictions violate."""
    return [f"violates PodDisruptionBudget {name}" for name in preemption.violates]


def certainty(preemption: PredictedPreemption) -> list[str]:
    """Return a text about the reason why the named evictions are not certain, or what is not known of them."""
    if not (preemption.why and preemption.nodes):
        return []
    return [f"note: {preemption.why}" if preemption.is_exact else f"not certain: {preemption.why}"]


def _details(pod: RunningPod, now_seconds: float) -> Iterator[str]:
    yield f"priority {pod.priority}"
    if cards := _cards(pod):
        yield "1 card" if cards == 1 else f"{cards} cards"
    if pod.is_terminating:
        yield "is being deleted"
    elif pod.started_seconds:
        yield f"runs for {time_text(now_seconds - pod.started_seconds)}"


def _cards(pod: RunningPod) -> int:
    return sum(pod.requests.get(name, 0) for name in CARDS)


def time_text(seconds: float) -> str:
    """Return a time in its largest unit, such as `2 h`."""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{max(int(seconds), 0)} s"


def _idle_gangs(preemption: PredictedPreemption, snapshot: Snapshot) -> Iterator[str]:
    """Yield texts about the remaining pods of gangs that lose pods, because kube-scheduler does not consider gangs."""
    lost = Counter(gang for each in preemption.victims for gang in each.gangs)
    if not lost or not preemption.is_exact:
        return
    members: dict[GangKey, list[RunningPod]] = {gang: [] for gang in lost}
    for info in snapshot.nodes:
        for gang in lost.keys() & {*info.gangs}:
            members[gang] += [each for each in info.pods if gang in each.gangs]
    for gang, pods in members.items():
        evicted = [each.name for each in preemption.victims if gang in each.gangs]
        idle = sum(map(_cards, pods)) - sum(_cards(each) for each in preemption.victims if gang in each.gangs)
        verb = "is" if len(evicted) == 1 else "are"
        left = f": {idle} more {'card' if idle == 1 else 'cards'} would idle" if idle > 0 else ""
        yield f"{some(evicted)} {verb} {len(evicted)} of {len(pods)} pods of gang {gang.name}{left}"


def _controllers(preemption: PredictedPreemption, snapshot: Snapshot) -> Iterator[str]:
    """Yield texts about the controllers that create the victims again, and whether the new pods would wait for room."""
    if not preemption.is_exact:
        return
    for controller in dict.fromkeys(each.controller for each in preemption.victims):
        pods = [each for each in preemption.victims if each.controller == controller]
        if not controller:
            yield f"no controller creates {some([each.name for each in pods])} again"
            continue
        waits = all(not _has_amounts(each, snapshot) for each in pods)
        kind, name = controller.split("/", 1)
        created = "it" if len(pods) == 1 else "them"
        would = (": it would wait" if len(pods) == 1 else ": they would wait") if waits else ""
        yield f"{kind} {name} creates {created} again{would}"


def _has_amounts(pod: RunningPod, snapshot: Snapshot) -> bool:
    """Return whether a node has the requests of `pod` free, other than the node from which it is evicted."""
    has = snapshot.load.pods < snapshot.allowed_pods
    for resource, amount in pod.requests.items():
        has = has & (snapshot.allocatable(resource) - snapshot.requested(resource) >= amount)
    return bool(has.any())

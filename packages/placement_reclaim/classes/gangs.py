"""Gangs of which only a part runs. The running pods hold cards and wait for the other pods."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from placement_reclaim.cluster import HoldingPod, Name, Objects, Raw, condition, full_name, seconds
from placement_reclaim.held import PARTIAL_GANG, Held, Remedy, Since, owner_remedy
from webhook.cluster.batch import fields
from webhook.kube.names import ENDED_PHASES
from webhook.placement.reasons.gang_request import pods_ready_timeout


def partial_gangs(objects: Objects, holding: Mapping[Name, HoldingPod], lost: Mapping[Name, Since]) -> Iterator[Held]:
    """Yield the gangs that run with fewer pods than the minimum.

    `holding` are the pods that hold cards. `lost` has the time since which a bound pod should have ended or its node is
    down. A gang with a completed pod is left out, because its other pods end soon, too. Pods without cards count as
    members, such as a launcher.
    """
    gangs: dict[Name, tuple[int, list[Raw]]] = {}
    for pod in (*objects.pods.values(), *objects.ended.values()):
        if gang := objects.gang_of(pod):
            gangs.setdefault(gang[0], (gang[1], []))[1].append(pod)
    for (namespace, name), (least, members) in gangs.items():
        ends = [_lost_at(pod, lost.get(full_name(pod))) for pod in members]
        alive = [pod for pod, end in zip(members, ends, strict=True) if end is None]
        waiting = [pod for pod in alive if not fields.text(pod, "spec", "nodeName")]
        # No pod runs on a node that is gone.
        bound = [pod for pod in alive if fields.text(pod, "spec", "nodeName") in objects.nodes]
        running = [holding[full_name(pod)] for pod in bound if full_name(pod) in holding]
        has_completed = any(fields.text(pod, "status", "phase") == "Succeeded" for pod in members)
        if not running or len(bound) >= least or has_completed or any(pod.is_exempt for pod in running):
            continue
        cards = sum((Counter(pod.cards) for pod in running), Counter[str]())
        nodes = tuple(sorted({pod.running.node_name for pod in running}))
        since = _since(running, [*filter(None, ends)], waiting)
        others = f", {len(waiting)} wait" if waiting else ""
        why = f"{len(bound)} of {least} pods of gang {name} run{others}"
        remedy, pods = _remedy(running, pods_ready_timeout(objects.snapshot)), tuple(pod.content for pod in running)
        yield Held(PARTIAL_GANG, cards, nodes, namespace, name, since, why, remedy, pods)


def _lost_at(pod: Raw, lost: Since | None) -> int | None:
    """Return when a member ended, began to end, or lost its node, or None if it has not; 0 if this is not known.

    `lost` is since when its node is down or it should have ended.
    """
    if fields.text(pod, "status", "phase") in ENDED_PHASES:
        statuses = fields.items(pod, "status", "containerStatuses")
        ends = [seconds(each, "state", "terminated", "finishedAt") for each in statuses]
        return max(*ends, seconds(condition(pod, "DisruptionTarget"), "lastTransitionTime"), 0)
    return lost.seconds if lost else seconds(pod, "metadata", "deletionTimestamp") or None


def _since(running: Sequence[HoldingPod], ends: Sequence[int], waiting: Sequence[Raw]) -> Since:
    """Return when the last pod was bound or lost, whichever is later."""
    conditions = [(condition(pod.content, "PodScheduled"), pod.running.started_seconds) for pod in running]
    bound = max(seconds(each, "lastTransitionTime") or started for each, started in conditions)
    # A pod that a controller has made in place of a lost one is newer than the others.
    broken = max([0, *ends, *(seconds(each, "metadata", "creationTimestamp") for each in waiting)])
    return Since(max(bound, broken), is_least=broken > bound, is_known=bool(waiting or ends))


def _remedy(running: Sequence[HoldingPod], evicted_after: str) -> Remedy:
    remedies = [owner_remedy(pod.content) for pod in running]
    commands = {command: condition for each in remedies for command, condition in each.commands.items()}
    owners = remedies[0].text if len(commands) == 1 else f"its {len(commands)} owners"
    return Remedy(f"{owners}; Kueue evicts it after {evicted_after}" if evicted_after else owners, commands)

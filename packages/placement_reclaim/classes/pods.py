"""Pods and gangs that hold cards and do not use them: what has not ended, has not started, or is idle."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from placement_reclaim.cluster import HoldingPod, Name, Objects, Raw, condition, full_name, seconds
from placement_reclaim.held import IDLE, PARTIAL_GANG, Held, Remedy, Since, owner_remedy
from webhook.cluster.batch import fields
from webhook.documents.text import cut
from webhook.kube.names import ENDED_PHASES, KUEUE_GATES
from webhook.kube.pod.bound_status import waiting_status
from webhook.kube.pod.taints import NO_EXECUTE, NOT_READY_TAINTS, Toleration
from webhook.placement.packing import held_cards
from webhook.placement.reasons.gang_request import pods_ready_timeout

_LONGEST_MESSAGE = 100
# The kubelet forgets its backoff after a run of this length.
# Source: k8s.io/kubernetes/pkg/kubelet/kubelet.go, MaxCrashLoopBackOff
_LONG_RUN_SECONDS = 600
_FIRST_FAILURE = "ErrImagePull"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_NO_FINALIZERS = """'[{"op":"remove","path":"/metadata/finalizers"}]'"""
# A card that takes so much power is in use, even if its other metrics are 0. Cards that only hold memory take less.
_BUSY_WATTS = 150


@dataclass(slots=True)
class PodUse:
    """The use of the cards of a pod for a time: their number, whether all have done nothing, and the highest power.

    Then the memory in use, and the requests per second. A value that is not known is 0 or None.
    """

    cards: int = 0
    is_idle: bool = True
    watts: float = 0
    memory_mib: float = 0
    requests: float | None = None

    def add_card(self, activity: float | None, watts: float) -> None:
        """Add a card by its highest activity (None: not known for all of the time) and its power."""
        self.cards += 1
        self.is_idle &= activity == 0 and watts < _BUSY_WATTS
        self.watts = max(self.watts, watts)


def ending_or_lost(pod: HoldingPod, now: int) -> Held | None:
    """Return the row of a pod that should have ended, or whose node is down, or None for another pod."""
    running, begin = pod.running, pod.node.not_ready_seconds
    down = f"node {running.node_name} is down"
    if held_cards.is_overdue(running, now):
        why = "Terminating past its end" if begin is None else f"Terminating past its end; {down}"
        return Held.of([pod], held_cards.TERMINATING, Since(running.deletion_seconds), why, _end_of(pod))
    if begin is not None:
        since = Since(begin or running.started_seconds, is_known=begin > 0)
        return Held.of([pod], held_cards.NODE_DOWN, since, down, Remedy(_taint_eviction(pod), _end_of(pod).commands))
    return None


def lost_since(row: Held, pod: HoldingPod, now: int) -> Since:
    """Return the time since which a gang may lack `pod`, which has the row `row` of `ending_or_lost`."""
    is_brief = row.since.age(now) < held_cards.BRIEF_SECONDS
    if row.reason == held_cards.NODE_DOWN and (is_brief or not pod.node.is_silent):
        # The pod can go on, as while its kubelet restarts, or reports that the network is not ready.
        return row.since._replace(is_known=False)
    return row.since


def not_starting(pod: HoldingPod) -> Held | None:
    """Return the row of a pod that has no running container with cards and has one that does not start."""
    found, status = held_cards.waiting_class(pod.running), waiting_status(pod.content)
    if pod.running.is_terminating or not found:
        return None
    remark, restarts = fields.text(status, "state", "waiting", "message"), fields.count(status, "restartCount")
    if found == held_cards.CRASH_LOOP and restarts:
        remark = f"{restarts} restarts"
    elif found == held_cards.IMAGE_PULL and not remark:
        remark = fields.text(status, "image")
    reason = pod.running.waiting_reason
    why = f"{reason}: {cut(remark, _LONGEST_MESSAGE)}" if remark else reason
    return Held.of([pod], found, _begin(pod, status), why, owner_remedy(pod.content))


def _begin(pod: HoldingPod, status: Raw) -> Since:
    """Return the time since which the pod has not run, estimated: the API has no time for a waiting container."""
    started, finished = (seconds(status, "lastState", "terminated", key) for key in ("startedAt", "finishedAt"))
    if started and finished - started >= _LONG_RUN_SECONDS:
        return Since(finished)
    ready = condition(pod.content, "ContainersReady")
    not_ready = seconds(ready, "lastTransitionTime") if fields.text(ready, "status") == "False" else 0
    crashed = finished and finished - held_cards.earlier_back_offs(fields.text(status, "state", "waiting", "message"))
    if found := min(filter(None, (not_ready, crashed)), default=0):
        # A large image can take hours until its pull fails for the first time.
        is_known = pod.running.waiting_reason != _FIRST_FAILURE
        return Since(found, is_least=is_known, is_known=is_known)
    never_ran = not fields.count(status, "restartCount")
    return Since(pod.running.started_seconds, is_least=never_ran, is_known=never_ran)


def _end_of(pod: HoldingPod) -> Remedy:
    """Return what ends a pod that should have ended."""
    node, target = pod.running.node_name, f"pod {quote(pod.running.name)} -n {quote(pod.running.namespace)}"
    is_down = pod.node.not_ready_seconds is not None
    if is_down and any(taint.key == _OUT_OF_SERVICE for taint in pod.node.taints):
        # It makes the phase Failed, which frees the cards, also while a finalizer keeps the object.
        return Remedy("the pod garbage collector, within 20 s")
    if is_down:
        command = f"taint nodes {quote(node)} {_OUT_OF_SERVICE}=nodeshutdown:NoExecute"
        only_if = f"{node} is off: pods of a running node go on with its volumes"
        return Remedy(f"node {node} back, or out-of-service taint", {command: only_if})
    text, only_if = f"kubelet of {node}; look for a hung process", f"no process of the pod runs on {node}"
    commands = {f"delete {target} --grace-period=0 --force": f"{only_if}, or two pods would use one card"}
    # A kubelet that ends the pod makes its phase final, which frees the cards: a finalizer only keeps the object.
    # Source: k8s.io/kubernetes/pkg/kubelet/status/status_manager.go, TerminatePod
    if finalizers := ", ".join(map(str, fields.items(pod.content, "metadata", "finalizers"))):
        text = f"{text}, then finalizer {finalizers}"
        only_if = f"the controller that sets {finalizers} is gone, with what it cleans up"
        commands[f"patch {target} --type=json -p {_NO_FINALIZERS}"] = only_if
    return Remedy(text, commands)


def _taint_eviction(pod: HoldingPod) -> str:
    """Return a text about what deletes a pod on a node that is down.

    Source: k8s.io/kubernetes/pkg/controller/tainteviction/taint_eviction.go, getMinTolerationTime;
    pkg/apis/core/v1/helper/helpers.go, GetMatchingTolerations
    """
    back = f"node {pod.running.node_name} back"
    tolerations = [*fields.items(pod.content, "spec", "tolerations")]
    taints, limits = [each for each in pod.node.taints if each.effect == NO_EXECUTE], []
    for taint in taints if any(each.key in NOT_READY_TAINTS for each in taints) else ():
        # Of several tolerations of a taint, only the first one counts.
        first = next((each for each in tolerations if Toleration.of(each).tolerates(taint)), {"tolerationSeconds": 0})
        limits.append(fields.number(first, "tolerationSeconds"))
    ends = [limit for limit in limits if limit is not None]
    if ends:
        return f"{back}, or taint eviction after {max(0, int(min(ends)))} s, then as Terminating"
    # If all nodes are down, the node lifecycle controller removes the NoExecute taints from all of them.
    reason = "the pod tolerates its taint without an end" if limits else "it has no NoExecute taint that evicts the pod"
    return f"{back}: {reason}"


def partial_gangs(objects: Objects, holding: Mapping[Name, HoldingPod], lost: Mapping[Name, Since]) -> Iterator[Held]:
    """Yield the gangs that run with fewer pods than the minimum.

    `holding` are the pods that hold cards. `lost` has the time since which a bound pod may be lost. A gang with a
    completed pod is left out, because its other pods end soon, too. Pods without cards count as members, such as a
    launcher.
    """
    gangs, evicted_after = dict[Name, tuple[int, list[Raw]]](), pods_ready_timeout(objects.snapshot)
    for pod in (*objects.pods.values(), *objects.ended.values()):
        if gang := objects.gang_of(pod):
            gangs.setdefault(gang[0], (gang[1], []))[1].append(pod)
    for (_, name), (least, members) in gangs.items():
        ends = [_lost_at(pod, lost.get(full_name(pod))) for pod in members]
        alive = [pod for pod, end in zip(members, ends, strict=True) if end is None]
        waiting = [pod for pod in alive if not fields.text(pod, "spec", "nodeName")]
        # No pod runs on a node that is gone.
        bound = [pod for pod in alive if fields.text(pod, "spec", "nodeName") in objects.snapshot.rows]
        running = [holding[full_name(pod)] for pod in bound if full_name(pod) in holding]
        # A pod with a nominated node is about to get room.
        starting = [pod for pod in waiting if fields.text(pod, "status", "nominatedNodeName")]
        has_enough = len(bound) + len(starting) >= least
        has_completed = any(fields.text(pod, "status", "phase") == "Succeeded" for pod in members)
        may_go_on = any(pod.is_exempt for pod in running) or any(map(objects.may_be_elastic, members))
        if not running or has_enough or has_completed or may_go_on:
            continue
        doubt = any(not lost[key].is_known for key in map(full_name, members) if key in lost)
        since = _since(running, [*filter(None, ends)], waiting, is_known=not doubt)
        why = f"{len(bound)} of {least} pods of gang {name} run" + (f", {len(waiting)} wait" if waiting else "")
        yield Held.of(running, PARTIAL_GANG, since, why, _remedy(running, evicted_after), name)


def _lost_at(pod: Raw, lost: Since | None) -> int | None:
    """Return the time at which a member ended, began to end, or lost its node (`lost`), in Unix seconds.

    The result is 0 for an unknown time, and None for a member that still runs.
    """
    if fields.text(pod, "status", "phase") in ENDED_PHASES:
        statuses = fields.items(pod, "status", "containerStatuses")
        ends = [seconds(each, "state", "terminated", "finishedAt") for each in statuses]
        return max(*ends, seconds(condition(pod, "DisruptionTarget"), "lastTransitionTime"), 0)
    return lost.seconds if lost else seconds(pod, "metadata", "deletionTimestamp") or None


def _since(running: Sequence[HoldingPod], ends: Sequence[int], waiting: Sequence[Raw], *, is_known: bool) -> Since:
    """Return when the last pod was bound or lost, whichever is later. `is_known` is false if one end is not known."""
    conditions = [(condition(pod.content, "PodScheduled"), pod.running.started_seconds) for pod in running]
    bound = max(seconds(each, "lastTransitionTime") or started for each, started in conditions)
    # A pod that a controller has made in place of a lost one is newer than the others.
    broken = max([0, *ends, *(seconds(each, "metadata", "creationTimestamp") for each in waiting)])
    is_known = is_known and bool(waiting or ends)
    return Since(max(bound, broken), is_least=is_known and broken > bound, is_known=is_known)


def _remedy(pods: Sequence[HoldingPod], evicted_after: str) -> Remedy:
    """Return the change of the owners of the running `pods` of a gang, and when Kueue evicts it, if it is Kueue's."""
    remedies = [owner_remedy(pod.content) for pod in pods]
    commands = {command: condition for each in remedies for command, condition in each.commands.items()}
    owners = remedies[0].text if len(commands) == 1 else f"its {len(commands)} owners"
    is_of_kueue = any(key.startswith(KUEUE_GATES) for key in pods[0].running.labels)
    end = f"; Kueue evicts it after {evicted_after}" if evicted_after and is_of_kueue else ""
    return Remedy(f"{owners}{end}", commands)


def idle(pod: HoldingPod, use: PodUse | None, now: int, seconds: int) -> Held | None:
    """Return the row of a pod that has run, but not used its cards, for `seconds` before `now`, or None for another."""
    has_run = 0 < pod.running.started_seconds <= now - seconds and not pod.running.is_terminating
    if use is None or use.requests or not use.is_idle or not has_run or use.cards < sum(pod.cards.values()):
        return None
    facts = (
        "GPU 0 %",
        f"at most {use.watts:.0f} W" if use.watts else "",
        f"{use.memory_mib / 1024:.0f} GiB in use" if use.memory_mib else "",
        "" if use.requests is None else "0 requests/s",
    )
    remedy = owner_remedy(pod.content)
    remedy = remedy._replace(text=f"owner: {remedy.text}")
    return Held.of([pod], IDLE, Since(now - seconds, is_least=True), ", ".join(filter(None, facts)), remedy)

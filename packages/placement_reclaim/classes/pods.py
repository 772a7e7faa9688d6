"""Single pods that hold cards and do not use them: they should have ended, their node is down, or they do not start."""

from placement_reclaim.cluster import HoldingPod, Objects, Raw, condition, seconds
from placement_reclaim.held import Held, Since, Step
from placement_reclaim.owners import Owner, steps_of_ending
from webhook.cluster.batch import fields
from webhook.documents.documents import field
from webhook.documents.text import cut
from webhook.kube.names import MIRROR_POD_ANNOTATION
from webhook.kube.pod.taints import NO_EXECUTE, NOT_READY_TAINTS
from webhook.placement.packing.held_cards import (
    CRASH_LOOP,
    IMAGE_PULL,
    NODE_DOWN,
    TERMINATING,
    is_of_node,
    is_overdue,
    waiting_class,
)

_LONGEST_MESSAGE = 100
# The kubelet forgets its backoff after a run of this length.
# Source: k8s.io/kubernetes/pkg/kubelet/kubelet.go, MaxCrashLoopBackOff
_LONG_RUN_SECONDS = 600
_FIRST_FAILURE = "ErrImagePull"


def is_exempt(pod: HoldingPod) -> bool:
    """Return whether `pod` is never reported, because it is static, of a DaemonSet, or being debugged."""
    annotations = fields.texts(pod.content, "metadata", "annotations")
    debuggers = fields.items(pod.content, "status", "ephemeralContainerStatuses")
    is_debugged = any(not field(each, "state", "terminated") for each in debuggers)
    return is_of_node(pod.running) or MIRROR_POD_ANNOTATION in annotations or is_debugged


def ending_or_lost(pod: HoldingPod, now: int) -> Held | None:
    """Return the row of a pod that should have ended, or whose node is down, or None for another pod."""
    running, node = pod.running, pod.node
    if is_exempt(pod):
        return None
    down = f"node {running.node_name} is down"
    if is_overdue(running, now):
        why = f"Terminating past its end; {down}" if node.is_down else "Terminating past its end"
        return row(pod, TERMINATING, Since(running.deletion_seconds), why, _ender(pod), steps_of_ending(pod))
    if node.is_down:
        since = Since(node.since or running.started_seconds, is_known=node.since > 0)
        return row(pod, NODE_DOWN, since, down, _taint_eviction(pod), steps_of_ending(pod))
    return None


def not_starting(pod: HoldingPod, objects: Objects) -> Held | None:
    """Return the row of a pod whose containers do not start, or None for another pod.

    A pod uses its cards if a container that requests cards runs, even if other containers do not.
    """
    running = pod.running
    statuses = _card_statuses(pod.content, objects)
    states = [(field(each, "state", "waiting"), field(each, "state", "terminated")) for each in statuses]
    if is_exempt(pod) or running.is_terminating or any(each == (None, None) for each in states):
        return None
    for status in (*fields.items(pod.content, "status", "initContainerStatuses"), *statuses):
        waiting = field(status, "state", "waiting")
        reason = fields.text(waiting, "reason")
        found = waiting_class(running, reason)
        if not found:
            continue
        owner = Owner.of(pod.content)
        message = fields.text(waiting, "message") or (fields.text(status, "image") if found == IMAGE_PULL else "")
        restarts = fields.count(status, "restartCount")
        remark = f"{restarts} restarts" if found == CRASH_LOOP and restarts else cut(message, _LONGEST_MESSAGE)
        why = f"{reason}: {remark}" if remark else reason
        return row(pod, found, _begin(pod, status, reason), why, owner.remedy, (owner.step,))
    return None


def row(pod: HoldingPod, reason: str, since: Since, why: str, frees: str, steps: tuple[Step, ...]) -> Held:
    """Return the row of one pod."""
    running = pod.running
    return Held(
        reason=reason,
        cards=pod.cards,
        nodes=(running.node_name,),
        namespace=running.namespace,
        name=running.name,
        since=since,
        why=why,
        frees=frees,
        steps=steps,
        pods=(pod.content,),
        is_down=pod.node.is_down,
        returns=Owner.of(pod.content).returns,
    )


def _card_statuses(pod: Raw, objects: Objects) -> list[Raw]:
    """Return the statuses of the containers that request cards; of a pod with claims for all, of all containers.

    Cluster files of `snapshot` have only the states of containers that wait.
    """
    containers = [*fields.items(pod, "spec", "containers")]
    with_cards = [each for each in containers if any(objects.cards_of_container(each))]
    with_cards = with_cards or [each for each in containers if field(each, "resources", "claims")]
    names = {fields.text(each, "name") for each in with_cards or containers}
    return [each for each in fields.items(pod, "status", "containerStatuses") if fields.text(each, "name") in names]


def _begin(pod: HoldingPod, status: Raw, reason: str) -> Since:
    """Return the time since which the pod has not run, estimated: the API has no time for a waiting container."""
    started, finished = (seconds(status, "lastState", "terminated", key) for key in ("startedAt", "finishedAt"))
    if started and finished - started >= _LONG_RUN_SECONDS:
        return Since(finished)
    ready = condition(pod.content, "ContainersReady")
    times = [
        seconds(ready, "lastTransitionTime") if fields.text(ready, "status") == "False" else 0,
        finished,
    ]
    if found := min(filter(None, times), default=0):
        # A large image can take hours until its pull fails for the first time.
        is_known = reason != _FIRST_FAILURE
        return Since(found, is_least=is_known, is_known=is_known)
    has_run = fields.count(status, "restartCount")
    return Since(pod.running.started_seconds, is_least=not has_run, is_known=not has_run)


def _ender(pod: HoldingPod) -> str:
    if pod.node.is_out_of_service:
        return "the pod garbage collector, within 20 s"
    if pod.node.is_down:
        return f"node {pod.running.node_name} back, or out-of-service taint"
    if finalizers := [*map(str, fields.items(pod.content, "metadata", "finalizers"))]:
        return f"finalizer {', '.join(finalizers)}"
    return f"kubelet of {pod.running.node_name}; look for a hung process"


def _taint_eviction(pod: HoldingPod) -> str:
    """Return a text about what deletes a pod on a node that is down.

    Source: k8s.io/kubernetes/pkg/controller/tainteviction/taint_eviction.go, getMinTolerationTime
    """
    back = f"node {pod.running.node_name} back"
    given = [*fields.items(pod.content, "spec", "tolerations")]
    tolerations = [each for each in given if fields.text(each, "effect") in ("", NO_EXECUTE)]
    limits = []
    for taint in pod.node.taints or NOT_READY_TAINTS:
        of_taint = [each for each in tolerations if fields.text(each, "key") in ("", taint)]
        limits += [fields.number(each, "tolerationSeconds") for each in of_taint] or [0]
    ends = [limit for limit in limits if limit is not None]
    if not ends:
        return f"{back}: the pod tolerates its taint without an end"
    return f"{back}, or taint eviction after {max(0, int(min(ends)))} s, then as Terminating"

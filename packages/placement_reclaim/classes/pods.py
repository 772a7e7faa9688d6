"""Single pods that hold cards and do not use them: they should have ended, their node is down, or they do not start."""

from shlex import quote

from placement_reclaim.cluster import OUT_OF_SERVICE, HoldingPod, Objects, Raw, condition, seconds
from placement_reclaim.held import Held, Remedy, Since, owner_remedy
from webhook.cluster.batch import fields
from webhook.documents.documents import field
from webhook.documents.text import cut
from webhook.kube.pod.taints import NO_EXECUTE
from webhook.placement.packing.held_cards import (
    CRASH_LOOP,
    IMAGE_PULL,
    NODE_DOWN,
    TERMINATING,
    is_overdue,
    waiting_class,
)

_LONGEST_MESSAGE = 100
# The kubelet forgets its backoff after a run of this length.
# Source: k8s.io/kubernetes/pkg/kubelet/kubelet.go, MaxCrashLoopBackOff
_LONG_RUN_SECONDS = 600
_FIRST_FAILURE = "ErrImagePull"
_NO_FINALIZERS = """'[{"op":"remove","path":"/metadata/finalizers"}]'"""


def ending_or_lost(pod: HoldingPod, now: int) -> Held | None:
    """Return the row of a pod that should have ended, or whose node is down, or None for another pod."""
    running, node = pod.running, pod.node
    down = f"node {running.node_name} is down"
    if is_overdue(running, now):
        why = f"Terminating past its end; {down}" if node.is_down else "Terminating past its end"
        return Held.of_pod(pod, TERMINATING, Since(running.deletion_seconds), why, _end_of(pod))
    if node.is_down:
        since = Since(node.since or running.started_seconds, is_known=node.since > 0)
        return Held.of_pod(pod, NODE_DOWN, since, down, Remedy(_taint_eviction(pod), _end_of(pod).commands))
    return None


def not_starting(pod: HoldingPod, objects: Objects) -> Held | None:
    """Return the row of a pod whose containers do not start, or None for another pod.

    A pod uses its cards if a container that requests cards runs, even if other containers do not.
    """
    statuses = _card_statuses(pod.content, objects)
    runs = any(not field(each, "state", "waiting") and not field(each, "state", "terminated") for each in statuses)
    if pod.running.is_terminating or runs:
        return None
    for status in (*fields.items(pod.content, "status", "initContainerStatuses"), *statuses):
        waiting = field(status, "state", "waiting")
        reason = fields.text(waiting, "reason")
        if found := waiting_class(pod.running, reason):
            message = fields.text(waiting, "message") or (fields.text(status, "image") if found == IMAGE_PULL else "")
            restarts = fields.count(status, "restartCount")
            remark = f"{restarts} restarts" if found == CRASH_LOOP and restarts else cut(message, _LONGEST_MESSAGE)
            why = f"{reason}: {remark}" if remark else reason
            return Held.of_pod(pod, found, _begin(pod, status, reason), why, owner_remedy(pod.content))
    return None


def _card_statuses(pod: Raw, objects: Objects) -> list[Raw]:
    """Return the statuses of the containers that request cards; of a pod with claims for all, of all containers.

    Cluster files of `snapshot` have only the states of containers that wait.
    """
    containers = [*fields.items(pod, "spec", "containers")]
    with_cards = [each for each in containers if objects.has_cards(each)]
    with_cards = with_cards or [each for each in containers if field(each, "resources", "claims")]
    names = {fields.text(each, "name") for each in with_cards or containers}
    return [each for each in fields.items(pod, "status", "containerStatuses") if fields.text(each, "name") in names]


def _begin(pod: HoldingPod, status: Raw, reason: str) -> Since:
    """Return the time since which the pod has not run, estimated: the API has no time for a waiting container."""
    started, finished = (seconds(status, "lastState", "terminated", key) for key in ("startedAt", "finishedAt"))
    if started and finished - started >= _LONG_RUN_SECONDS:
        return Since(finished)
    ready = condition(pod.content, "ContainersReady")
    not_ready = seconds(ready, "lastTransitionTime") if fields.text(ready, "status") == "False" else 0
    if found := min(filter(None, (not_ready, finished)), default=0):
        # A large image can take hours until its pull fails for the first time.
        is_known = reason != _FIRST_FAILURE
        return Since(found, is_least=is_known, is_known=is_known)
    has_run = fields.count(status, "restartCount")
    return Since(pod.running.started_seconds, is_least=not has_run, is_known=not has_run)


def _end_of(pod: HoldingPod) -> Remedy:
    """Return what ends a pod that should have ended."""
    node, target = pod.running.node_name, f"pod {quote(pod.running.name)} -n {quote(pod.running.namespace)}"
    if pod.node.is_out_of_service:
        return Remedy("the pod garbage collector, within 20 s")
    if pod.node.is_down:
        command = f"kubectl taint nodes {quote(node)} {OUT_OF_SERVICE}=nodeshutdown:NoExecute"
        only_if = f"{node} is off: pods of a running node go on with its volumes"
        return Remedy(f"node {node} back, or out-of-service taint", {command: only_if})
    if finalizers := ", ".join(map(str, fields.items(pod.content, "metadata", "finalizers"))):
        command = f"kubectl patch {target} --type=json -p {_NO_FINALIZERS}"
        only_if = f"the controller that sets {finalizers} is gone, with what it cleans up"
        return Remedy(f"finalizer {finalizers}", {command: only_if})
    command = f"kubectl delete {target} --grace-period=0 --force"
    only_if = f"no process of the pod runs on {node}, or two pods would use one card"
    return Remedy(f"kubelet of {node}; look for a hung process", {command: only_if})


def _taint_eviction(pod: HoldingPod) -> str:
    """Return a text about what deletes a pod on a node that is down.

    Source: k8s.io/kubernetes/pkg/controller/tainteviction/taint_eviction.go, getMinTolerationTime
    """
    back = f"node {pod.running.node_name} back"
    given = [*fields.items(pod.content, "spec", "tolerations")]
    tolerations = [each for each in given if fields.text(each, "effect") in ("", NO_EXECUTE)]
    limits = []
    for taint in pod.node.evicting:
        of_taint = [each for each in tolerations if fields.text(each, "key") in ("", taint)]
        limits += [fields.number(each, "tolerationSeconds") for each in of_taint] or [0]
    ends = [limit for limit in limits if limit is not None]
    if ends:
        return f"{back}, or taint eviction after {max(0, int(min(ends)))} s, then as Terminating"
    # If all nodes are down, the node lifecycle controller removes the NoExecute taints from all of them.
    reason = "the pod tolerates its taint without an end" if limits else "it has no NoExecute taint that evicts the pod"
    return f"{back}: {reason}"

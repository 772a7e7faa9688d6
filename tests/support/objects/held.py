"""Pods and nodes that hold cards and do not use them, and those that only look like it, at a fixed time."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod

Object = dict[str, Any]

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NOW_SECONDS = int(NOW.timestamp())
HOUR = 3600
CARD = "nvidia.com/gpu"
GANG, GANG_SIZE = "maip.mxsf.io/gang", "maip.mxsf.io/gang-size"
NOT_READY = "node.kubernetes.io/not-ready"


def ago(seconds: int) -> str:
    """Return the time `seconds` before NOW, as the API has it."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def gpu_node(name: str, *, down_for: int = 0, taints: tuple[str, ...] = (), cards: int = 8) -> Object:
    """Return a node whose kubelet has just reported, or has not for `down_for` seconds."""
    down = [f"{NOT_READY}:NoExecute", f"{NOT_READY}:NoSchedule"] if down_for else []
    node = make_node_object(name, capacity={CARD: cards}, taints=[*down, *taints])
    for taint in node["spec"]["taints"][: len(down)]:
        taint["timeAdded"] = ago(down_for)
    ready = node["status"]["conditions"][0]
    ready |= {"status": "Unknown" if down_for else "True", "lastTransitionTime": ago(down_for or 24 * HOUR)}
    ready["lastHeartbeatTime"] = ago(down_for)
    return node


def card_pod(name: str, node: str, cards: int = 8, *, since: int = 6 * HOUR, namespace: str = "team-a") -> PodBuilder:
    """Return a pod that runs on `node` since `since` seconds."""
    pod = make_pod(name).namespace(namespace).uid(f"uid-of-{namespace}-{name}").gpu(cards).node_name(node)
    return running(pod.creation(ago(since)), since)


def running(pod: PodBuilder, since: int) -> PodBuilder:
    """Return the pod with containers that run."""
    names = [each["name"] for each in pod.obj()["spec"]["containers"]]
    state = {"running": {"startedAt": ago(since)}}
    statuses = [{"name": name, "state": state, "ready": True, "restartCount": 0} for name in names]
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(since)},
        {"type": "ContainersReady", "status": "True", "lastTransitionTime": ago(since)},
    ]
    return pod.status(phase="Running", startTime=ago(since), containerStatuses=statuses, conditions=conditions)


def waiting(pod: PodBuilder, reason: str, since: int, *, message: str = "", container: str = "main") -> PodBuilder:
    """Return the pod with `container` waiting for `reason`, and not ready since `since` seconds."""
    status = pod.obj()["status"]
    for each in status["containerStatuses"]:
        if each["name"] == container:
            each |= {"state": {"waiting": {"reason": reason, "message": message}}, "ready": False}
            if reason == "CrashLoopBackOff":
                each |= {"restartCount": 7, "lastState": {"terminated": {"exitCode": 1, "finishedAt": ago(since)}}}
    for each in status["conditions"]:
        if each["type"] == "ContainersReady":
            each |= {"status": "False", "lastTransitionTime": ago(since)}
    return pod.status(**status)


def gang_pod(number: int, node: str, *, size: int = 8, gang: str = "bert", since: int = 6 * HOUR) -> PodBuilder:
    """Return a pod of a gang: bound to `node`, or pending if that is empty."""
    pod = make_pod(f"{gang}-{number}").namespace("team-c").uid(f"uid-of-{gang}-{number}").gpu(8)
    pod = pod.annotate(GANG, gang).annotate(GANG_SIZE, str(size)).owner("Job", gang, api_version="batch/v1")
    pod = pod.creation(ago(since))
    return running(pod.node_name(node), since) if node else pod.status(phase="Pending")

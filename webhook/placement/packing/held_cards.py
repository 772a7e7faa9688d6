"""Pods that hold cards and do not use them, as far as a snapshot shows it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from webhook.cluster.node_info import Node, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.placement.packing.free_cards import accelerator_of
from webhook.policy.spec.accelerators import Accelerator
from webhook.runtime.settings import parse_go_duration

TERMINATING, NODE_DOWN = "terminating", "node-down"
CRASH_LOOP, IMAGE_PULL, CONFIG_ERROR = "crash-loop", "image-pull", "config-error"
WAITING_CLASSES: Mapping[str, str] = {
    **dict.fromkeys(("CrashLoopBackOff", "RunContainerError", "PostStartHookError"), CRASH_LOOP),
    **dict.fromkeys(("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull"), IMAGE_PULL),
    **dict.fromkeys(("CreateContainerConfigError", "CreateContainerError"), CONFIG_ERROR),
}
"""The classes of the reasons for which a container waits and does not start by itself.

Source: k8s.io/kubernetes/pkg/kubelet/images/types.go, kuberuntime/kuberuntime_container.go, container/sync_result.go
"""
SNAPSHOT_CLASSES = (TERMINATING, NODE_DOWN, CRASH_LOOP, IMAGE_PULL, CONFIG_ERROR)

# After the grace period, the kubelet kills the containers and reports that they have ended.
_KILLING_SECONDS = 60
# A node that is not ready for less, as while its kubelet restarts, goes on with its pods. Taint eviction waits as long.
BRIEF_SECONDS = 300
# The pods of a DaemonSet and static pods belong to their node.
_OF_NODES = ("DaemonSet/", "Node/")
_JOB = "Job/"
_BACK_OFF = re.compile(r"back-off (\S{1,20}) restarting failed container")
# The kubelet waits twice as long after each crash, up to 300 s, until the container has run for twice that.
# Source: k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_manager.go, doBackOff
_BACK_OFFS_SECONDS = (10, 20, 40, 80, 160)


def end_seconds(pod: RunningPod) -> int:
    """Return the Unix time by which `pod` should end, with its grace period, or 0 if it is not being deleted."""
    return pod.deletion_seconds + _KILLING_SECONDS if pod.deletion_seconds > 0 else 0


def is_overdue(pod: RunningPod, now: int) -> bool:
    """Return whether `pod` should have ended before `now`, in Unix seconds."""
    return 0 < end_seconds(pod) < now


def is_of_node(pod: RunningPod) -> bool:
    """Return whether `pod` is a static pod or one of a DaemonSet."""
    return pod.controller.startswith(_OF_NODES)


def waiting_class(pod: RunningPod) -> str:
    """Return the class of a pod that does not start, or "" for another one. A Job ends its crash loops."""
    found = WAITING_CLASSES.get(pod.waiting_reason, "")
    return "" if found == CRASH_LOOP and pod.controller.startswith(_JOB) else found


def earlier_back_offs(message: str) -> int:
    """Return the least seconds for which a container crashed before its last run, by its `message` while it waits."""
    found = _BACK_OFF.match(message)
    last = (parse_go_duration(found[1]) if found else None) or 0
    return sum(each for each in _BACK_OFFS_SECONDS if each < last)


def timeless_class(pod: RunningPod, node: Node) -> str:
    """Return the class for which `pod` does not use its cards that follows from its state, without any time, or ""."""
    if is_of_node(pod):
        return ""
    if node.not_ready_seconds is not None:
        return NODE_DOWN
    return "" if pod.is_terminating else waiting_class(pod)


def held_class(pod: RunningPod, node: Node, now: int) -> str:
    """Return the class for which `pod` does not use its cards at `now`, in Unix seconds, or "" if it may."""
    if is_overdue(pod, now) and not is_of_node(pod):
        return TERMINATING
    found = timeless_class(pod, node)
    return "" if found == NODE_DOWN and now < (node.not_ready_seconds or 0) + BRIEF_SECONDS else found


class HeldCards(NamedTuple):
    """The cards that are held and not used, by class and resource, and the pods that hold them, by class."""

    cards: Mapping[tuple[str, str], int]
    pods: Mapping[str, int]

    @classmethod
    def of(cls, snapshot: Snapshot, accelerators: Sequence[Accelerator], now: int) -> "HeldCards":
        """Count the cards of `accelerators` in `snapshot` at `now`, in Unix seconds."""
        resources = [name for name in snapshot.allocatable_columns if accelerator_of(name, accelerators)]
        # Classes without pods are 0, so that a graph of them has no gaps.
        cards = Counter({(reason, name): 0 for reason in SNAPSHOT_CLASSES for name in resources})
        pods = Counter(dict.fromkeys(SNAPSHOT_CLASSES, 0))
        for info in snapshot.nodes:
            if not any(name in info.requested for name in resources):
                continue
            for pod in info.pods:
                held = {name: amount for name in resources if (amount := pod.requests.get(name))}
                if held and (reason := held_class(pod, info.node, now)):
                    pods[reason] += 1
                    cards.update({(reason, name): amount for name, amount in held.items()})
        return cls(cards, pods)

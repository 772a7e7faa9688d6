"""The cards that are held and not used, as far as a snapshot shows it."""

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.held import CARD, HOUR, NOW_SECONDS, ago, card_pod, gpu_node, running, waiting
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import Node, RunningPod
from webhook.documents.documents import Document
from webhook.kube.pod.rare_facts import RareFacts
from webhook.placement.packing.held_cards import (
    HeldCards,
    earlier_back_offs,
    end_seconds,
    held_class,
    is_overdue,
    timeless_class,
)
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS

NODES = [gpu_node("n1"), gpu_node("down", down_for=HOUR), gpu_node("blip", down_for=299)]
CRASH = waiting(card_pod("crash", "n1", 2), "CrashLoopBackOff", HOUR)


SIDECAR = waiting(running(card_pod("train", "n1").container("logs"), HOUR), "ErrImagePull", HOUR, container="logs")
DEBUGGED = CRASH.status(ephemeralContainerStatuses=[{"name": "debug", "state": {"running": {"startedAt": ago(60)}}}])


def counted(*pods: PodBuilder) -> HeldCards:
    contents = [*NODES, *(pod.obj() for pod in pods)]
    snapshot = snapshot_from_documents([Document("the test", each) for each in contents])
    return HeldCards.of(snapshot, BUILT_IN_ACCELERATORS, NOW_SECONDS)


def test_cards_are_counted_by_class_and_resource_and_pods_by_class() -> None:
    found = counted(
        CRASH,
        waiting(card_pod("pull", "n1", 1), "ErrImagePull", HOUR),
        waiting(card_pod("pull-too", "n1", 1), "ImagePullBackOff", HOUR),
        waiting(card_pod("config", "n1", 1), "CreateContainerConfigError", HOUR),
        card_pod("stuck", "n1", 1).deletion(ago(HOUR)),
        card_pod("lost", "down", 8),
    )

    assert found.cards == {
        ("crash-loop", CARD): 2,
        ("image-pull", CARD): 2,
        ("config-error", CARD): 1,
        ("terminating", CARD): 1,
        ("node-down", CARD): 8,
    }
    assert found.pods == {"crash-loop": 1, "image-pull": 2, "config-error": 1, "terminating": 1, "node-down": 1}


def test_an_overdue_pod_on_a_node_that_is_down_is_terminating() -> None:
    assert counted(card_pod("stuck", "down", 8).deletion(ago(HOUR))).cards["terminating", CARD] == 8


def test_a_node_that_is_down_since_an_unknown_time_counts_as_down() -> None:
    node = gpu_node("n9", down_for=60)
    node["status"]["conditions"] = []
    for taint in node["spec"]["taints"]:
        del taint["timeAdded"]
    snapshot = snapshot_from_documents([Document("the test", each) for each in (node, card_pod("lost", "n9").obj())])

    assert HeldCards.of(snapshot, BUILT_IN_ACCELERATORS, NOW_SECONDS).pods["node-down"] == 1


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(card_pod("runs", "n1"), id="runs"),
        pytest.param(card_pod("ends", "n1").deletion(ago(-HOUR)), id="is within its grace period"),
        pytest.param(card_pod("ends", "n1").deletion(ago(30)), id="is being killed"),
        pytest.param(CRASH.deletion(ago(30)), id="crashes while it is being killed"),
        pytest.param(CRASH.owner("Job", "train", api_version="batch/v1"), id="is restarted by a Job"),
        pytest.param(card_pod("agent", "down").owner("DaemonSet", "agent"), id="is of a DaemonSet"),
        pytest.param(card_pod("agent", "n1").owner("DaemonSet", "a").deletion(ago(HOUR)), id="of one should end"),
        pytest.param(card_pod("static", "down").owner("Node", "down", api_version="v1"), id="is static"),
        pytest.param(waiting(card_pod("pulls", "n1"), "ContainerCreating", HOUR), id="pulls its image"),
        pytest.param(card_pod("works", "blip"), id="is on a node that is silent for a moment"),
        pytest.param(SIDECAR, id="runs while its sidecar does not start"),
        pytest.param(DEBUGGED, id="is being debugged"),
        pytest.param(make_pod("web").node_name("down").status(phase="Running"), id="has no card"),
    ],
)
def test_a_pod_is_not_counted_that(pod: PodBuilder) -> None:
    found = counted(pod)

    assert {*found.cards.values(), *found.pods.values()} == {0}


@pytest.mark.parametrize(
    ("back_off", "seconds"),
    [("10s", 0), ("20s", 10), ("40s", 30), ("2m40s", 150), ("5m0s", 310), ("1m0s", 70), ("999h", 310), ("long", 0)],
)
def test_a_back_off_follows_shorter_ones(back_off: str, seconds: int) -> None:
    message = f"back-off {back_off} restarting failed container=main pod=srv_team-a(u1)"

    assert earlier_back_offs(message) == seconds
    assert earlier_back_offs(f"said: {message}") == 0


@pytest.mark.parametrize(
    ("deletion", "end", "overdue_from"),
    [
        pytest.param(0, 0, None, id="it is not being deleted"),
        pytest.param(-5, 0, None, id="a time before 1970 is not read"),
        pytest.param(1, 61, 62, id="it has a minute after its grace period"),
        pytest.param(NOW_SECONDS, NOW_SECONDS + 60, NOW_SECONDS + 61, id="as every pod"),
    ],
)
def test_pod_is_overdue_once_its_end_has_passed(deletion: int, end: int, overdue_from: int | None) -> None:
    pod = RunningPod.of(card_pod("ends", "n1").obj())._replace(rare=RareFacts(deletion_seconds=int(deletion)))

    assert end_seconds(pod) == int(end)
    if overdue_from is None:
        assert not is_overdue(pod, int(NOW_SECONDS) * 2)
    else:
        assert [is_overdue(pod, int(overdue_from) + each) for each in (-2, -1, 0, 1)] == [False, False, True, True]


@pytest.mark.parametrize(("seconds", "held"), [(0, ""), (299, ""), (300, "node-down"), (301, "node-down")])
@pytest.mark.parametrize("is_terminating", [False, True])
def test_node_is_down_after_the_time_for_which_taint_eviction_waits(
    seconds: int, held: str, *, is_terminating: bool
) -> None:
    pod = card_pod("works", "down")
    pod = pod.deletion(ago(-HOUR)) if is_terminating else pod
    node = Node.of(gpu_node("down", down_for=seconds))

    assert held_class(RunningPod.of(pod.obj()), node, int(NOW_SECONDS)) == held


@pytest.mark.parametrize(
    ("reason", "controller", "expected"),
    [
        ("CrashLoopBackOff", "ReplicaSet/web", "crash-loop"),
        ("CrashLoopBackOff", "Job/train", ""),
        ("CrashLoopBackOff", "JobSet/train", "crash-loop"),
        ("ErrImagePull", "Job/train", "image-pull"),
        ("CreateContainerConfigError", "", "config-error"),
        ("ContainerCreating", "", ""),
        ("", "", ""),
    ],
)
def test_pod_that_does_not_start_holds_its_cards_unless_it_ends_by_itself(
    reason: str, controller: str, expected: str
) -> None:
    pod = RunningPod.of(card_pod("p", "n1").obj())._replace(
        controller=controller, rare=RareFacts(waiting_reason=reason)
    )
    node = Node.of(gpu_node("n1"))

    assert timeless_class(pod, node) == expected
    assert timeless_class(pod._replace(is_terminating=True), node) == ""
    assert timeless_class(pod._replace(controller="DaemonSet/agent"), node) == ""

"""The rows of the report: their order and selection, and whom it never names."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from tests.reclaim.reports import names, report
from tests.support.objects.batch_objects import volcano_group
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.held import HOUR, ago, card_pod, gang_pod, gpu_node, running, waiting
from webhook.placement.packing.held_cards import WAITING_CLASSES

REASONS = sorted(WAITING_CLASSES)
NODES = [gpu_node("n1"), gpu_node("n2"), gpu_node("n3", down_for=2 * HOUR)]
HELD = [
    waiting(card_pod("crash", "n1", 2), "CrashLoopBackOff", 3 * HOUR),
    waiting(card_pod("pull", "n2", 4, namespace="team-b"), "ImagePullBackOff", HOUR),
    card_pod("train", "n3").deletion(ago(HOUR)),
]


def test_cards_on_usable_nodes_come_first_and_then_the_most() -> None:
    assert [each.name for each in report(*NODES, *HELD)] == ["pull", "crash", "train"]


def test_rows_are_selected_by_age() -> None:
    assert names(report(*NODES, *HELD, older_than=2 * HOUR)) == [("crash-loop", "crash")]


def long_grace(name: str, node: str, dice: Random) -> list[PodBuilder]:
    return [card_pod(name, node, 1).deletion(ago(-dice.randint(0, 20 * HOUR)))]


def large_image(name: str, node: str, dice: Random) -> list[PodBuilder]:
    reason = dice.choice(["ContainerCreating", "PodInitializing"])
    return [waiting(card_pod(name, node, 1), reason, dice.randint(0, 20 * HOUR))]


def restarting_job(name: str, node: str, dice: Random) -> list[PodBuilder]:
    pod = waiting(card_pod(name, node, 1), "CrashLoopBackOff", dice.randint(0, 20 * HOUR))
    return [pod.owner("Job", name, api_version="batch/v1")]


def of_the_node(name: str, node: str, dice: Random) -> list[PodBuilder]:
    pod = waiting(card_pod(name, node, 1), dice.choice(REASONS), dice.randint(0, 20 * HOUR))
    if dice.random() < 0.5:
        pod = pod.deletion(ago(dice.randint(-HOUR, 20 * HOUR)))
    if dice.random() < 0.5:
        return [pod.owner("DaemonSet", name)]
    return [pod.annotate("kubernetes.io/config.mirror", "hash").owner("Node", node, api_version="v1")]


def debugged(name: str, node: str, dice: Random) -> list[PodBuilder]:
    pod = waiting(card_pod(name, node, 1), dice.choice(REASONS), dice.randint(0, 20 * HOUR))
    return [pod.status(ephemeralContainerStatuses=[{"name": "debug", "state": {"running": {"startedAt": ago(60)}}}])]


def with_sidecar(name: str, node: str, dice: Random) -> list[PodBuilder]:
    pod = running(card_pod(name, node, 1).container("logs"), 20 * HOUR)
    return [waiting(pod, dice.choice(REASONS), dice.randint(0, 10 * HOUR), container="logs")]


def fresh(name: str, node: str, dice: Random) -> list[PodBuilder]:
    return [waiting(card_pod(name, node, 1), dice.choice(REASONS), dice.randint(0, 299))]


def starting_gang(name: str, node: str, dice: Random) -> list[PodBuilder]:
    size, old = dice.randint(3, 8), dice.randint(1, 10) * HOUR
    bound = dice.randint(1, size - 1)
    pods = [gang_pod(number, node if number < bound else "", size=size, gang=name, since=old) for number in range(size)]
    pods[bound - 1] = gang_pod(bound - 1, node, size=size, gang=name, since=dice.randint(0, 299))
    return pods


def nominated_gang(name: str, node: str, dice: Random) -> list[PodBuilder]:
    """Return a gang that has started in part, and whose other pods have a nominated node."""
    size = dice.randint(2, 8)
    pods = [gang_pod(number, node if number == 0 else "", size=size, gang=name) for number in range(size)]
    return [pods[0], *(pod.status(nominatedNodeName=node) for pod in pods[1:])]


def whole_gang(name: str, node: str, dice: Random) -> list[PodBuilder]:
    """Return a gang of which at least the needed number runs: an elastic one has more pods, which wait."""
    size = dice.randint(2, 5)
    more = [gang_pod(size + number, "", size=size, gang=name) for number in range(dice.randint(0, 3))]
    return [*(gang_pod(number, node, size=size, gang=name) for number in range(size)), *more]


def elastic_gang(name: str, node: str, dice: Random) -> list[dict[str, Any] | PodBuilder]:
    """Return a gang whose PodGroup needs no more pods than run, though it has more."""
    least, size = dice.randint(1, 4), 8
    group = volcano_group(name, namespace="team-c", members=least)
    pods = [gang_pod(n, node if n < least else "", size=size, gang=name) for n in range(size)]
    return [group, *(each.annotate("scheduling.k8s.io/group-name", name).scheduler("volcano") for each in pods)]


NEVER: list[Callable[[str, str, Random], Sequence[dict[str, Any] | PodBuilder]]] = [
    *(long_grace, large_image, restarting_job, of_the_node, debugged, with_sidecar, fresh),
    *(starting_gang, nominated_gang, whole_gang, elastic_gang),
]


def held(name: str, node: str, dice: Random) -> PodBuilder:
    """Return a pod that is to be reported."""
    if dice.random() < 0.5:
        return card_pod(name, node, 1).deletion(ago(dice.randint(400, 20 * HOUR)))
    return waiting(card_pod(name, node, 1), dice.choice(REASONS), dice.randint(300, 20 * HOUR))


def random_cluster(dice: Random) -> tuple[list[dict[str, Any] | PodBuilder], set[str], set[str]]:
    """Return a cluster, the names of the pods and gangs that are never to be reported, and those that are."""
    nodes = [gpu_node(f"n{number}") for number in range(4)]
    down = gpu_node("blip", down_for=dice.randint(1, 299))
    pods: list[dict[str, Any] | PodBuilder] = [card_pod("on-blip", "blip")]
    never, reported = {"on-blip"}, set()
    for number in range(dice.randint(5, 25)):
        node = f"n{dice.randrange(4)}"
        if dice.random() < 0.3:
            reported.add(f"held-{number}")
            pods.append(held(f"held-{number}", node, dice))
        else:
            never.add(f"never-{number}")
            pods += dice.choice(NEVER)(f"never-{number}", node, dice)
    pods.append(make_pod("pending").gpu(8).status(phase="Pending"))
    dice.shuffle(pods)
    return [*nodes, down, *pods], never, reported


@pytest.mark.slow
def test_no_pod_that_only_looks_held_is_reported_on_200_random_clusters() -> None:
    for seed in range(200):
        objects, never, reported = random_cluster(Random(seed))
        found = {each.name for each in report(*objects)}

        assert found & never == set(), seed
        assert found == reported, seed

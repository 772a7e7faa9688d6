"""What is read of the objects of a cluster."""

from typing import Any

import pytest

from placement_reclaim.cluster import written_at
from tests.reclaim.reports import objects_of, report
from tests.support.objects.batch_objects import volcano_group
from tests.support.objects.builders import PodBuilder
from tests.support.objects.held import CARD, GANG, GANG_SIZE, HOUR, NOW_SECONDS, ago, card_pod, gpu_node, waiting

GROUP = "scheduling.k8s.io/group-name"


def test_the_time_of_a_file_is_that_of_most_nodes_and_of_the_newest_object() -> None:
    ahead = gpu_node("n3")
    for each in ahead["status"]["conditions"]:
        each |= {"lastHeartbeatTime": ago(-HOUR), "lastTransitionTime": ago(-HOUR)}
    nodes = [gpu_node("n1"), gpu_node("n2"), ahead]

    assert written_at(nodes) == NOW_SECONDS
    assert written_at([*nodes, card_pod("new", "n1", since=-60).obj()]) == NOW_SECONDS + 60


def test_the_heartbeats_of_nodes_that_are_down_do_not_count() -> None:
    down = [gpu_node(name, down_for=HOUR) for name in ("n1", "n2")]

    assert written_at([*down, gpu_node("n3")]) == NOW_SECONDS
    assert written_at(down) == NOW_SECONDS - HOUR


def node_down(name: str, *, is_known: bool) -> dict[str, Any]:
    """Return a node that is down since an hour, or since a time that its condition does not have."""
    node = gpu_node(name, down_for=HOUR)
    if not is_known:
        del node["status"]["conditions"][0]["lastTransitionTime"]
    return node


@pytest.mark.parametrize("is_known", [True, False])
def test_the_cards_of_a_node_that_is_down_are_not_usable_also_if_its_time_is_not_known(is_known: bool) -> None:
    down = node_down("down", is_known=is_known)
    ending = card_pod("ending", "down", 2).deletion(ago(HOUR))
    given: list[dict[str, Any] | PodBuilder] = [
        gpu_node("up", cards=4),
        down,
        ending,
        waiting(card_pod("pull", "up", 1), "ImagePullBackOff", HOUR),
    ]

    assert objects_of(given).usable_cards() == {CARD: 4}
    assert [(each.name, each.is_down) for each in report(*given)] == [("pull", False), ("ending", True)]


@pytest.mark.parametrize(
    ("members", "size", "expected"),
    [
        (None, "0", None),
        (None, "1", None),
        (None, "2", 2),
        (None, "two", None),
        (None, "\N{SUPERSCRIPT TWO}", None),
        (1, None, None),
        (2, None, 2),
        (3, "2", 3),
        (1, "2", None),
    ],
)
def test_a_gang_has_two_pods_or_more_and_its_pod_group_comes_before_annotations(
    members: int | None, size: str | None, expected: int | None
) -> None:
    pod, given = card_pod("train-0", "n1"), [gpu_node("n1")]
    if members is not None:
        pod = pod.annotate(GROUP, "of-group").scheduler("volcano")
        given.append(volcano_group("of-group", namespace="team-a", members=members))
    if size is not None:
        pod = pod.annotate(GANG, "of-annotation").annotate(GANG_SIZE, size)
    name = "of-annotation" if members is None else "of-group"

    found = objects_of(given).gang_of(pod.obj())

    assert found == (None if expected is None else (("team-a", name), expected))

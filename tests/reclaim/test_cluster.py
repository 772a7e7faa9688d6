"""What is read of the objects of a cluster."""

from placement_reclaim.cluster import written_at
from tests.support.objects.held import HOUR, NOW_SECONDS, ago, card_pod, gpu_node


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

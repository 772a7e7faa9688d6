"""What is read of the objects of a cluster."""

from placement_reclaim.cluster import Objects
from tests.support.objects.held import HOUR, NOW_SECONDS, ago, card_pod, gpu_node
from webhook.policy.loader import built_in_policy


def test_the_time_of_a_file_is_that_of_most_nodes_and_of_the_newest_object() -> None:
    ahead = gpu_node("n3")
    for each in ahead["status"]["conditions"]:
        each |= {"lastHeartbeatTime": ago(-HOUR), "lastTransitionTime": ago(-HOUR)}
    objects = Objects(built_in_policy())

    for content in (gpu_node("n1"), gpu_node("n2"), ahead):
        objects.take(content)
    assert objects.latest == NOW_SECONDS
    objects.take(card_pod("new", "n1", since=-60).obj())
    assert objects.latest == NOW_SECONDS + 60

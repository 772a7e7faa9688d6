"""The real Volcano, with pods that have its own keys."""

from tests.controlplane.cluster import Cluster
from tests.schedulers.volcano import Volcano
from tests.support.builders import make_pod


def test_a_plain_pod_lands_in_the_queue_that_its_annotation_names(cluster: Cluster, volcano: Volcano) -> None:
    cluster.make_node("n1", capacity={"cpu": 8, "memory": "8Gi", "pods": 10})
    volcano.make_queue("research")
    pod = make_pod("p").requests(cpu="1").scheduler("volcano").annotate("scheduling.volcano.sh/queue-name", "research")

    made = cluster.create(pod).object

    assert cluster.wait_bound(made) == "n1"
    assert volcano.pod_group_of(made)["spec"]["queue"] == "research"

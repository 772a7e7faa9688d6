"""`check` places the pending pods of a live cluster before the pods that it is asked for."""

from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

# No scheduler places these pods, so they wait. A bound pod that names it is the sign that it runs.
IDLE = "idle-scheduler"


def _checked(run: Run, cluster: Cluster, pod: PodBuilder, *options: str) -> dict[str, Any]:
    kubeconfig: Path = cluster.control_plane.kubeconfig
    asked = as_list(pod.namespace(cluster.namespace))
    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", *options, stdin=asked)
    (line,) = lines(outcome.output)
    assert isinstance(line, dict)
    return line


def test_pending_pods_of_the_live_cluster_take_their_places_first(cluster: Cluster, run: Run) -> None:
    cluster.make_nodes(*(make_node_object(name, capacity={"nvidia.com/gpu": 4}) for name in ("a", "b")))
    first, second, asked = (make_pod(name).gpu(4) for name in ("first", "second", "third"))
    cluster.create(first.scheduler(IDLE))
    cluster.create(second.scheduler(IDLE))

    without_sign = _checked(run, cluster, asked)
    assert (without_sign["verdict"], "reserved" in without_sign) == ("Feasible", False)

    cluster.create(make_pod("sign").scheduler(IDLE).node_name("a"))

    waiting = _checked(run, cluster, asked)
    ignoring = _checked(run, cluster, asked, "--pending", "ignore")
    itself = _checked(run, cluster, first)

    assert (waiting["verdict"], waiting["reserved"]["pods"], waiting["reserved"]["withoutRoom"]) == ("Waiting", 2, 0)
    assert waiting["message"].endswith("It would fit, but 2 pods that wait before it need the room.")
    assert (ignoring["verdict"], ignoring["node"], "reserved" in ignoring) == ("Feasible", "a", False)
    assert itself["verdict"] == "Feasible"

    cluster.wait_bound(cluster.create(asked).object)
    beside = _checked(run, cluster, second)
    assert (beside["verdict"], beside["reserved"]["pods"]) == ("Waiting", 1)

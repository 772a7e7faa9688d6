"""What `capacity --make-room` and `--drain` propose comes true on the real API server and kube-scheduler."""

import os
import subprocess
from collections import Counter
from itertools import count
from random import Random
from typing import Any

import orjson
import pytest

from placement_planner.capacity.make_room import make_room
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.moves import read, schedulers
from tests.support.programs.command import Run, run_here
from tests.support.random.crowded import Crowded, crowded

Object = dict[str, Any]

FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = int(os.environ.get("DIFFERENTIAL_MOVES", "4"))


@pytest.fixture
def run() -> Run:
    """Run the command in this process."""
    return run_here


def _capacity(run: Run, cluster: Cluster, *arguments: str, stdin: str = "") -> list[Object]:
    kubeconfig = cluster.control_plane.kubeconfig
    outcome = run("capacity", *arguments, "--kubeconfig", kubeconfig, "-o", "json", stdin=stdin)
    assert outcome.code in (0, 3), outcome.errors
    return [orjson.loads(line) for line in outcome.output.splitlines()]


def _establish(cluster: Cluster, world: Crowded) -> None:
    """Create the nodes, the running and ready pods, and the budgets with the status that a controller gives them."""
    cluster.make_nodes(*world.nodes)
    for pod in world.pods:
        made = cluster.create({**pod, "status": {}}).object
        _set_status(cluster, made, pod["status"])
    for budget in world.budgets:
        _set_status(cluster, cluster.create({**budget, "status": {}}).object, budget["status"])


def _set_status(cluster: Cluster, made: Object, status: Object) -> None:
    metadata = made["metadata"]
    cluster.client.patch(
        made["kind"],
        metadata["name"],
        {"status": status},
        namespace=metadata["namespace"],
        api_version=made["apiVersion"],
        subresource="status",
    )


def _shell(cluster: Cluster, command: str) -> None:
    environment = {**os.environ, **cluster.control_plane.kubectl_environment}
    done = subprocess.run(["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def _world_with_moves(seed: int, namespace: str) -> Crowded:
    """Return the first random world from `seed` on in which moves are proposed."""
    for number in count(seed * 1000):
        world = crowded(Random(number), minds=seed % 2 == 1, namespace=namespace)
        snapshot, disruptions = read([*world.nodes, *world.pods, *world.budgets])
        found = make_room(snapshot, disruptions.bound, disruptions.budgets, world.pending, schedulers())
        if found.plan is not None:
            return world
    raise AssertionError


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_the_pod_is_bound_once_the_commands_are_run(cluster: Cluster, run: Run, seed: int) -> None:
    world = _world_with_moves(seed, cluster.namespace)
    _establish(cluster, world)
    refusal = cluster.wait_unschedulable(cluster.create({**world.pending, "status": {}}).object)
    (found,) = _capacity(run, cluster, "-f", "-", "--make-room", stdin=orjson.dumps(world.pending).decode())
    room = found["makeRoom"]
    assert refusal.startswith(found["stoppedBy"])
    assert room["verdict"] == "Moves"

    moves = {move["command"]: move for move in room["moves"]}
    for command in room["commands"]:
        _shell(cluster, command)
        if command in moves:
            move = moves[command]
            made = cluster.create({**world.remove(move["pod"]), "status": {}}).object
            target = cluster.wait_bound(made)
            assert target not in move["cordon"]
            assert move["anyOfThemDoes"] or target == move["to"]

    assert cluster.wait_bound(world.pending) == room["node"]


def test_kube_scheduler_preempts_the_pods_that_a_drain_names(cluster: Cluster, run: Run) -> None:
    cluster.make_nodes(*(make_node_object(name, capacity={"nvidia.com/gpu": 4}) for name in "abc"))
    for value in (1, 4, 5, 9):
        made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"drain-{value}"}}
        cluster.client.create({**made, "value": value})
    on_nodes = (("b", 5), ("b", 1), ("c", 5), ("c", 4), ("a", 9))
    for node, value in on_nodes:
        pod = make_pod(f"{node}-{value}").gpu(2).spec(priorityClassName=f"drain-{value}").owner("ReplicaSet", "web")
        cluster.create(pod.node_name(node))
    (found,) = _capacity(run, cluster, "--drain", "a")
    (high,) = found["pods"]
    assert high["preempts"] == [f"{cluster.namespace}/b-1"]

    cluster.kubectl("cordon", "a")
    cluster.create(make_pod("high").gpu(2).spec(priorityClassName="drain-9"))

    def victims() -> list[str] | None:
        found = [each["metadata"] for each in cluster.pods()]
        return [each["name"] for each in found if each.get("deletionTimestamp")] or None

    found_victims = wait_for(victims, "a preempted pod")
    for value in (1, 4, 5, 9):
        cluster.client.delete("PriorityClass", f"drain-{value}", api_version="scheduling.k8s.io/v1")
    assert found_victims == ["b-1"]


def _replica_set(name: str, replicas: int, cards: int) -> Object:
    template = make_pod().label("app", name).gpu(cards).spec(terminationGracePeriodSeconds=0).template()
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("left", [2, 5], ids=["too little room", "enough room"])
def test_as_many_pods_find_a_node_after_kubectl_drain_as_are_predicted(cluster: Cluster, run: Run, left: int) -> None:
    """The controllers run: they create the pods again."""
    cluster.control_plane.start_controller_manager()
    cluster.make_nodes(make_node_object("a", capacity={"nvidia.com/gpu": 6}))
    cluster.create(_replica_set("web", 3, 2))
    for pod in cluster.wait_pods(3):
        assert cluster.wait_bound(pod) == "a"
    cluster.make_nodes(
        make_node_object("b", capacity={"nvidia.com/gpu": left}),
        make_node_object("c", capacity={"nvidia.com/gpu": left}),
    )
    (found,) = _capacity(run, cluster, "--drain", "a")
    assert found["of"] == 3

    cluster.kubectl("drain", "a", "--timeout=30s")

    def settled() -> list[Object] | None:
        pods = [pod for pod in cluster.pods() if pod["spec"].get("nodeName") != "a"]
        is_decided = [pod["spec"].get("nodeName") or pod["status"].get("conditions") for pod in pods]
        return pods if len(pods) == 3 and all(is_decided) else None

    bound = Counter(pod["spec"].get("nodeName") for pod in wait_for(settled, "new pods"))
    assert 3 - bound[None] == found["fits"]
    assert {pod["outcome"] for pod in found["pods"]} == ({"Fits"} if left == 5 else {"Fits", "Waiting"})

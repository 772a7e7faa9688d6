"""Objects whose groups have a topology domain of their own: `check`, the webhook, and what kube-scheduler does."""

import hashlib
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.objects.advised import admitted, template, view, warnings_of
from tests.support.admission import USAGE
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workload_objects import workload
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import run_here
from webhook.admission.verdict import Advised

Object = dict[str, Any]
CARD = "nvidia.com/gpu"
RACK, LWS = "topology.kubernetes.io/rack", "leaderworkerset.sigs.k8s.io"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = int(os.environ.get("DIFFERENTIAL_DOMAINS", "4"))


def rack_node(name: str, rack: str, cards: int = 8, usage: str = "") -> Object:
    labels = {key: value for key, value in ((RACK, rack), (USAGE, usage)) if value}
    return make_node_object(name, labels=labels, capacity={"nvidia.com/gpu": cards})


def lws(replicas: int, size: int, cards: int = 8, key: str = RACK, **of: Any) -> Object:
    pod = make_pod("").gpu(cards).template()
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": pod}}
    annotations = {f"{LWS}/exclusive-topology": key}
    return workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec, annotations=annotations) | of


def jobset(replicas: int, parallelism: int, cards: int = 8) -> Object:
    spec = {"parallelism": parallelism, "template": make_pod("").gpu(cards).template()}
    jobs = [{"name": "w", "replicas": replicas, "template": {"spec": spec}}]
    annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
    return workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs}, annotations=annotations)


def checked(folder: Path, content: Object, *nodes: Object) -> list[Object]:
    file = folder / "cluster.json"
    file.write_text(as_list(*nodes))
    return lines(run_here("check", "-f", "-", "--cluster", file, "-o", "json", stdin=as_list(content)).output)


def verdicts(found: list[Object]) -> list[tuple[str, int]]:
    return [(each["verdict"], each["fits"]) for each in found]


TWO_RACKS = [rack_node(f"{rack}-{n}", rack) for rack in ("r1", "r2") for n in (1, 2)]


@pytest.mark.parametrize("make", [lws, jobset], ids=["LeaderWorkerSet", "JobSet"])
def test_each_group_has_a_rack_of_its_own(tmp_path: Path, make: Any) -> None:
    assert verdicts(checked(tmp_path, make(2, 2), *TWO_RACKS)) == [("Feasible", 2), ("Feasible", 2)]
    leaders, followers = checked(tmp_path, make(3, 2, 4), *TWO_RACKS)
    assert (leaders["verdict"], leaders["fits"]) == ("Waiting", 2)
    assert (followers["verdict"], followers["fits"]) == ("Unknown", 2)


@pytest.mark.parametrize("make", [lws, jobset], ids=["LeaderWorkerSet", "JobSet"])
def test_a_rack_that_is_too_small_for_the_group_of_its_leader(tmp_path: Path, make: Any) -> None:
    full = rack_node("r2-3", "r2"), make_pod("x").node_name("r2-3").gpu(8).obj() | {"kind": "Pod", "apiVersion": "v1"}

    leaders, followers = checked(tmp_path, make(1, 3), *TWO_RACKS, *full)

    assert (leaders["verdict"], followers["verdict"], followers["fits"]) == ("Feasible", "Waiting", 1)
    assert "node(s) didn't match Pod's node affinity/selector" in followers["message"]
    assert followers["suggestions"] == []


@pytest.mark.parametrize("make", [lws, jobset], ids=["LeaderWorkerSet", "JobSet"])
def test_a_group_that_no_rack_could_hold_is_infeasible(tmp_path: Path, make: Any) -> None:
    _, followers = checked(tmp_path, make(1, 3), *TWO_RACKS)

    assert followers["verdict"] == "Infeasible"
    assert followers["message"].endswith(
        f"No domain of {RACK} could hold the 3 pods of a group: the largest would hold 2 if empty."
    )


@pytest.mark.parametrize("make", [lws, jobset], ids=["LeaderWorkerSet", "JobSet"])
@pytest.mark.parametrize("size", [2, 9])
def test_nothing_is_judged_of_the_groups_of_an_object_without_any(tmp_path: Path, make: Any, size: int) -> None:
    assert verdicts(checked(tmp_path, make(0, size), *TWO_RACKS)) == [("Feasible", 0), ("Feasible", 0)]


def test_followers_without_a_leader_are_not_created(tmp_path: Path) -> None:
    leaders, followers = checked(tmp_path, lws(1, 2), rack_node("a", "r1", 4), rack_node("bare", ""))

    assert leaders["verdict"] == "Infeasible"
    assert (followers["verdict"], followers["message"]) == (
        "Unknown",
        "it is not created before the leader of its group has a node",
    )


def test_it_is_unknown_which_of_two_racks_the_leader_gets(tmp_path: Path) -> None:
    small = rack_node("r3-1", "r3")

    _, followers = checked(tmp_path, lws(1, 2), *TWO_RACKS, small)

    assert followers["verdict"] == "Unknown"
    assert followers["message"] == (
        f"the leader gets one of 3 domains of {RACK} with equal scores by chance: r1 has room for 1 of its 1 "
        "followers, r3 for 0"
    )


def test_the_rack_of_a_later_leader_is_chosen_beside_the_earlier_leaders(tmp_path: Path) -> None:
    """The first leader takes the rack of large nodes. For the second one, it is a matter of chance."""
    large, small = [rack_node(f"r1-{n}", "r1") for n in (1, 2)], {"cpu": 1, CARD: 8}
    racks = {"r2-1": "r2", "r3-1": "r3", "r3-2": "r3"}
    others = [make_node_object(name, labels={RACK: rack}, capacity=small) for name, rack in racks.items()]

    (_, one), (_, two) = (checked(tmp_path, lws(number, 2), *large, *others) for number in (1, 2))

    assert one["verdict"] == "Feasible"
    assert two["message"] == (
        f"the leader gets one of 2 domains of {RACK} with equal scores by chance: r3 has room for 1 of its 1 "
        "followers, r2 for 0"
    )


@pytest.mark.parametrize("make", [lws, jobset], ids=["LeaderWorkerSet", "JobSet"])
@pytest.mark.parametrize(("size", "verdict"), [(3, "Waiting"), (4, "Infeasible")])
def test_it_is_known_if_none_of_the_racks_that_the_leader_may_get_has_room(
    tmp_path: Path, make: Any, size: int, verdict: str
) -> None:
    """Of racks with room for 2, 1 and 1 of the pods, the first one has room for 3 if empty."""
    racks = [rack_node(f"r1-{n}", "r1") for n in (1, 2, 3)] + [rack_node(name, name) for name in ("r2", "r3")]
    running = make_pod("x").node_name("r1-3").gpu(8).obj() | {"kind": "Pod", "apiVersion": "v1"}

    _, followers = checked(tmp_path, make(1, size), *racks, running)

    assert followers["verdict"] == verdict


def test_capacity_does_not_count_further_pods_of_exclusive_groups(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(*TWO_RACKS))

    outcome = run_here("capacity", "-f", "-", "--cluster", file, "-o", "json", stdin=as_list(lws(1, 2)))

    assert all("use check" in each["endedEarly"] for each in lines(outcome.output))


@pytest.mark.parametrize(
    ("size", "verdict", "warning"),
    [
        (2, "Feasible", ""),
        (3, "Infeasible", "leader 2 of 2, worker 1 of 4 replicas fit now; the next worker: "),
    ],
)
def test_the_webhook_judges_the_groups(size: int, verdict: str, warning: str) -> None:
    cluster = view([rack_node(f"{rack}-{n}", rack, usage="training") for rack in ("r1", "r2") for n in (1, 2)])
    content = lws(2, size)
    content["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template(8)

    found = admitted(content, cluster)

    assert isinstance(found, Advised)
    assert found.placement is not None
    assert found.placement.verdict == verdict
    assert (warning in "".join(warnings_of(found))) is True


@pytest.mark.parametrize(("size", "verdict"), [(2, "Unknown"), (3, "Infeasible")])
def test_the_webhook_does_not_know_which_rack_a_leader_gets_but_that_none_could_hold_its_group(
    size: int, verdict: str
) -> None:
    racks = {"r1-1": "r1", "r1-2": "r1", "r2-1": "r2"}
    cluster = view([rack_node(name, rack, usage="training") for name, rack in racks.items()])
    content = lws(1, size)
    content["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template(8)

    found = admitted(content, cluster)

    assert isinstance(found, Advised)
    assert found.placement is not None
    assert found.placement.verdict == verdict


def test_the_webhook_counts_at_least_the_followers_that_fit_if_the_rack_is_not_known() -> None:
    racks = {"r1-1": "r1", "r1-2": "r1", "r2-1": "r2"}
    content = lws(1, 2)
    content["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template(8)

    cluster = view([rack_node(name, rack, usage="training") for name, rack in racks.items()])

    (warning,) = warnings_of(admitted(content, cluster))
    assert warning.startswith("placement check: Unknown: at least leader 1 of 1, worker 1 of 1 replicas fit now; ")


def test_the_webhook_counts_no_follower_whose_leader_has_no_node() -> None:
    content = lws(1, 3)
    content["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template(8)

    found = admitted(content, view([rack_node("a", "r1", 4, usage="training")]))

    assert isinstance(found, Advised)
    assert found.placement is not None
    assert found.placement.verdict == "Infeasible"
    assert "leader 0 of 1, worker 0 of 2 replicas fit now; the first leader: " in warnings_of(found)[0]


def test_the_webhook_suggests_nothing_for_groups_of_which_each_has_a_rack() -> None:
    """With the card that is misspelt, two of the three groups would have a rack."""
    card = {"nvidia.com/gpu.product": "NVIDIA-H20"}
    racks = [rack_node(rack, rack, usage="training") for rack in ("r1", "r2")]
    for each in racks:
        each["metadata"]["labels"] |= card
    content = lws(3, 1)
    content["spec"]["leaderWorkerTemplate"]["workerTemplate"] = template(4, gpu_product="NVIDIA-H2O")

    warnings = warnings_of(admitted(content, view(racks)))

    assert [each.partition(": ")[0] for each in warnings] == ["gpu-product", "placement check"]


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_kube_scheduler_agrees(cluster: Cluster, seed: int) -> None:
    """The pods are those that the webhook and the controllers of LeaderWorkerSet make, written here from its source."""
    random = Random(seed)
    for rack in range(3):
        cards = random.choice([4, 8])
        cluster.make_nodes(*(rack_node(f"n{rack}-{n}", f"r{rack}", cards) for n in range(random.randint(1, 3))))
    replicas, size, cards = random.randint(1, 3), random.randint(2, 3), random.choice([2, 4])
    content = lws(replicas, size, cards)
    content["metadata"]["namespace"] = cluster.namespace
    config = cluster.control_plane.kubeconfig
    arguments = ("check", "-f", "-", "--as-written", "--kubeconfig", config, "-o", "json")
    leaders, workers = lines(run_here(*arguments, stdin=as_list(content)).output)

    bound = 0
    domains = {}
    for index in range(replicas):
        pod = cluster.create(_leader(cluster.namespace, index, cards)).object
        if index >= leaders["fits"]:
            assert "didn't" in cluster.wait_unschedulable(pod) or "Insufficient" in cluster.wait_unschedulable(pod)
            break
        node = cluster.wait_bound(pod)
        domains[index] = cluster.client.get("Node", node)["metadata"]["labels"][RACK]
    assert len(set(domains.values())) == leaders["fits"]
    for index, domain in domains.items():
        for worker in range(1, size):
            made = make_pod(f"web-{index}-{worker}").gpu(cards).obj()
            made["spec"]["nodeSelector"] = {RACK: domain}
            pod = cluster.create(made).object
            if workers["verdict"] == "Feasible" or bound < workers["fits"]:
                cluster.wait_bound(pod)
                bound += 1
            elif workers["verdict"] in ("Waiting", "Infeasible"):
                cluster.wait_unschedulable(pod)
                return


def _leader(namespace: str, index: int, cards: int) -> Object:
    key, group = f"{LWS}/group-key", hashlib.sha1(f"{namespace}/web-{index}".encode()).hexdigest()
    own = {"key": key, "operator": "In", "values": [group]}
    others = [{"key": key, "operator": "Exists"}, {**own, "operator": "NotIn"}]
    made = make_pod(f"web-{index}").label(key, group).gpu(cards).obj()
    made["spec"]["affinity"] = {
        kind: {REQUIRED: [{"labelSelector": {"matchExpressions": terms}, "topologyKey": RACK}]}
        for kind, terms in (("podAffinity", [own]), ("podAntiAffinity", others))
    }
    return made

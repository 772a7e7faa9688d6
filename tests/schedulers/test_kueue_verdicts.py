"""The verdicts on what Kueue admits by quota, compared with what the real Kueue admits and kube-scheduler binds."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.client import Answer, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.build import Built
from tests.schedulers.groups import IN_PART, Gangs, said
from tests.schedulers.installed import kueue as kueue_program
from tests.schedulers.installed.kueue import GATES, GPU, WITH_KUEUE, Kueue, gated, gates
from tests.schedulers.jobs import bound, gpu_node, wait_bound_all, worker
from tests.support.admission import DOMAIN, USAGE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.on_cluster.registered import Webhook
from tests.support.programs.command import run_here
from webhook.kube.names import HOSTNAME_LABEL

_PLURALS = ("localqueues", "clusterqueues", "resourceflavors", "topologies", "workloads")
KINDS = ",".join(f"{each}.kueue.x-k8s.io" for each in _PLURALS)
ONE_BY_ONE = "scheduler default-scheduler starts pods one by one"


def make_gangs(cluster: Cluster, webhook: Webhook) -> Gangs:
    """Return kube-scheduler behind Kueue, whose pods are of the queue `research`."""
    webhook.world.policy = WITH_KUEUE
    return Gangs("Kueue", "default-scheduler", cluster, webhook, KINDS, lambda *_: None, (("queue", "research"),))


@pytest.fixture
def gangs(cluster: Cluster, webhook: Webhook, kueue: Kueue) -> Gangs:
    return make_gangs(cluster, webhook)


def calls(gangs: Gangs, name: str) -> int:
    """Return how often the API server has called the webhook for the pod."""
    return sum(each.name == name for each in gangs.webhook.world.records)


def test_gates_of_kueue_are_no_reason_of_the_nodes_at_the_second_call(gangs: Gangs, kueue: Kueue) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    kueue.make_queue("research", gpus=8)

    answers = [*gangs.create(4, gang_size=4), gangs.cluster.create(worker("single", queue="research"))]

    assert gates([each.object for each in answers]) == GATES
    assert [calls(gangs, each.object["metadata"]["name"]) for each in answers] == [2] * 5
    assert [said(each) for each in answers] == [[]] * 5
    assert wait_bound_all(gangs.cluster, [each.object for each in answers]) == ["n1"] * 5


def test_nodes_without_room_are_named_once_beside_the_gates(gangs: Gangs, kueue: Kueue) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 1))
    gangs.cluster.create(make_pod("other").node_name("n1").gpu(1))
    kueue.make_queue("research", gpus=8)
    gangs.look()

    answer = gangs.cluster.create(worker("single", queue="research"))

    assert calls(gangs, "single") == 2
    expected = f"placement check: Waiting: 0/1 nodes are available: 1 Insufficient {GPU}. "
    expected += "Not predicted: when Kueue admits the pod, by quota."
    assert [each for each in said(answer) if "suggestion" not in each] == [expected]
    assert GPU in gangs.cluster.wait_unschedulable(answer.object)


def with_quota(kueue: Kueue, gpus: int, borrowing: int | None) -> None:
    """Make the queue of a cohort that another queue of eight cards is in; it can borrow so many of them."""
    if borrowing is None:
        kueue.make_queue("research", gpus)
        return
    kueue.make_queue("lender", 8, cohort="all")
    kueue.make_queue("research", gpus, cohort="all", borrowing=borrowing, flavor="lender")


@pytest.mark.parametrize(
    ("gpus", "borrowing", "starts"), [(3, None, False), (4, None, True), (2, 1, False), (2, 2, True)]
)
def test_quota_with_what_it_can_borrow_must_hold_the_whole_gang(
    gangs: Gangs, kueue: Kueue, gpus: int, borrowing: int | None, starts: bool
) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    with_quota(kueue, gpus, borrowing)

    answers = gangs.create(4, gang_size=4)

    never = "Kueue: the quota of ClusterQueue research can never hold the 4 pods of gang bert"
    most = gpus + (borrowing or 0)
    assert [said(each) for each in answers] == [[] if starts else [f"{never}: {GPU} 4 of {most}"]] * 4
    if starts:
        wait_bound_all(gangs.cluster, [each.object for each in answers])
    else:
        assert GPU in kueue.wait_held("bert")
        assert len(gated(gangs.cluster.pods())) == 4


def job_of(pods: int, name: str = "bert", pod: PodBuilder | None = None) -> Object:
    template = (pod or worker("unused")).spec(restartPolicy="Never").template()
    spec = {"parallelism": pods, "completions": pods, "suspend": True, "template": template}
    labels = {"kueue.x-k8s.io/queue-name": "research"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.mark.parametrize(("gpus", "starts"), [(2, False), (4, True)])
def test_quota_must_hold_all_pods_of_a_job(gangs: Gangs, kueue: Kueue, gpus: int, starts: bool) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    kueue.make_queue("research", gpus)
    gangs.look()

    answer = gangs.cluster.create(job_of(4))

    never = "Kueue: the quota of ClusterQueue research can never hold the 4 pods of gang bert"
    assert said(answer) == ([] if starts else [f"{never}: {GPU} 4 of {gpus}"])
    if starts:
        wait_for(lambda: not is_suspended(gangs), "the Job being resumed")
    else:
        assert GPU in kueue.wait_held("job-bert")
        assert is_suspended(gangs)


def is_suspended(gangs: Gangs, name: str = "bert") -> bool:
    job = gangs.cluster.client.get("Job", name, gangs.cluster.namespace, api_version="batch/v1")
    return job["spec"]["suspend"] is True


def in_part(answers: list[Answer]) -> set[str]:
    """Return the warnings of a start in part."""
    return {text for each in answers for text in said(each, IN_PART)}


def test_gang_that_the_quota_holds_and_the_nodes_do_not_starts_in_part(gangs: Gangs, kueue: Kueue) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 4))
    gangs.cluster.create(make_pod("other").node_name("n1").gpu(2))
    kueue.make_queue("research", gpus=8)

    answers = gangs.create(4, gang_size=4)

    pods = [each.object for each in answers]
    assert in_part(answers) == {
        f"2 of the 4 pods of gang bert {IN_PART}, and two such gangs can deadlock: {ONE_BY_ONE}"
    }
    wait_for(lambda: bound(gangs.cluster, pods) == 2, "two bound pods")
    waiting = [each for each in gangs.cluster.pods() if not each["spec"].get("nodeName")]
    assert [GPU in gangs.cluster.wait_unschedulable(each) for each in waiting] == [True] * 2


def test_flavor_whose_labels_no_node_has_is_named_and_its_pods_find_no_node(gangs: Gangs, kueue: Kueue) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    kueue.make_queue("research", gpus=8, labels={"pool": "spot"})
    gangs.look()

    answer = gangs.cluster.create(worker("single", queue="research"))

    assert said(answer) == ["Kueue: no node has the labels of flavor research (pool=spot): its pods find no node"]
    assert "node affinity/selector" in gangs.cluster.wait_unschedulable(answer.object)


@pytest.fixture
def impatient_kueue(cluster: Cluster, kueue_programs: Built, tmp_path: Path) -> Iterator[Kueue]:
    """A Kueue that waits some seconds for pods to be ready."""
    configuration = {"waitForPodsReady": {"timeout": "15s"}}
    with kueue_program.running(cluster, kueue_programs, tmp_path, **configuration) as started:
        yield started


def test_start_in_part_ends_as_the_configuration_of_kueue_says(
    cluster: Cluster, webhook: Webhook, impatient_kueue: Kueue
) -> None:
    gangs = make_gangs(cluster, webhook)
    cluster.make_nodes(gpu_node("n1", 4))
    cluster.create(make_pod("other").node_name("n1").gpu(2))
    impatient_kueue.make_queue("research", gpus=8)

    answers = gangs.create(4, gang_size=4)

    pods = [each.object for each in answers]
    wait_for(lambda: bound(cluster, pods) == 2, "the start in part")
    kubeconfig = cluster.control_plane.kubeconfig
    given = ("--kubeconfig", kubeconfig, "-n", cluster.namespace, "--older-than", "0s", "-o", "json")
    (held,) = json.loads(run_here("reclaim", *given).output)["held"]

    evicts = "until Kueue evicts them after 15s (waitForPodsReady)"
    assert in_part(answers) == {f"2 of the 4 pods of gang bert {IN_PART}, {evicts}: {ONE_BY_ONE}"}
    assert (held["class"], held["cards"], held["why"]) == (
        "partial-gang",
        2,
        "2 of 4 pods of gang bert run, 2 wait",
    )
    assert held["freedBy"].endswith("; Kueue evicts it after 15s")
    assert impatient_kueue.wait_evicted("bert") == "PodsReadyTimeout"


TRAINING = {"training": {"nodeUsage": {"allow": ["training"]}}}
RACK, REQUIRED = "example.com/rack", "kueue.x-k8s.io/podset-required-topology"


def in_racks(gangs: Gangs, kueue: Kueue) -> None:
    """Make two racks with room for six and for four pods of one card, and a queue that looks at them.

    A node of the first rack has no label of the lowest level: Kueue does not see it.
    """
    nodes = [("n1", "a", 4), ("n2", "a", 2), ("n3", "b", 4), ("unnamed", "a", 8)]
    for name, rack, cards in nodes:
        node = gpu_node(name, cards)
        node["metadata"]["labels"][RACK] = rack
        if name == "unnamed":
            del node["metadata"]["labels"][HOSTNAME_LABEL]
        gangs.cluster.make_nodes(node)
    kueue.make_queue("research", gpus=16, labels={USAGE: "training"}, levels=(RACK, HOSTNAME_LABEL))


def in_one_rack(gangs: Gangs, pods: int) -> list[Answer]:
    """Return the answers to the pods of a gang that has to run in one rack."""
    gangs.look()
    gang = [worker(f"bert-{number}", queue="research", gang="bert", gang_size=pods) for number in range(pods)]
    return [gangs.cluster.create(each.annotate(REQUIRED, RACK)) for each in gang]


@pytest.mark.parametrize(("pods", "starts"), [(6, True), (7, False)])
def test_gang_that_no_rack_holds_is_not_admitted(gangs: Gangs, kueue: Kueue, pods: int, starts: bool) -> None:
    in_racks(gangs, kueue)

    answers = in_one_rack(gangs, pods)

    if starts:
        assert [said(each) for each in answers] == [[]] * pods
        assert {*wait_bound_all(gangs.cluster, [each.object for each in answers])} == {"n1", "n2"}
        return
    for each in answers:
        assert f"no domain of {RACK} could hold 7 pods: a would hold 6 if it were empty" in said(each)[0]
    assert "allows to fit only 6 out of 7 pod(s)" in kueue.wait_held("bert")


@pytest.mark.parametrize(("pods", "starts"), [(6, True), (7, False)])
def test_job_whose_pods_no_rack_holds_is_not_resumed(gangs: Gangs, kueue: Kueue, pods: int, starts: bool) -> None:
    in_racks(gangs, kueue)
    objects = {"mutateTemplates": True}
    gangs.webhook.world.policy = policy_with(workloadTypes=TRAINING, queueing="kueue", workloadObjects=objects)
    gangs.look()

    answer = gangs.cluster.create(job_of(pods, pod=worker("unused", within=RACK, within_mode="required")))

    if starts:
        assert said(answer) == []
        wait_for(lambda: not is_suspended(gangs), "the Job being resumed")
        return
    assert f"no domain of {RACK} could hold 7 pods: a would hold 6 if it were empty" in said(answer)[0]
    assert "allows to fit only 6 out of 7 pod(s)" in kueue.wait_held("job-bert")
    assert is_suspended(gangs)


def test_job_without_a_name_is_resumed_without_a_domain(gangs: Gangs, kueue: Kueue) -> None:
    """Its template is not patched, and Kueue does not read the annotations of its pods."""
    in_racks(gangs, kueue)
    objects = {"mutateTemplates": True}
    gangs.webhook.world.policy = policy_with(workloadTypes=TRAINING, queueing="kueue", workloadObjects=objects)
    gangs.look()
    pod = worker("bert-0", within=RACK, within_mode="required", gang_size=7)
    pod = pod.spec(tolerations=[{"operator": "Exists"}])
    job = job_of(7, pod=pod)
    job["metadata"]["generateName"] = f"{job['metadata'].pop('name')}-"

    made = gangs.cluster.create(job)
    name, uid = made.object["metadata"]["name"], made.object["metadata"]["uid"]
    wait_for(lambda: not is_suspended(gangs, name), "the Job being resumed")
    of_job = gangs.cluster.create(pod.owner("Job", name, api_version="batch/v1", uid=uid))

    unpatched = "Kueue reads it from the pod template, which is only patched in a new object with a name"
    for each in (made, of_job):
        assert f"{DOMAIN}/within has no effect: {unpatched}" in each.warnings
        assert not any("could hold" in text for text in each.warnings)
    assert REQUIRED not in of_job.object["metadata"]["annotations"]


@pytest.mark.parametrize(("pods", "starts"), [(4, True), (5, False)])
def test_room_that_is_assigned_to_a_job_is_taken(gangs: Gangs, kueue: Kueue, pods: int, starts: bool) -> None:
    in_racks(gangs, kueue)
    gangs.look()
    pod = worker("unused").annotate(REQUIRED, RACK).spec(tolerations=[{"operator": "Exists"}])
    gangs.cluster.create(job_of(5, "other", pod))
    wait_for(lambda: not is_suspended(gangs, "other"), "the Job being resumed")

    answers = in_one_rack(gangs, pods)

    if starts:
        assert [said(each) for each in answers] == [[]] * pods
        assert {*wait_bound_all(gangs.cluster, [each.object for each in answers])} == {"n3"}
        return
    for each in answers:
        assert f"no domain of {RACK} has room for the 5 pods of gang bert now: b has the most, for 4" in said(each)[0]
    assert "allows to fit only 4 out of 5 pod(s)" in kueue.wait_held("bert")

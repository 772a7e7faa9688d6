"""A job whose pods must run together is advised about all of them, and warned of a start in part."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from jsonpatch import apply_patch

from tests.support.admission import DOMAIN, TYPE, USAGE, make_request, policy_with
from tests.support.objects.batch_objects import (
    KAI_TOPOLOGY,
    KUEUE_TOPOLOGY,
    cluster_queue,
    hyper_node,
    kai_group,
    local_queue,
    named,
    pod_group,
    topology,
    volcano_configuration,
    volcano_group,
    volcano_queue,
)
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workloads import APP, SAMPLES, Object, Sample
from tests.support.views import made_anew
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Advised
from webhook.backends.references import GangRequest, Within
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import never
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.objects.admission import admit_request
from webhook.objects.gangs import fit_of_object
from webhook.objects.object_gang import TemplateGang, gang_of_object, gang_of_pod
from webhook.placement.framework.result import Placement
from webhook.placement.replicas.replicas import Replicas
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, assume
from webhook.policy.policy import Policy

TF_JOB, VOLCANO_JOB, DEPLOYMENT, STATEFUL_SET, JOB, LEADER_WORKER_SET, JOB_SET = (
    next(each for each in SAMPLES if (each.group, each.kind) == key)
    for key in (
        ("kubeflow.org", "TFJob"),
        ("batch.volcano.sh", "Job"),
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("batch", "Job"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("jobset.x-k8s.io", "JobSet"),
    )
)
TRAINING = {"nodeUsage": {"allow": ["training"]}}
KUBE_SCHEDULER = policy_with(workloadTypes={"training": TRAINING})
FITS = (
    "placement check: Waiting: 4 of {} replicas fit now; "
    "the next: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
)
PARTIAL = (
    "placement check: {} of the {} pods that must run together would start and hold what they request while the others "
    "wait, and two such jobs can deadlock: scheduler default-scheduler starts pods one by one"
)


def on_one_node(cards: int, free: int) -> list[Object]:
    """Return a node with a running pod that leaves so many cards `free`."""
    node = make_node_object("a", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": cards})
    return [node, make_pod("other").gpu(cards - free).node_name("a").obj()]


def view(cards: int, free: int) -> ClusterView:
    found = snapshot_from_documents(Document("cluster", each) for each in on_one_node(cards, free))
    return ClusterView(found, scheduler_for(KUBE_SCHEDULER))


def job(sample: Sample, pods: int, **annotations: str) -> Object:
    pod = make_pod("").gpu(1).label("app", APP["app"]).annotate(TYPE, "training")
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return sample.object(pod.template(), pods)


def advised(content: Object, cluster: ClusterView, policy: Policy = KUBE_SCHEDULER) -> Advised:
    group, _, _ = content["apiVersion"].rpartition("/")
    fields: dict[str, Any] = {"kind": content["kind"], "group": group, "resource": ""}
    verdict = admit_request(make_request(content, namespace="team-a", **fields), policy, cluster)
    assert isinstance(verdict, Advised)
    return verdict


def warnings(verdict: Advised) -> list[str]:
    return [each for each in verdict.warnings if "suggestion" not in each and "has no effect" not in each]


def test_scheduler_of_gangs_lacks_an_annotation_to_start_a_job_whole() -> None:
    policy = policy_with(workloadTypes={"training": TRAINING | {"schedulerName": "volcano"}})

    found = warnings(advised(job(TF_JOB, 8), view(cards=8, free=4), policy))

    assert found[-1].endswith(f"scheduler volcano starts pods one by one without {DOMAIN}/gang")


def test_job_of_an_operator_that_would_start_in_part_is_warned_of() -> None:
    verdict = advised(job(TF_JOB, 8), view(cards=8, free=4))

    assert warnings(verdict) == [FITS.format(8), PARTIAL.format(4, 8)]
    assert verdict.placement is not None
    gang = verdict.placement.gang
    assert gang is not None
    assert (gang.size, gang.fit, gang.placed) == (8, 4, 0)


def test_job_that_is_larger_than_the_cluster_is_infeasible() -> None:
    verdict = advised(job(TF_JOB, 9), view(cards=8, free=4))

    assert warnings(verdict)[0].startswith(
        "placement check: Infeasible: no more than 8 of the 9 pods that must run together would fit on an empty "
        "cluster; 4 of 9 replicas fit now; the next: 0/1 nodes"
    )
    assert verdict.placement is not None
    assert verdict.placement.verdict == "Infeasible"


def test_room_of_one_role_is_none_for_another() -> None:
    """One role has room for 8 pods and asks for one; of the other, one of two pods fits."""
    content = job(TF_JOB, 1)
    (replicas,) = content["spec"]["tfReplicaSpecs"].values()
    large = copy.deepcopy(replicas)
    for amounts in large["template"]["spec"]["containers"][0]["resources"].values():
        amounts["nvidia.com/gpu"] = "5"
    content["spec"]["tfReplicaSpecs"] = {"PS": replicas, "Worker": large | {"replicas": 2}}

    verdict = advised(content, view(cards=8, free=8))

    assert "no more than 2 of the 3 pods that must run together would fit" in warnings(verdict)[0]


def test_role_that_alone_never_fits_keeps_the_others_from_running() -> None:
    content = job(TF_JOB, 1)
    (replicas,) = content["spec"]["tfReplicaSpecs"].values()
    large = copy.deepcopy(replicas)
    for amounts in large["template"]["spec"]["containers"][0]["resources"].values():
        amounts["nvidia.com/gpu"] = "16"
    content["spec"]["tfReplicaSpecs"] = {"PS": replicas, "Worker": large | {"replicas": 2}}

    assert warnings(advised(content, view(cards=8, free=8)))[0].startswith(
        "placement check: Infeasible: no more than 1 of the 3 pods that must run together would fit on an empty "
        "cluster; PS 1 of 1, Worker 0 of 2 replicas fit now; the first Worker: 0/1 nodes"
    )


def test_job_whose_least_number_of_pods_fits_can_start() -> None:
    content = job(TF_JOB, 8)
    content["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 4}}

    assert warnings(advised(content, view(cards=8, free=4))) == [FITS.format(8)]


def test_scheduler_of_gangs_starts_no_job_in_part() -> None:
    assert [each for each in warnings(advised(job(VOLCANO_JOB, 8), view(cards=8, free=4))) if "deadlock" in each] == []


KUEUE = policy_with(workloadTypes={"training": TRAINING}, queueing="kueue")
VOLCANO = policy_with(workloadTypes={"training": {**TRAINING, "schedulerName": "volcano"}})
KAI = policy_with(workloadTypes={"training": {**TRAINING, "schedulerName": "kai-scheduler"}})


@pytest.mark.parametrize(
    ("sample", "policy", "annotations", "starts_whole"),
    [
        pytest.param(TF_JOB, VOLCANO, {}, False, id="Volcano knows no gang"),
        pytest.param(TF_JOB, VOLCANO, {"gang": "g", "gang_size": "8"}, True, id="Volcano knows the PodGroup"),
        pytest.param(JOB, KAI, {"gang_size": "8"}, False, id="KAI knows no gang"),
        pytest.param(JOB, KAI, {"gang_size": "8", "gang": "g"}, False, id="KAI makes a PodGroup for each pod"),
        pytest.param(TF_JOB, KAI, {}, True, id="KAI makes a gang of a TFJob"),
        pytest.param(TF_JOB, KUEUE, {}, False, id="Kueue has no queue"),
        pytest.param(JOB, KUEUE, {"gang": "g", "gang_size": "8"}, False, id="Kueue has a gang and no queue"),
        pytest.param(JOB, KUEUE, {"queue": "q", "gang_size": "8"}, False, id="Kueue has a queue and no gang"),
        pytest.param(JOB, KUEUE, {"queue": "q", "gang": "g", "gang_size": "8"}, False, id="Kueue holds by quota alone"),
        pytest.param(VOLCANO_JOB, VOLCANO, {"gang_size": "8"}, True, id="a Volcano Job has a PodGroup"),
        pytest.param(VOLCANO_JOB, KUEUE, {}, True, id="a Volcano Job is for Volcano"),
    ],
)
def test_job_starts_whole_only_if_its_scheduler_or_kueue_knows_its_gang(
    sample: Sample, policy: Policy, annotations: dict[str, str], starts_whole: bool
) -> None:
    found = warnings(advised(job(sample, 8, **annotations), view(cards=8, free=4), policy))

    assert any("two such jobs can deadlock" in each for each in found) is not starts_whole


def queued(content: Object, queue: str = "q") -> Object:
    content["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    return content


@pytest.mark.parametrize(
    ("annotations", "starts_whole"),
    [
        pytest.param({}, False, id="by quota alone"),
        pytest.param({"kueue.x-k8s.io/podset-required-topology": "rack"}, True, id="by the topology of nodes"),
    ],
)
def test_job_that_kueue_admits_starts_whole_only_if_kueue_looks_at_nodes(
    annotations: dict[str, str], starts_whole: bool
) -> None:
    content = queued(job(TF_JOB, 8))
    (replicas,) = content["spec"]["tfReplicaSpecs"].values()
    replicas["template"]["metadata"]["annotations"] |= annotations

    found = warnings(advised(content, view(cards=8, free=4)))

    assert any("two such jobs can deadlock" in each for each in found) is not starts_whole


@pytest.mark.parametrize(
    ("is_queued", "timeout", "end"),
    [
        (False, "", "and two such jobs can deadlock"),
        (False, "5m", "and two such jobs can deadlock"),
        (True, "", "and two such jobs can deadlock"),
        (True, "5m", "until Kueue evicts them after 5m (waitForPodsReady)"),
    ],
)
def test_only_a_job_that_kueue_admits_ends_after_the_time_that_kueue_waits(
    is_queued: bool, timeout: str, end: str
) -> None:
    cluster = view(cards=8, free=4)
    evidence = SchedulerEvidence(frozenset({"kueue.x-k8s.io"}), "", timeout)
    cluster = replace(cluster, snapshot=replace(cluster.snapshot, scheduler_evidence=evidence))
    content = queued(job(TF_JOB, 8)) if is_queued else job(TF_JOB, 8)

    assert warnings(advised(content, cluster))[-1] == PARTIAL.format(4, 8).replace(
        "and two such jobs can deadlock", end
    )


@pytest.mark.parametrize("annotations", [{}, {"gang_size": "4"}, {"gang_size": "4", "gang": "g"}], ids="-".join)
@pytest.mark.parametrize("is_kept", [False, True])
def test_job_whose_own_annotation_keeps_it_in_a_domain_is_unknown_with_and_without_a_gang(
    annotations: dict[str, str], is_kept: bool
) -> None:
    """The policy requests no domain, and the topology of the annotation is not counted."""
    content = queued(job(JOB, 4, **annotations))
    if is_kept:
        own = content["spec"]["template"]["metadata"]["annotations"]
        own["kueue.x-k8s.io/podset-required-topology"] = "rack"

    placement = advised(content, view(cards=8, free=4)).placement

    assert placement is not None
    assert placement.verdict == ("Unknown" if is_kept else "Feasible")
    assert ("podset-required-topology" in placement.message) is is_kept


GPU = "nvidia.com/gpu"


def about_queues(content: Object, policy: Policy, *objects: Object) -> list[str]:
    """Return the warnings about queues of an object in a cluster with `objects` and room for all of its pods."""
    node = make_node_object("a", labels={USAGE: "training"}, capacity={GPU: 64})
    cluster = ClusterView(made_anew([node, *objects]), scheduler_for(policy))
    return [each for each in advised(content, cluster, policy).warnings if each.startswith(("Volcano: ", "Kueue: "))]


@pytest.mark.parametrize(
    ("least", "queue", "found"),
    [
        pytest.param(4, volcano_queue("a", capability={GPU: "4"}), [], id="room for all"),
        pytest.param(
            4,
            volcano_queue("a", capability={GPU: "2"}),
            [f"Volcano: with the 4 pods of gang web, queue a exceeds its capability: {GPU} 4 of 2"],
            id="too small",
        ),
        pytest.param(2, volcano_queue("a", capability={GPU: "2"}), [], id="room for the least number"),
        pytest.param(
            4, volcano_queue("a", state="Closed"), ["Volcano: queue a is Closed: it starts no pods"], id="closed"
        ),
        pytest.param(
            4,
            volcano_queue("b"),
            ["Volcano: queue a does not exist: the pod waits without a condition or an Event until it does"],
            id="missing",
        ),
    ],
)
def test_queue_of_a_volcano_job_is_that_of_its_spec(least: int, queue: Object, found: list[str]) -> None:
    content = job(VOLCANO_JOB, 4)
    content["spec"] |= {"queue": "a", "minAvailable": least}

    assert about_queues(content, VOLCANO, queue) == found


@pytest.mark.parametrize(("quota", "borrowing", "fits"), [("4", "0", True), ("2", "0", False), ("2", "2", True)])
def test_quota_of_kueue_is_for_all_pods_of_a_job(quota: str, borrowing: str, fits: bool) -> None:
    queue = cluster_queue("cards", {"spot": {GPU: quota}}, cohort="all", borrowing={GPU: borrowing})

    found = about_queues(queued(job(JOB, 4)), KUBE_SCHEDULER, local_queue("q", namespace="team-a"), queue)

    never = "Kueue: the quota of ClusterQueue cards can never hold the 4 pods of gang web"
    assert found == ([] if fits else [f"{never}: {GPU} 4 of 2"])


@pytest.mark.parametrize(
    ("pods", "demand"),
    [
        (0, "this pod: nvidia.com/gpu 1"),
        (1, "the 1 pod of gang web: nvidia.com/gpu 1"),
        (3, "the 3 pods of gang web: nvidia.com/gpu 3"),
    ],
)
def test_quota_is_for_each_pod_of_a_job_without_pods(pods: int, demand: str) -> None:
    objects = local_queue("q", namespace="team-a"), cluster_queue("cards", {"spot": {GPU: "0"}})

    found = about_queues(queued(job(JOB, pods)), KUBE_SCHEDULER, *objects)

    assert found == [f"Kueue: the quota of ClusterQueue cards can never hold {demand} of 0"]


@pytest.mark.parametrize(
    ("of_job", "of_pods", "full"),
    [("", "", ""), ("", "b", "b"), ("a", "", "a"), ("a", "b", "a"), ("b", "a", "b")],
)
def test_queue_of_the_pods_counts_unless_the_job_has_one(of_job: str, of_pods: str, full: str) -> None:
    content = job(JOB, 4, queue=of_pods) if of_pods else job(JOB, 4)
    if of_job:
        queued(content, of_job)
    objects = [local_queue(name, name, namespace="team-a") for name in "ab"]
    objects += [cluster_queue(name, {"spot": {GPU: "0"}}) for name in "ab"]

    found = about_queues(content, KUEUE, *objects)

    assert [each.partition(" can never")[0] for each in found] == (
        [f"Kueue: the quota of ClusterQueue {full}"] if full else []
    )


def test_queue_of_a_job_that_kueue_admits_is_that_of_the_job() -> None:
    content = queued(job(JOB, 4))
    content["spec"]["template"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "of-pods"
    queue = cluster_queue("cards", {"spot": {GPU: "4"}})

    assert about_queues(content, KUBE_SCHEDULER, local_queue("q", namespace="team-a"), queue) == []


@pytest.mark.parametrize(
    ("annotations", "name"), [({"gang": "train", "gang_size": "4"}, "train"), ({"gang_size": "4"}, "web")]
)
def test_gang_has_the_name_of_the_annotation_or_that_of_the_object(annotations: dict[str, str], name: str) -> None:
    queue = cluster_queue("cards", {"spot": {GPU: "2"}})

    found = about_queues(
        queued(job(JOB, 4, **annotations)), KUBE_SCHEDULER, local_queue("q", namespace="team-a"), queue
    )

    assert found == [f"Kueue: the quota of ClusterQueue cards can never hold the 4 pods of gang {name}: {GPU} 4 of 2"]


def test_roles_of_a_job_have_the_quota_of_all_flavors_together() -> None:
    content = queued(job(TF_JOB, 3))
    (replicas,) = content["spec"]["tfReplicaSpecs"].values()
    content["spec"]["tfReplicaSpecs"] = {"PS": replicas, "Worker": replicas}
    queue = local_queue("q", namespace="team-a")

    assert (
        about_queues(content, KUBE_SCHEDULER, queue, cluster_queue("cards", {"a": {GPU: "3"}, "b": {GPU: "3"}})) == []
    )
    assert about_queues(content, KUBE_SCHEDULER, queue, cluster_queue("cards", {"a": {GPU: "5"}})) == [
        f"Kueue: the quota of ClusterQueue cards can never hold the 6 pods of gang web: {GPU} 6 of 5"
    ]


def test_pods_that_are_useful_by_themselves_are_no_gang() -> None:
    assert warnings(advised(job(DEPLOYMENT, 9), view(cards=8, free=4))) == [FITS.format(9)]


def apart(sample: Sample, replicas: int) -> Object:
    """Return an object whose pods keep off each other's hosts."""
    term = {"labelSelector": {"matchLabels": {"app": APP["app"]}}, "topologyKey": "kubernetes.io/hostname"}
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = make_pod("").gpu(1).label("app", APP["app"]).annotate(TYPE, "training").affinity(required)
    return sample.object(pod.template(), replicas)


@pytest.mark.parametrize(
    ("sample", "replicas", "verdict"),
    [
        pytest.param(STATEFUL_SET, 2, "Feasible", id="a host for each"),
        pytest.param(STATEFUL_SET, 7, "Infeasible", id="more than there are hosts"),
        pytest.param(DEPLOYMENT, 7, "Infeasible", id="of a Deployment"),
        pytest.param(JOB, 7, "Waiting", id="one after the other"),
    ],
)
def test_replicas_that_could_never_run_at_once(sample: Sample, replicas: int, verdict: str) -> None:
    nodes = [make_node_object(each, labels={USAGE: "training"}, capacity={GPU: 8}) for each in ("a", "b")]

    placement = advised(apart(sample, replicas), ClusterView(made_anew(nodes), Scheduler())).placement

    assert placement is not None
    assert placement.verdict == verdict
    assert placement.message.endswith("No more than 2 of the 7 replicas would fit on an empty cluster.") == (
        verdict == "Infeasible"
    )


def test_gated_replicas_that_keep_off_each_other_may_wait_for_nodes() -> None:
    content = apart(DEPLOYMENT, 2)
    content["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/nodes"}]

    verdict = advised(content, view(cards=8, free=8))

    assert verdict.placement is not None
    assert verdict.placement.verdict == "Waiting"


def test_annotation_makes_the_pods_of_any_object_a_gang() -> None:
    assert PARTIAL.format(4, 6) in warnings(advised(job(JOB, 8, gang="train", gang_size="6"), view(cards=8, free=4)))


@pytest.mark.parametrize(("size", "is_refused"), [("8", False), ("9", True)])
def test_pods_that_deny_refuses_are_announced(size: str, is_refused: bool) -> None:
    content = job(JOB, 9, gang="train", gang_size=size, placement_check="deny")

    found = warnings(advised(content, view(cards=8, free=4)))

    assert ("placement check: such pods are refused: placement-check is deny" in found) == is_refused


def test_templates_of_the_policy_keep_a_large_job_from_being_infeasible() -> None:
    template = {"name": "h20", "labels": {USAGE: "training"}, "capacity": {"nvidia.com/gpu": "8"}}
    policy = policy_with(workloadTypes={"training": TRAINING}, nodeTemplates=[template])

    verdict = advised(job(TF_JOB, 9), view(cards=8, free=4), policy)

    assert verdict.placement is not None
    assert verdict.placement.verdict == "Waiting"


@pytest.mark.parametrize(
    ("others", "free", "fits"),
    [
        pytest.param(0, 8, "8 of 8 replicas fit now", id="room for all"),
        pytest.param(1, 8, "PS 1 of 1, Worker 7 of 7 replicas fit now", id="the second template names the group"),
        pytest.param(
            1,
            4,
            "PS 1 of 1, Worker 3 of 7 replicas fit now; the next Worker: 0/1 nodes are unavailable: "
            "1 Insufficient nvidia.com/gpu",
            id="room for some",
        ),
    ],
)
def test_object_whose_group_needs_more_pods_than_it_has_is_infeasible(others: int, free: int, fits: str) -> None:
    content = job(TF_JOB, 8 - others, gang="g", gang_size="8")
    (alone,) = job(TF_JOB, others)["spec"]["tfReplicaSpecs"].values()
    (workers,) = content["spec"]["tfReplicaSpecs"].values()
    content["spec"]["tfReplicaSpecs"] = {**({"PS": alone} if others else {}), "Worker": workers}
    objects = *on_one_node(8, free), volcano_group("g", namespace="team-a", members=9), volcano_queue()

    verdict = advised(content, ClusterView(made_anew(objects), scheduler_for(VOLCANO)), VOLCANO)

    never = "PodGroup g needs 9 pods, and the gang has 8: it never starts"
    assert verdict.placement is not None
    assert (verdict.placement.verdict, verdict.placement.node) == ("Infeasible", None)
    (of_check,) = [each for each in warnings(verdict) if each.startswith("placement check: ")]
    assert of_check == f"placement check: Infeasible: {fits}. {never}."


def test_object_that_never_fits_keeps_its_warning_beside_a_group_of_the_policy_basic() -> None:
    policy = policy_with(
        schedulers={"default-scheduler": {"backend": "native"}},
        workloadTypes={"training": TRAINING | {"schedulerName": None}},
    )
    content = job(TF_JOB, 9, gang_size="9")
    (workers,) = content["spec"]["tfReplicaSpecs"].values()
    workers["template"]["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    basic = pod_group("g", group="scheduling.k8s.io", namespace="team-a", members=0)

    verdict = advised(content, ClusterView(made_anew([*on_one_node(8, 8), basic]), scheduler_for(policy)), policy)

    assert verdict.placement is not None
    assert "the policy basic" in verdict.placement.deny_exemption
    assert warnings(verdict)[0].startswith("placement check: Infeasible: no more than 8 of the 9 pods")


@pytest.mark.parametrize("free", [8, 4])
def test_templates_of_one_object_share_the_nodes_of_an_empty_cluster(free: int) -> None:
    """Three roles, of which each fits by itself, and which an empty cluster never holds together."""
    content = job(TF_JOB, 3)
    (replicas,) = content["spec"]["tfReplicaSpecs"].values()
    content["spec"]["tfReplicaSpecs"] = {name: copy.deepcopy(replicas) for name in ("Chief", "PS", "Worker")}

    never = warnings(advised(content, view(cards=8, free=free)))[0]
    content["spec"]["tfReplicaSpecs"].pop("PS")
    fits = warnings(advised(content, view(cards=8, free=free)))

    assert never.startswith("placement check: Infeasible: no more than 8 of the 9 pods that must run together")
    assert [each.startswith("placement check: Waiting: ") for each in fits[:1]] == ([True] if free < 6 else [])


RAY_CLUSTER, RAY_JOB = (next(each for each in SAMPLES if each.kind == kind) for kind in ("RayCluster", "RayJob"))


def ray(sample: Sample, *groups: Object) -> Object:
    """Return an object of KubeRay with a head without cards, and `groups` of pods with one card each."""
    content = job(sample, 1)
    spec = next((content["spec"][key] for key in content["spec"] if key.startswith("rayCluster")), content["spec"])
    (group,) = spec["workerGroupSpecs"]
    head = make_pod("").annotate(TYPE, "training").label("app", APP["app"]).template()
    spec["headGroupSpec"] = {"template": head}
    spec["workerGroupSpecs"] = [group | {"groupName": f"w{index}", **each} for index, each in enumerate(groups)]
    return content


@pytest.mark.parametrize("sample", [RAY_CLUSTER, RAY_JOB], ids=["RayCluster", "RayJob"])
@pytest.mark.parametrize(
    ("groups", "size"),
    [
        pytest.param([{"replicas": 9, "minReplicas": 3}], 4, id="the least number of a group"),
        pytest.param([{"replicas": 9}], 10, id="all of a group without one"),
        pytest.param([{"replicas": 3, "minReplicas": 1, "numOfHosts": 4}], 5, id="hosts of a replica"),
        pytest.param([{"replicas": 2}, {"replicas": 8, "minReplicas": 1}, {"replicas": 0}], 4, id="several groups"),
    ],
)
def test_kai_starts_a_ray_cluster_from_the_least_number_of_each_group(
    sample: Sample, groups: list[Object], size: int
) -> None:
    placement = advised(ray(sample, *groups), view(cards=16, free=1), KAI).placement
    other = advised(ray(sample, *groups), view(cards=16, free=1)).placement

    assert placement is not None
    assert placement.gang is not None
    assert (placement.gang.size, placement.verdict) == (size, "Waiting")
    assert other is not None
    assert other.gang is None


def test_ray_cluster_whose_gang_is_larger_than_the_cluster_is_infeasible_with_kai() -> None:
    never = advised(ray(RAY_CLUSTER, {"replicas": 9}), view(cards=8, free=8), KAI)
    starts = advised(ray(RAY_CLUSTER, {"replicas": 9, "minReplicas": 8}), view(cards=8, free=8), KAI)

    assert "no more than 9 of the 10 pods that must run together would fit" in warnings(never)[0]
    assert [each for each in warnings(starts) if "Infeasible" in each or "deadlock" in each] == []


@pytest.mark.parametrize("size", [{}, {"gang_size": "4"}])
def test_gang_of_an_object_and_of_its_pods_is_within_a_domain(size: dict[str, str]) -> None:
    policy = policy_with(workloadTypes={"training": TRAINING}, workloadObjects={"mutateTemplates": True})
    content, kind = job(TF_JOB, 4, within="rack", **size), policy.kinds["kubeflow.org", "TFJob"]
    cluster = view(cards=8, free=4)
    operations = advised(content, cluster, policy).operations
    role = next(iter(pod_sets(apply_patch(content, list(operations)), policy.kinds)))
    within = Within("topology.kubernetes.io/rack", is_required=False)

    gang = gang_of_pod(role.pod, policy, cluster.snapshot)
    templates = [TemplateGang(gang, False, within, 4)]
    whole = gang_of_object(content, kind, templates, "default-scheduler", policy, cluster.snapshot)

    assert (gang and gang.within) == (within if size else None)
    assert whole is not None
    assert (whole.size, whole.within) == (4, within)


def test_object_without_pods_needs_no_domain() -> None:
    content, gang = job(DEPLOYMENT, 0), GangRequest("bert", 4, "default-scheduler", starts_whole=False)
    kind, within = KUBE_SCHEDULER.kinds["apps", "Deployment"], Within("topology.kubernetes.io/rack")

    templates = [TemplateGang(gang, False, within, 0)]
    whole = gang_of_object(content, kind, templates, "default-scheduler", KUBE_SCHEDULER, Snapshot.of(()))

    assert whole == gang


def test_object_whose_first_pod_chooses_its_rack_by_chance_is_unknown() -> None:
    rack, racks = "topology.kubernetes.io/rack", {"small": 2, "large": 4}
    nodes = [
        make_node_object(name, labels={USAGE: "training", rack: name}, capacity={"nvidia.com/gpu": cards})
        for name, cards in racks.items()
    ]
    found = snapshot_from_documents(Document("cluster", each) for each in nodes)
    content = job(DEPLOYMENT, 4, gang="bert", gang_size="4", within="rack", within_mode="required")
    policy = policy_with(workloadTypes={"training": TRAINING}, workloadObjects={"mutateTemplates": True})

    advice = advised(content, ClusterView(found, scheduler_for(policy)), policy)

    assert (advice.placement and advice.placement.verdict) == "Unknown"
    chance = "the first pod of gang bert chooses one of large, small by chance; large has room for all"
    assert f"placement check: Unknown: {chance}" in warnings(advice)
    assert not [each for each in warnings(advice) if "Waiting" in each]


RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
MUTATING: dict[str, Any] = {"workloadObjects": {"mutateTemplates": True}}
OF_BACKEND = {
    "kueue": policy_with(workloadTypes={"training": TRAINING}, queueing="kueue", **MUTATING),
    "kai": policy_with(
        workloadTypes={"training": TRAINING | {"schedulerName": "kai-scheduler"}},
        schedulers={"kai-scheduler": {"backend": "kai", "topologyName": "racks"}},
        **MUTATING,
    ),
    "volcano": policy_with(
        workloadTypes={"training": TRAINING | {"schedulerName": "volcano"}},
        schedulers={"volcano": {"backend": "volcano", "tiers": {"rack": 1}}},
        **MUTATING,
    ),
}
WITH_PLUGIN = volcano_configuration("tiers:\n- plugins:\n  - name: network-topology-aware\n")
DOMAINS = {
    "kueue": (topology("racks", KUEUE_TOPOLOGY, ZONE, RACK),),
    "kai": (topology("racks", KAI_TOPOLOGY, ZONE, RACK),),
    "volcano": (WITH_PLUGIN, hyper_node("s1", 1, *named("z1")), hyper_node("s2", 1, *named("z2"))),
}


def two_racks(policy: Policy, *others: Object) -> ClusterView:
    """Return a view of two racks of one name in two zones, each with a node of four cards."""
    nodes = [
        make_node_object(zone, labels={USAGE: "training", RACK: "r1", ZONE: zone}, capacity={"nvidia.com/gpu": 4})
        for zone in ("z1", "z2")
    ]
    return ClusterView(made_anew([*nodes, *others]), scheduler_for(policy))


@pytest.mark.parametrize(("pods", "verdict"), [(4, "Feasible"), (5, "Infeasible")])
@pytest.mark.parametrize("sample", [TF_JOB, JOB])
@pytest.mark.parametrize("backend", OF_BACKEND)
def test_object_fits_if_one_domain_of_its_scheduler_has_room(
    backend: str, sample: Sample, pods: int, verdict: str
) -> None:
    policy = OF_BACKEND[backend]
    sample = STATEFUL_SET if sample is JOB and backend == "kai" else sample
    content = job(sample, pods, within="rack", within_mode="required")
    content["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}

    placement = advised(content, two_racks(policy, *DOMAINS[backend]), policy).placement

    assert placement is not None
    assert placement.gang is not None
    assert placement.gang.together is not None
    assert placement.verdict == verdict
    assert [each.fits for each in placement.gang.together.domains] == [4, 4]


@pytest.mark.parametrize(
    ("taken", "verdict", "text"),
    [
        ((), "Feasible", ""),
        (("z1",), "Unknown", "chooses one of z1/r1, z2/r1 by chance; z2/r1 has room for all"),
        (("z1", "z2"), "Waiting", "1 of the 4 pods that must run together would start and hold"),
    ],
)
def test_kai_can_start_an_object_in_a_domain_without_room_for_all(
    taken: tuple[str, ...], verdict: str, text: str
) -> None:
    """Its PodGroup starts with one pod, and the others follow it."""
    content, policy = job(STATEFUL_SET, 4, within="rack", within_mode="required"), OF_BACKEND["kai"]
    others = [make_pod(f"on-{node}").gpu(3).node_name(node).obj() for node in taken]

    advice = advised(content, two_racks(policy, *DOMAINS["kai"], *others), policy)

    assert advice.placement is not None
    assert advice.placement.verdict == verdict
    assert text in " ".join(warnings(advice))


@pytest.mark.parametrize(("size", "verdict"), [({}, "Feasible"), ({"gang_size": "8"}, "Feasible"), ({}, "Infeasible")])
def test_gang_of_a_named_group_of_kai_is_larger_than_one_of_its_objects(size: dict[str, str], verdict: str) -> None:
    """Two Jobs of four pods each create the pods of a group that KAI has made."""
    content, policy = job(JOB, 4, gang="pg-bert", **size), OF_BACKEND["kai"]
    group = kai_group("pg-bert", namespace="team-a", members=8)
    group["spec"]["topologyConstraint"] = {"topology": "racks", "requiredTopologyLevel": RACK}
    large = make_node_object("z3", labels={USAGE: "training", RACK: "r1", ZONE: "z3"}, capacity={GPU: 8})

    others = [group, *DOMAINS["kai"], *([large] if verdict == "Feasible" else ())]
    placement = advised(content, two_racks(policy, *others), policy).placement

    assert placement is not None
    assert (placement.verdict, placement.gang and placement.gang.size) == (verdict, 8)
    assert "never starts" not in placement.message


def test_group_that_kai_replaces_decides_on_nothing() -> None:
    group, policy = kai_group("bert", namespace="team-a", members=9), OF_BACKEND["kai"]
    group["spec"]["topologyConstraint"] = {"topology": "racks", "requiredTopologyLevel": RACK}

    advice = advised(job(JOB, 6, gang="bert"), two_racks(policy, group, *DOMAINS["kai"]), policy)

    assert (advice.placement and advice.placement.verdict) == "Feasible"
    assert "KAI: PodGroup bert has no effect: KAI makes other PodGroups for pods with an owner" in advice.warnings


@pytest.mark.parametrize(
    ("key", "verdict"), [("topology-preferred-placement", "Feasible"), ("topology-required-placement", "Unknown")]
)
def test_annotations_of_kai_that_an_object_has_decide_on_its_domain(key: str, verdict: str) -> None:
    content, policy = job(STATEFUL_SET, 6, within="rack", within_mode="required"), OF_BACKEND["kai"]
    content["metadata"]["annotations"] = {"kai.scheduler/topology": "racks", f"kai.scheduler/{key}": ZONE}

    placement = advised(content, two_racks(policy, *DOMAINS["kai"]), policy).placement

    assert (placement and placement.verdict) == verdict


@pytest.mark.parametrize(("labels", "verdict"), [({}, "Infeasible"), ({RACK: "r1", ZONE: "z1"}, "Feasible")])
def test_kai_keeps_a_single_pod_in_a_domain(labels: dict[str, str], verdict: str) -> None:
    content, policy = job(STATEFUL_SET, 1, within="rack", within_mode="required"), OF_BACKEND["kai"]
    node = make_node_object("a", labels={USAGE: "training", **labels}, capacity={GPU: 4})
    cluster = ClusterView(made_anew([node, *DOMAINS["kai"]]), scheduler_for(policy))

    placement = advised(content, cluster, policy).placement

    assert (placement and placement.verdict) == verdict


@pytest.mark.parametrize(
    ("backend", "sample", "own", "verdict"),
    [
        ("kueue", JOB, {}, "Feasible"),
        ("kueue", JOB, {"kueue.x-k8s.io/podset-required-topology": RACK}, "Infeasible"),
        ("kai", STATEFUL_SET, {}, "Infeasible"),
        ("volcano", VOLCANO_JOB, {}, "Infeasible"),
    ],
)
def test_object_without_a_name_has_a_domain_if_its_template_need_not_be_patched(
    backend: str, sample: Sample, own: dict[str, str], verdict: str
) -> None:
    content, policy = in_queue(job(sample, 6, within="rack", within_mode="required")), OF_BACKEND[backend]
    content["metadata"]["generateName"] = f"{content['metadata'].pop('name')}-"
    template = content["spec"]["tasks"][0]["template"] if backend == "volcano" else content["spec"]["template"]
    template["metadata"]["annotations"] |= own

    advice = advised(content, two_racks(policy, *DOMAINS[backend]), policy)

    assert (advice.placement and advice.placement.verdict) == verdict
    unpatched = "Kueue reads it from the pod template, which is only patched in a new object with a name"
    assert (unpatched in str(advice.warnings)) == (verdict == "Feasible")
    of_owner = {"kai": "kai.scheduler/topology", "volcano": "networkTopology"}.get(backend)
    assert of_owner is None or (of_owner in str(advice.operations) and advice.rules)


@pytest.mark.parametrize(
    ("name", "others", "verdict"),
    [
        ("racks", (topology("others", KAI_TOPOLOGY, RACK),), "Infeasible"),
        ("others", (topology("others", KAI_TOPOLOGY, RACK),), "Feasible"),
        ("others", (), "Unknown"),
        # KAI ignores it.
        ("", (), "Feasible"),
    ],
)
def test_domains_of_kai_are_those_of_the_named_topology(name: str, others: tuple[Object, ...], verdict: str) -> None:
    group, policy = kai_group("pg-bert", namespace="team-a", members=6), OF_BACKEND["kai"]
    group["spec"]["topologyConstraint"] = {"topology": name, "requiredTopologyLevel": RACK}
    content = job(JOB, 6, gang="pg-bert")

    placement = advised(content, two_racks(policy, group, *DOMAINS["kai"], *others), policy).placement

    assert (placement and placement.verdict) == verdict


def test_kai_does_not_keep_the_pods_of_a_job_together() -> None:
    content, policy = job(JOB, 8, within="rack", within_mode="required"), OF_BACKEND["kai"]

    advice = advised(content, two_racks(policy, *DOMAINS["kai"]), policy)

    assert (advice.placement and advice.placement.verdict) == "Feasible"
    assert "within has no effect: scheduler kai-scheduler makes a PodGroup for each pod" in str(advice.warnings)


def partitioned(size: int, tasks: int = 1, within: str = "", within_mode: str = "", **spec: Any) -> Object:
    """Return a Volcano Job of six pods in partitions of `size`, which each run in one HyperNode."""
    content = job(VOLCANO_JOB, 6, **({"within": within, "within_mode": within_mode} if within else {}))
    (task,) = content["spec"]["tasks"]
    topology = {"mode": "hard", "highestTierAllowed": 1}
    policy = {"totalPartitions": 6 // size, "partitionSize": size, "networkTopology": topology}
    content["spec"]["tasks"] = [task | {"name": f"t{place}", "partitionPolicy": policy} for place in range(tasks)]
    content["spec"] |= {"minAvailable": 6 * tasks, **spec}
    return content


@pytest.mark.parametrize(
    ("content", "taken", "verdict", "text"),
    [
        pytest.param(partitioned(3), 0, "Feasible", "", id="one in each"),
        pytest.param(partitioned(2), 1, "Feasible", "", id="two in one and one in the other"),
        pytest.param(
            partitioned(3),
            2,
            "Waiting",
            "2 HyperNodes up to tier 1 have room for 1 of 2 partitions of 3 pods now",
            id="full",
        ),
        pytest.param(
            partitioned(6),
            0,
            "Infeasible",
            "2 HyperNodes up to tier 1 could hold 0 of 1 partition of 6 pods if they were empty",
            id="too large",
        ),
        pytest.param(partitioned(3, minAvailable=3), 0, "Unknown", "has a domain of its own", id="starts in part"),
        pytest.param(partitioned(4), 1, "Unknown", "has a domain of its own", id="not all of one size"),
        pytest.param(
            partitioned(3, networkTopology={"mode": "hard", "highestTierAllowed": 2}),
            0,
            "Unknown",
            "can have domains of their own",
            id="the whole Job has a domain, too",
        ),
        pytest.param(
            partitioned(3, within="rack", within_mode="required"),
            0,
            "Unknown",
            "can have domains of their own",
            id="the whole Job gets a domain, too",
        ),
        pytest.param(
            partitioned(3, within="rack", within_mode="preferred"), 0, "Feasible", "", id="the whole Job prefers one"
        ),
    ],
)
def test_each_partition_of_a_volcano_job_needs_a_domain(content: Object, taken: int, verdict: str, text: str) -> None:
    policy = OF_BACKEND["volcano"]
    other = make_pod("other").gpu(taken).node_name("z1").obj()

    placement = advised(content, two_racks(policy, *DOMAINS["volcano"], other), policy).placement

    assert placement is not None
    assert placement.verdict == verdict
    assert text in placement.message + (placement.gang.text if placement.gang else "")


@pytest.mark.parametrize(
    ("task", "verdict", "size"),
    [
        ({}, "Infeasible", 6),
        ({"minAvailable": 3}, "Unknown", 3),
        ({"partitionPolicy": {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}}, "Unknown", 4),
        ({"partitionPolicy": {"totalPartitions": 3, "partitionSize": 2}}, "Infeasible", 6),
    ],
)
@pytest.mark.parametrize("of_job", [{}, {"minAvailable": 0}])
def test_least_number_of_pods_of_a_volcano_job_is_by_default_that_of_its_tasks(
    of_job: Object, task: Object, verdict: str, size: int
) -> None:
    content, policy = job(VOLCANO_JOB, 6), OF_BACKEND["volcano"]
    content["spec"] |= {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}, **of_job}
    content["spec"]["tasks"][0] |= task

    placement = advised(content, two_racks(policy, *DOMAINS["volcano"]), policy).placement

    assert placement is not None
    assert (placement.verdict, placement.gang and placement.gang.size) == (verdict, size)


@pytest.mark.parametrize(("scheduler", "verdict"), [("volcano", "Infeasible"), ("default-scheduler", "Feasible")])
def test_other_schedulers_ignore_the_domain_of_a_volcano_job(scheduler: str, verdict: str) -> None:
    content = job(VOLCANO_JOB, 6)
    content["spec"] |= {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}, "schedulerName": scheduler}

    placement = advised(content, two_racks(KUBE_SCHEDULER, *DOMAINS["volcano"])).placement

    assert (placement and placement.verdict) == verdict


def test_job_that_kueue_can_admit_in_part_is_unknown() -> None:
    content, policy = job(JOB, 5, within="rack", within_mode="required"), OF_BACKEND["kueue"]
    content["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    content["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}

    placement = advised(content, two_racks(policy, *DOMAINS["kueue"]), policy).placement

    assert placement is not None
    assert placement.verdict == "Unknown"


def in_queue(content: Object) -> Object:
    content["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    return content


@pytest.mark.parametrize("within", [{}, {"within": "rack", "within_mode": "preferred"}])
def test_preferred_domain_leaves_a_job_of_kueue_waiting(within: dict[str, str]) -> None:
    content, policy = in_queue(job(JOB, 9, **within)), OF_BACKEND["kueue"]

    placement = advised(content, two_racks(policy, *DOMAINS["kueue"]), policy).placement

    assert placement is not None
    assert placement.verdict == "Waiting"


def test_each_job_of_a_job_set_has_a_domain_of_its_own_with_volcano() -> None:
    """Volcano makes a PodGroup for each owner of pods: for each Job."""
    content, policy = job(JOB_SET, 3, within="rack", within_mode="required"), OF_BACKEND["volcano"]
    content["spec"]["replicatedJobs"][0]["replicas"] = 2

    placement = advised(content, two_racks(policy, *DOMAINS["volcano"]), policy).placement

    assert placement is not None
    assert placement.verdict == "Unknown"


def test_job_of_one_pod_is_in_a_domain() -> None:
    content, policy = in_queue(job(JOB, 1, within="rack", within_mode="required")), OF_BACKEND["kueue"]

    placement = advised(content, two_racks(policy, *DOMAINS["kueue"]), policy).placement

    assert placement is not None
    assert placement.verdict == "Feasible"


@pytest.mark.parametrize(
    ("labels", "fields", "verdict"),
    [
        ({RACK: "r3", ZONE: "z3"}, {"unschedulable": True}, "Waiting"),
        ({RACK: "r3", ZONE: "z3"}, {"taints": ["node.kubernetes.io/not-ready:NoSchedule"]}, "Waiting"),
        ({}, {}, "Infeasible"),
    ],
)
def test_pods_that_a_domain_could_hold_later_are_not_announced_as_refused(
    labels: dict[str, str], fields: dict[str, Any], verdict: str
) -> None:
    policy = OF_BACKEND["kueue"]
    content = in_queue(job(JOB, 6, within="rack", within_mode="required", gang_size="6", placement_check="deny"))
    large = make_node_object("z3", labels={USAGE: "training", **labels}, capacity={GPU: 8}, **fields)

    advice = advised(content, two_racks(policy, large, *DOMAINS["kueue"]), policy)

    assert advice.placement is not None
    assert advice.placement.verdict == verdict
    assert not [each for each in warnings(advice) if "are refused" in each]


def test_required_domain_of_a_later_template_counts() -> None:
    content, policy = in_queue(job(TF_JOB, 2, within="rack", within_mode="preferred")), OF_BACKEND["kueue"]
    (first,) = content["spec"]["tfReplicaSpecs"].values()
    second = copy.deepcopy(first) | {"replicas": 6}
    second["template"]["metadata"]["annotations"][f"{DOMAIN}/within-mode"] = "required"
    content["spec"]["tfReplicaSpecs"] = {"PS": first, "Worker": second}

    placement = advised(content, two_racks(policy, *DOMAINS["kueue"]), policy).placement

    assert placement is not None
    assert placement.verdict == "Unknown"


@pytest.mark.parametrize("backend", ["kai", "volcano"])
def test_required_domain_of_a_later_template_is_that_of_the_object(backend: str) -> None:
    sample, policy = (VOLCANO_JOB, OF_BACKEND[backend]) if backend == "volcano" else (TF_JOB, OF_BACKEND[backend])
    content = job(sample, 2, within="rack", within_mode="preferred")
    spec = content["spec"]
    first = spec["tasks"][0] if backend == "volcano" else spec["tfReplicaSpecs"]["Worker"]
    second, none = copy.deepcopy(first) | {"replicas": 6, "name": "second"}, copy.deepcopy(first) | {"replicas": 0}
    for each in (second, none):
        each["template"]["metadata"]["annotations"][f"{DOMAIN}/within-mode"] = "required"
    none["template"]["metadata"]["annotations"][f"{DOMAIN}/within"] = "host"
    if backend == "volcano":
        spec["tasks"] = [first, second]
    else:
        spec["tfReplicaSpecs"] = {"Chief": none, "PS": first, "Worker": second}

    advice = advised(content, two_racks(policy, *DOMAINS[backend]), policy)

    assert advice.placement is not None
    assert advice.placement.verdict == "Infeasible"
    patched = apply_patch(content, list(advice.operations))
    if backend == "volcano":
        assert patched["spec"]["networkTopology"]["mode"] == "hard"
    else:
        assert patched["metadata"]["annotations"]["kai.scheduler/topology-required-placement"] == RACK


def test_job_that_starts_in_a_domain_without_room_for_all_is_unknown() -> None:
    content, policy = job(TF_JOB, 8, within="rack", within_mode="required"), OF_BACKEND["kai"]
    content["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 2}}

    placement = advised(content, two_racks(policy, *DOMAINS["kai"]), policy).placement

    assert placement is not None
    assert placement.verdict == "Unknown"


@pytest.mark.parametrize(
    ("backend", "size", "verdict"),
    [
        ("kueue", "4", "Feasible"),
        ("kueue", "5", "Infeasible"),
        # To pod affinity, both are one rack.
        ("default", "8", "Feasible"),
        ("default", "9", "Infeasible"),
    ],
)
def test_pods_of_a_gang_that_other_objects_create_need_room_in_its_domain(
    backend: str, size: str, verdict: str
) -> None:
    policy = OF_BACKEND.get(backend) or policy_with(workloadTypes={"training": TRAINING}, **MUTATING)
    content = in_queue(job(JOB, 3, within="rack", within_mode="required", gang="g", gang_size=size))

    placement = advised(content, two_racks(policy, *DOMAINS["kueue"]), policy).placement

    assert placement is not None
    assert placement.verdict == verdict


def test_object_of_kueue_is_unknown_if_its_domain_is_not_counted() -> None:
    content, policy = job(DEPLOYMENT, 4), OF_BACKEND["kueue"]
    content["spec"]["template"]["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] = RACK

    placement = advised(content, two_racks(policy, *DOMAINS["kueue"]), policy).placement

    assert placement is not None
    assert (placement.verdict, placement.node) == ("Unknown", None)
    assert placement.message.endswith("depends on kueue.x-k8s.io/podset-required-topology, which is not modelled.")


def groups(leader: int, worker: int) -> Object:
    """Return three groups of a leader and three workers, each with that many cards."""
    leaders, workers = (
        make_pod("").gpu(cards).label("app", APP["app"]).annotate(TYPE, "training").template()
        for cards in (leader, worker)
    )
    templates = {"size": 4, "leaderTemplate": leaders, "workerTemplate": workers}
    return LEADER_WORKER_SET.object(workers, 1) | {"spec": {"replicas": 3, "leaderWorkerTemplate": templates}}


@pytest.mark.parametrize(("free", "fit"), [(12, 4), (11, 3), (8, 2), (2, 0)])
def test_groups_of_an_object_fit_if_each_of_them_does(free: int, fit: int) -> None:
    placement = advised(groups(1, 1), view(cards=16, free=free)).placement

    assert placement is not None
    assert placement.gang is not None
    assert (placement.gang.size, placement.gang.fit) == (4, fit)


def test_a_group_has_one_leader_also_on_an_empty_cluster() -> None:
    assert warnings(advised(groups(1, 16), view(cards=8, free=8)))[0].startswith(
        "placement check: Infeasible: no more than 1 of the 4 pods that must run together would fit"
    )


def test_the_count_of_one_group_says_nothing_about_the_others() -> None:
    snapshot, unknown = made_anew([make_node_object("a")]), Placement.unknown("the time is over")
    cut = Replicas(12, 8, {"a": 8}, unknown, None, is_complete=False, snapshot=snapshot)
    gang = GangRequest("g", 4, "default-scheduler", starts_whole=False, groups=3)

    assert not fit_of_object(gang, [(None, cut)], KUBE_SCHEDULER, snapshot, never, {"Unknown"}).is_complete


GANG = GangRequest("g", 4, "default-scheduler", starts_whole=False)


@pytest.mark.parametrize("sizes", [(2, 4), (4, 2)])
def test_of_several_sizes_of_a_gang_the_largest_counts(sizes: tuple[int, int]) -> None:
    asked = [GANG._replace(name=f"g{size}", size=size, starts_whole=size == 4) for size in sizes]
    kind, snapshot = KUBE_SCHEDULER.kinds["jobset.x-k8s.io", "JobSet"], Snapshot.of(())

    templates = [TemplateGang(each, each.starts_whole, None, 3) for each in asked]
    whole = gang_of_object(job(JOB_SET, 3), kind, templates, "default-scheduler", KUBE_SCHEDULER, snapshot)

    assert whole is not None
    assert (whole.name, whole.size, whole.starts_whole) == ("g4", 4, True)


IN_RACK = Within("rack")


@pytest.mark.parametrize(
    ("pods", "within", "found"),
    [
        ((2, 2), (None, IN_RACK), "rack"),
        ((2, 2), (IN_RACK, None), "rack"),
        ((2, 0), (None, IN_RACK), None),
        ((0, 2), (IN_RACK, None), None),
        ((0, 2), (IN_RACK, IN_RACK), "rack"),
        ((0, 2), (None, IN_RACK), "rack"),
    ],
)
def test_domain_of_a_template_without_pods_is_none_of_the_object(
    pods: tuple[int, int], within: tuple[Within | None, Within | None], found: str | None
) -> None:
    kind, templates = KUBE_SCHEDULER.kinds["kubeflow.org", "TFJob"], zip(within, pods, strict=True)
    sets = [TemplateGang(None, False, each, number) for each, number in templates]
    policy = OF_BACKEND["kueue"]

    gang = gang_of_object(in_queue(job(TF_JOB, 4)), kind, sets, "default-scheduler", policy, Snapshot.of(()))

    assert (gang and gang.within and gang.within.key) == found


@pytest.mark.parametrize("wholes", [(True, False), (False, True), (True, True)])
def test_object_starts_whole_only_if_each_of_its_templates_does(wholes: tuple[bool, bool]) -> None:
    kind, content = KUBE_SCHEDULER.kinds["kubeflow.org", "TFJob"], job(TF_JOB, 4)

    templates = [TemplateGang(None, each, None, 2) for each in wholes]
    whole = gang_of_object(content, kind, templates, "default-scheduler", KUBE_SCHEDULER, Snapshot.of(()))

    assert whole is not None
    assert whole.starts_whole == all(wholes)


def test_only_whole_groups_of_an_object_count() -> None:
    kind = KUBE_SCHEDULER.kinds["leaderworkerset.x-k8s.io", "LeaderWorkerSet"]

    templates = [TemplateGang(GANG, False, None, 11)]
    whole = gang_of_object(groups(1, 1), kind, templates, "default-scheduler", KUBE_SCHEDULER, Snapshot.of(()))

    assert whole is not None
    assert (whole.size, whole.groups) == (4, 2)


def replicas(asked: int, placed: int, *, is_complete: bool = True) -> Replicas:
    snapshot, found = made_anew([make_node_object("a", capacity={GPU: 8})]), Placement.unknown("")
    return Replicas(asked, placed, {"a": placed}, found, None, is_complete, snapshot)


ASKS_FOR_CARD = PodSignature.of(make_pod("p").gpu(1).obj())
NEVER = PodSignature.of(make_pod("p").gpu(9).obj())


@pytest.mark.parametrize(
    ("size", "groups", "roles", "fit", "is_complete"),
    [
        pytest.param(4, 1, [(4, 4)], 4, True, id="all"),
        pytest.param(4, 1, [(9, 7)], 4, True, id="no more than the size"),
        pytest.param(4, 1, [(3, 3), (3, 2)], 4, True, id="of all templates"),
        pytest.param(4, 2, [(8, 7)], 3, True, id="of each group"),
        pytest.param(4, 2, [(8, 8, False)], 4, True, id="the others do not matter"),
        pytest.param(4, 2, [(8, 7, False)], 3, False, id="more could fit"),
        pytest.param(4, 1, [(2, 2), (2, 1, False)], 3, False, id="more of one template could fit"),
    ],
)
def test_fitting_pods_of_a_gang_are_those_of_all_templates_shared_by_its_groups(
    size: int, groups: int, roles: list[tuple[Any, ...]], fit: int, is_complete: bool
) -> None:
    placed = [(None, replicas(asked, number, is_complete=all(rest))) for asked, number, *rest in roles]
    gang = GANG._replace(size=size, groups=groups)

    found = fit_of_object(gang, placed, KUBE_SCHEDULER, Snapshot.of(()), never, {"Feasible"})

    assert (found.size, found.fit, found.is_complete, found.most) == (size, fit, is_complete, None)


@pytest.mark.parametrize(
    ("roles", "verdicts", "most"),
    [
        pytest.param([(ASKS_FOR_CARD, 9)], {"Waiting"}, 8, id="the node is too small"),
        pytest.param([(ASKS_FOR_CARD, 8)], {"Waiting"}, None, id="the node is large enough"),
        pytest.param([(ASKS_FOR_CARD, 8), (NEVER, 1)], {"Waiting", "Infeasible"}, 8, id="one template never fits"),
        pytest.param([(NEVER, 9)], {"Infeasible"}, None, id="no template ever fits: the verdict says so"),
        pytest.param([(ASKS_FOR_CARD, 9)], {"Feasible", "Unknown"}, None, id="nothing waits"),
        pytest.param([(ASKS_FOR_CARD, 9), (None, 1)], {"Waiting"}, None, id="one template is not known"),
    ],
)
def test_most_pods_of_an_empty_cluster_are_counted_if_known_templates_wait(
    roles: list[tuple[PodSignature | None, int]], verdicts: set[str], most: int | None
) -> None:
    placed = [((Scheduler(), each) if each else None, replicas(asked, 1)) for each, asked in roles]
    gang = GANG._replace(size=sum(asked for _, asked in roles))
    base = made_anew([make_node_object("a", capacity={GPU: 8})])

    assert fit_of_object(gang, placed, KUBE_SCHEDULER, base, never, verdicts).most == most


def test_queue_of_an_object_that_kueue_admits_stands_for_those_of_its_pods() -> None:
    content = queued(job(JOB, 4, queue="of-pods"), queue="q")
    queue = cluster_queue("cards", {"spot": {GPU: "4"}})

    assert about_queues(content, KUEUE, local_queue("q", namespace="team-a"), queue) == []


@pytest.mark.parametrize(("waits", "verdict"), [(False, "Feasible"), (True, "Waiting")])
def test_pods_that_wait_take_room_from_the_domains_of_a_gang(waits: bool, verdict: str) -> None:
    policy = OF_BACKEND["kueue"]
    cluster = two_racks(policy, *DOMAINS["kueue"])
    assumed: AssumedPods[str] = AssumedPods(cluster.snapshot)
    for name in ("z1", "z2") if waits else ():
        first = WaitingPod.of(make_pod(name).namespace("team-a").gpu(1).obj())
        assume(name, first, replace(Placement.unknown(""), verdict="Feasible", node=name), assumed)
    content = in_queue(job(JOB, 4, within="rack", within_mode="required"))

    placement = advised(content, replace(cluster, assumed=assumed), policy).placement

    assert placement is not None
    assert placement.verdict == verdict
    assert placement.gang is not None
    assert placement.gang.together is not None
    assert [each.fits for each in placement.gang.together.domains] == [4 - waits, 4 - waits]


GANG_KEY, SIZE_KEY = f"{DOMAIN}/gang", f"{DOMAIN}/gang-size"


def gang_of(annotations: object, scheduler: object = None) -> GangRequest | None:
    pod: dict[str, Any] = {"metadata": {"name": "p", "annotations": annotations}, "spec": {"schedulerName": scheduler}}
    return gang_of_pod(pod, policy_with(), Snapshot.of(()))


@pytest.mark.parametrize(
    ("annotations", "scheduler", "name", "size", "missing"),
    [
        ({SIZE_KEY: "4"}, None, "", 4, ""),
        ({SIZE_KEY: "4", GANG_KEY: "bert"}, "volcano", "bert", 4, ""),
        ({SIZE_KEY: "4"}, "volcano", "", 4, GANG_KEY),
        ({SIZE_KEY: "4", GANG_KEY: 7}, "volcano", "", 4, GANG_KEY),
    ],
    ids=["a size", "a size and a name", "a size without the name that its scheduler reads", "a name that is no text"],
)
def test_gang_of_annotations(annotations: object, scheduler: str | None, name: str, size: int, missing: str) -> None:
    found = gang_of(annotations, scheduler)

    assert found is not None
    assert (found.name, found.size, found.missing) == (name, size, missing)
    assert found.scheduler == (scheduler or "default-scheduler")


@pytest.mark.parametrize(
    ("annotations", "scheduler"),
    [
        (None, None),
        ({}, "volcano"),
        ({GANG_KEY: "bert"}, "volcano"),
        ({SIZE_KEY: "0", GANG_KEY: "bert"}, None),
        ({SIZE_KEY: "many"}, None),
        ({SIZE_KEY: 4}, None),
        ({SIZE_KEY: "4"}, 5),
    ],
    ids=["none", "others", "no size", "no pod", "no number", "a size that is no text", "a scheduler that is no text"],
)
def test_pod_without_a_valid_size_is_in_no_gang(annotations: object, scheduler: object) -> None:
    assert gang_of(annotations, scheduler) is None

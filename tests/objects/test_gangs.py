"""A job whose pods must run together is advised about all of them, and warned of a start in part."""

import copy
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, USAGE, make_request, policy_with
from tests.support.builders import make_node_object, make_pod
from tests.support.workloads import APP, SAMPLES, Object, Sample
from webhook.admission.pipeline import ClusterView, scheduler_for
from webhook.admission.verdict import Advised
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.objects.admission import admit_request
from webhook.policy.policy import Policy

TF_JOB, VOLCANO_JOB, DEPLOYMENT, JOB = (
    next(each for each in SAMPLES if (each.group, each.kind) == key)
    for key in (("kubeflow.org", "TFJob"), ("batch.volcano.sh", "Job"), ("apps", "Deployment"), ("batch", "Job"))
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


def view(cards: int, free: int) -> ClusterView:
    node = make_node_object("a", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": cards})
    running = make_pod("other").gpu(cards - free).node_name("a").obj()
    found = snapshot_from_documents(Document("cluster", each) for each in (node, running))
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


def test_job_of_an_operator_that_would_start_in_part_is_warned_of() -> None:
    verdict = advised(job(TF_JOB, 8), view(cards=8, free=4))

    assert warnings(verdict) == [FITS.format(8), PARTIAL.format(4, 8)]
    assert verdict.placement is not None
    assert verdict.placement.gang is not None
    assert (verdict.placement.gang.size, verdict.placement.gang.fit) == (8, 4)


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
        pytest.param(JOB, KAI, {"gang_size": "8", "gang": "g"}, True, id="KAI knows the PodGroup"),
        pytest.param(TF_JOB, KAI, {}, True, id="KAI makes a gang of a TFJob"),
        pytest.param(TF_JOB, KUEUE, {}, False, id="Kueue has no queue"),
        pytest.param(JOB, KUEUE, {"gang": "g", "gang_size": "8"}, False, id="Kueue has a gang and no queue"),
        pytest.param(JOB, KUEUE, {"queue": "q", "gang_size": "8"}, False, id="Kueue has a queue and no gang"),
        pytest.param(JOB, KUEUE, {"queue": "q", "gang": "g", "gang_size": "8"}, True, id="Kueue has both"),
        pytest.param(VOLCANO_JOB, VOLCANO, {"gang_size": "8"}, True, id="a Volcano Job has a PodGroup"),
        pytest.param(VOLCANO_JOB, KUEUE, {}, True, id="a Volcano Job is for Volcano"),
    ],
)
def test_job_starts_whole_only_if_its_scheduler_or_kueue_knows_its_gang(
    sample: Sample, policy: Policy, annotations: dict[str, str], starts_whole: bool
) -> None:
    found = warnings(advised(job(sample, 8, **annotations), view(cards=8, free=4), policy))

    assert any("two such jobs can deadlock" in each for each in found) is not starts_whole


@pytest.mark.parametrize(("sample", "starts_whole"), [(TF_JOB, True), (VOLCANO_JOB, False)])
def test_job_that_kueue_suspends_starts_whole(sample: Sample, starts_whole: bool) -> None:
    content = job(sample, 8)
    content["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    if sample is VOLCANO_JOB:
        content["spec"]["schedulerName"] = "default-scheduler"

    found = warnings(advised(content, view(cards=8, free=4)))

    assert any("two such jobs can deadlock" in each for each in found) is not starts_whole


def test_pods_that_are_useful_by_themselves_are_no_gang() -> None:
    assert warnings(advised(job(DEPLOYMENT, 9), view(cards=8, free=4))) == [FITS.format(9)]


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

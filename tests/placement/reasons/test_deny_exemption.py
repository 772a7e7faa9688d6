"""With `deny`, a pod that is correct is admitted while autoscalers, device plugins and other schedulers decide."""

import pytest

from tests.placement.reasons.correct_pods import (
    GPU,
    Object,
    doubt,
    node_with_cards,
    verdict,
)
from tests.support.admission import DOMAIN, TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Denied
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document

POD = make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/scheduler", "default-scheduler")
JOB = POD.gpu(8)


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(
            [node_with_cards("gpu-1", "karpenter.sh/disrupted:NoSchedule")], id="a key that the policy does not list"
        ),
        pytest.param(
            [node_with_cards("gpu-1", "example.com/a:NoSchedule", "reserved=x:NoSchedule")], id="a taint that stays"
        ),
        pytest.param([node_with_cards("gpu-1", "example.com/a:NoSchedule", devices={GPU: 4})], id="too few cards"),
    ],
)
def test_pod_that_never_fits_is_refused_beside_states_that_pass(nodes: list[Object]) -> None:
    assert isinstance(verdict(JOB, *nodes, temporaryTaints=["example.com/"]), Denied)


def test_a_node_that_other_pods_fill_would_do_without_them_alone() -> None:
    running = make_pod("running").gpu(4).node_name("a")

    text = "1 node would do if its 8 cards were healthy (7 of 8 are), without the pods that run there"
    assert doubt(JOB, node_with_cards("a", offered={GPU: 7}), running.obj()) == text


@pytest.mark.parametrize(
    ("others", "text"),
    [
        pytest.param({"a": 4, "b": 0}, "1 node would do if its 8 cards were healthy (7 of 8 are)", id="one is free"),
        pytest.param(
            {"a": 4, "b": 4},
            "2 nodes would do if their 16 cards were healthy (14 of 16 are), without the pods that run there",
            id="none is free",
        ),
        pytest.param(
            {"a": 0, "b": 0}, "2 nodes would do if their 16 cards were healthy (14 of 16 are)", id="both are free"
        ),
    ],
)
def test_nodes_that_would_do_with_their_pods_are_named_before_those_without(others: dict[str, int], text: str) -> None:
    nodes = [node_with_cards(name, offered={GPU: 7}) for name in others]
    running = [make_pod(f"of-{name}").gpu(cards).node_name(name).obj() for name, cards in others.items() if cards]

    assert doubt(JOB, *nodes, *running) == text


SHARES = [
    {GPU: 1, "nvidia.com/gpumem": 8000, "nvidia.com/gpucores": 30},
    {GPU: 1, "nvidia.com/gpumem-percentage": 50},
    {GPU: 1, "nvidia.com/gpumem": 8000, "nvidia.com/priority": 1},
    {"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000, "hygon.com/dcucores": 15},
    {"huawei.com/Ascend910B": 1, "huawei.com/Ascend910B-memory": 2000},
    {"huawei.com/Ascend310P": 1, "huawei.com/Ascend310P-core": 2},
    {"cambricon.com/vmlu": 1, "cambricon.com/mlu370.smlu.vmemory": 20},
    {"metax-tech.com/sgpu": 1, "metax-tech.com/vcore": 60, "metax-tech.com/vmemory": 4},
    {"iluvatar.ai/BI-V150-vgpu": 1, "iluvatar.ai/BI-V150.vMem": 64, "iluvatar.ai/BI-V150.vCore": 50},
    {"mthreads.com/vgpu": 1, "mthreads.com/sgpu-core": 8, "mthreads.com/sgpu-memory": 32},
]


@pytest.mark.parametrize("scheduler", ["default-scheduler", "hami-scheduler"])
@pytest.mark.parametrize("amounts", SHARES, ids=str)
def test_shares_that_only_an_extender_counts_are_not_predicted(amounts: dict[str, int], scheduler: str) -> None:
    pod = make_pod().annotate(TYPE, "training").limits(**amounts).scheduler(scheduler)
    cards = {next(iter(amounts)): 8}
    spec = {"workloadTypes": {"training": {"nodeUsage": {"allow": ["training"]}}}}

    free = verdict(pod, node_with_cards(devices=cards), **spec)
    reserved = doubt(pod, node_with_cards("gpu-1", "reserved=x:NoSchedule", devices=cards), **spec)

    assert free.outcome == "Patched"
    assert (free.placement.verdict, free.placement.unmodelled) == ("Unknown", ("a scheduler extender",))
    assert reserved == "a scheduler extender such as HAMi decides on the shares of cards that the pod requests"


def test_shares_that_nodes_offer_are_counted() -> None:
    resource = "aws.amazon.com/neuroncore"
    found = verdict(POD.gpu(4, resource), node_with_cards(devices={resource: 2}))

    assert isinstance(found, Denied)


@pytest.mark.parametrize("spec", [{}, {"schedulers": {"slurm": {"backend": "default"}}}], ids=["", "listed"])
def test_scheduler_that_the_policy_does_not_list_is_warned_of(spec: Object) -> None:
    slinky = node_with_cards("slurm-1", "slinky.slurm.net/managed-node=slurm:NoExecute")
    pod = make_pod().annotate(TYPE, "training").gpu(8).scheduler("slurm")

    if spec:
        assert isinstance(verdict(pod, slinky, **spec), Denied)
        return
    assert doubt(pod, slinky) == "the policy does not list the scheduler of the pod, so its rules are not known"
    found = verdict(pod, slinky)
    assert found.outcome == "Patched"
    assert found.placement.verdict == "Unknown"
    assert any("1 node(s) had untolerated taint(s)" in each for each in found.warnings)


def test_gang_of_a_scheduler_that_is_not_listed_is_never_refused() -> None:
    gang = {f"{DOMAIN}/gang": "g", f"{DOMAIN}/gang-size": "4"}
    pod = make_pod().annotate(TYPE, "training").gpu(8).scheduler("slurm")
    for key, value in gang.items():
        pod = pod.annotate(key, value)

    found = verdict(pod, node_with_cards(), allowedSchedulers=["default-scheduler", "volcano"])

    assert found.outcome == "Patched"
    assert found.placement.verdict == "Waiting"


@pytest.mark.parametrize(
    ("away", "text"),
    [
        (
            node_with_cards("b", "karpenter.sh/disrupted:NoSchedule"),
            "nodes would do that have a temporary taint: karpenter.sh/disrupted",
        ),
        (node_with_cards("b", offered={GPU: 3}), "nodes would do if their 8 cards were healthy (3 of 8 are)"),
    ],
)
def test_gang_that_states_of_nodes_keep_waiting_is_not_refused(away: Object, text: str) -> None:
    pod = POD.gpu(4).annotate(f"{DOMAIN}/gang", "g").annotate(f"{DOMAIN}/gang-size", "4")

    found = verdict(pod, node_with_cards("a"), away)

    assert found.outcome == "Patched"
    assert (found.placement.verdict, found.placement.deny_exemption) == ("Infeasible", text)


@pytest.mark.parametrize("fields", [{}, {"unschedulable": True}], ids=["open", "cordoned"])
def test_resource_that_a_class_could_back_is_a_doubt_beside_states_that_pass(fields: Object) -> None:
    pod = JOB.gpu(1, "example.com/dpu")
    policy = policy_with(placementCheck={"mode": "deny"})
    snapshot = snapshot_from_documents([Document("cluster", node_with_cards(**fields))])

    found = admit_pod(pod.obj(), policy, ClusterView(snapshot, scheduler_for(policy)))

    assert found.outcome == "Patched"
    text = "no node offers example.com/dpu, and whether a DeviceClass stands behind it is not known"
    assert found.placement.deny_exemption == text

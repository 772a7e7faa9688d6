"""With `deny`, a pod that is correct is admitted while autoscalers, device plugins and other schedulers decide."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, USAGE, admit_pod, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Denied
from webhook.admission.verdict import Patched, Verdict
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.events.report import report_of
from webhook.kube.pod.taints import TEMPORARY_TAINTS

Object = dict[str, Any]

GPU, MIG, NPU = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "huawei.com/Ascend910"
PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
# Without it, an unknown DeviceClass could back any resource.
NO_CLASSES = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClassList", "items": []}
POD = make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/scheduler", "default-scheduler")
JOB = POD.gpu(8)


def node_with_cards(
    name: str = "gpu-1",
    *taints: str,
    devices: Mapping[str, int] | None = None,
    offered: Mapping[str, int] | None = None,
    labels: Mapping[str, str] = PRODUCT,
    **fields: Any,
) -> Object:
    return make_node_object(
        name,
        labels={USAGE: "training", **labels},
        taints=[f"{USAGE}=training:NoSchedule", *taints],
        capacity={GPU: 8} if devices is None else devices,
        allocatable=offered,
        **fields,
    )


def verdict(pod: PodBuilder, *nodes: Object, **spec: Any) -> Verdict:
    policy = policy_with(placementCheck={"mode": "deny"}, **spec)
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, NO_CLASSES))
    return admit_pod(pod.obj(), policy, ClusterView(snapshot, scheduler_for(policy)))


def doubt(pod: PodBuilder, *nodes: Object, **spec: Any) -> str:
    """Return the reason not to refuse `pod`, which gets no bad advice, and no Event that it never fits."""
    found = verdict(pod, *nodes, **spec)
    assert isinstance(found, Patched), "it is refused"
    assert not any("tolerated" in each or "ask" in each for each in found.placement.suggestions)
    report = report_of(found)
    assert report is None or report.reason != "PlacementInfeasible"
    assert any("not refused" in warning for warning in found.warnings)
    return found.placement.deny_exemption


KEYS = [f"{key}gpu" if key.endswith("/") else key for key in TEMPORARY_TAINTS]


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
@pytest.mark.parametrize("key", KEYS)
def test_temporary_taint_is_waited_for_and_never_to_be_tolerated(key: str, effect: str) -> None:
    taint = f"{key}=1764000000:{effect}"

    assert doubt(JOB, node_with_cards("gpu-1", taint)) == f"1 node would do that has a temporary taint: {key}"


def test_candidate_for_deletion_takes_pods() -> None:
    found = verdict(JOB, node_with_cards("gpu-1", "DeletionCandidateOfClusterAutoscaler=1764000000:PreferNoSchedule"))

    assert isinstance(found, Patched)
    assert found.placement.verdict == "Feasible"


@pytest.mark.parametrize(
    ("taints", "listed", "text"),
    [
        (["example.com/repair:NoSchedule"], ["example.com/repair"], "has a temporary taint: example.com/repair"),
        (["example.com/a:NoSchedule"], ["example.com/"], "has a temporary taint: example.com/a"),
        (
            ["karpenter.sh/disrupted:NoSchedule", "node.kubernetes.io/not-ready:NoSchedule"],
            list(TEMPORARY_TAINTS),
            "is cordoned, not ready or not well or has a temporary taint: karpenter.sh/disrupted",
        ),
    ],
)
def test_policy_lists_the_taints_that_pass(taints: Sequence[str], listed: list[str], text: str) -> None:
    assert doubt(JOB, node_with_cards("gpu-1", *taints), temporaryTaints=listed) == f"1 node would do that {text}"


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


@pytest.mark.parametrize(
    ("pod", "nodes", "text"),
    [
        *[
            (
                JOB,
                [node_with_cards(offered={GPU: left})],
                f"1 node would do if its 8 cards were healthy ({left} of 8 are)",
            )
            for left in range(8)
        ],
        (
            POD.gpu(1, MIG),
            [node_with_cards(devices={MIG: 7}, offered={MIG: 0})],
            "1 node would do if its 7 cards were healthy (0 of 7 are)",
        ),
        (
            POD.gpu(8, NPU),
            [node_with_cards(devices={NPU: 8}, offered={NPU: 5}, labels={})],
            "1 node would do if its 8 cards were healthy (5 of 8 are)",
        ),
        (
            JOB,
            [node_with_cards("a", offered={GPU: 7}), node_with_cards("b", offered={GPU: 0})],
            "2 nodes would do if their 16 cards were healthy (7 of 16 are)",
        ),
        (
            JOB,
            [node_with_cards("a", "nvidia.com/gpu-driver-upgrade:NoSchedule", offered={GPU: 0}, unschedulable=True)],
            (
                "1 node would do that is cordoned, not ready or not well or has a temporary taint: "
                "nvidia.com/gpu-driver-upgrade, if its 8 cards were healthy (0 of 8 are)"
            ),
        ),
        (
            JOB,
            [
                node_with_cards("a", "karpenter.sh/disrupted:NoSchedule", offered={GPU: 0}),
                node_with_cards("b", offered={GPU: 6}),
            ],
            "1 node would do if its 8 cards were healthy (6 of 8 are)",
        ),
    ],
)
def test_unhealthy_devices_are_waited_for(pod: PodBuilder, nodes: list[Object], text: str) -> None:
    assert doubt(pod, *nodes) == text


COUNT = {**PRODUCT, "nvidia.com/gpu.count": "8"}
TYPED = {"node.kubernetes.io/instance-type": "p5.48xlarge"}


@pytest.mark.parametrize(
    ("pod", "nodes", "text"),
    [
        pytest.param(
            JOB, [node_with_cards(devices={}, labels=COUNT)], "its 8 cards were healthy (0 of 8 are)", id="count"
        ),
        pytest.param(
            POD.gpu(32),
            [node_with_cards(devices={GPU: 0}, labels={**COUNT, "nvidia.com/gpu.replicas": "4"})],
            "its 32 cards were healthy (0 of 32 are)",
            id="shared cards, and a capacity of 0",
        ),
        pytest.param(
            POD.gpu(7, MIG),
            [node_with_cards(devices={}, labels={**PRODUCT, "nvidia.com/mig-1g.10gb.count": "7"})],
            "its 7 cards were healthy (0 of 7 are)",
            id="count of slices",
        ),
        pytest.param(
            JOB,
            [node_with_cards(devices={}, labels={"nvidia.com/gpu.present": "true"})],
            "its cards were registered (0 are)",
            id="cards, and no number",
        ),
        *(
            pytest.param(
                pod,
                [node_with_cards(devices={}, labels={key: "true"})],
                "its cards were registered (0 are)",
                id=f"{key} alone",
            )
            for pod, key in (
                (JOB, "nvidia.com/gpu.product"),
                (JOB, "feature.node.kubernetes.io/pci-10de.present"),
                (JOB, "cloud.google.com/gke-accelerator"),
                (POD.gpu(8, "amd.com/gpu"), "amd.com/gpu.product"),
                (POD.gpu(8, NPU), "huawei.com/npu.product"),
            )
        ),
        pytest.param(
            JOB.node_selector("zone", "a"),
            [node_with_cards("a", devices={}, labels={**PRODUCT, "zone": "a"}), node_with_cards("b")],
            "its 8 cards were healthy (0 of 8 are)",
            id="a node of the same product",
        ),
        pytest.param(
            JOB.node_selector("zone", "a"),
            [node_with_cards("a", devices={}, labels={**TYPED, "zone": "a"}), node_with_cards("b", labels=TYPED)],
            "its 8 cards were healthy (0 of 8 are)",
            id="a node of the same instance type",
        ),
    ],
)
def test_device_plugin_that_registers_late_is_waited_for(pod: PodBuilder, nodes: list[Object], text: str) -> None:
    assert doubt(pod, *nodes) == f"1 node would do if {text}"


def test_a_node_that_other_pods_fill_would_do_without_them_alone() -> None:
    running = make_pod("running").gpu(4).node_name("a")

    text = "1 node would do if its 8 cards were healthy (7 of 8 are), without the pods that run there"
    assert doubt(JOB, node_with_cards("a", offered={GPU: 7}), running.obj()) == text


@pytest.mark.parametrize(
    ("pod", "nodes"),
    [
        pytest.param(POD.gpu(9), [node_with_cards(offered={GPU: 7})], id="more than the node has"),
        pytest.param(JOB, [node_with_cards(devices={}, labels={USAGE: "training"})], id="a node without cards"),
        pytest.param(JOB, [node_with_cards(devices={MIG: 7}, labels=COUNT)], id="the cards are cut into slices"),
        pytest.param(
            JOB, [node_with_cards(devices={}, labels={"nvidia.com/gpu.count": "eight"})], id="a label without a number"
        ),
    ],
)
def test_pod_that_healthy_devices_do_not_help_is_refused(pod: PodBuilder, nodes: list[Object]) -> None:
    assert isinstance(verdict(pod, *nodes), Denied)


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

    assert isinstance(free, Patched)
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
    assert isinstance(found, Patched)
    assert found.placement.verdict == "Unknown"
    assert any("1 node(s) had untolerated taint(s)" in each for each in found.warnings)


def test_gang_of_a_scheduler_that_is_not_listed_is_never_refused() -> None:
    gang = {f"{DOMAIN}/gang": "g", f"{DOMAIN}/gang-size": "4"}
    pod = make_pod().annotate(TYPE, "training").gpu(8).scheduler("slurm")
    for key, value in gang.items():
        pod = pod.annotate(key, value)

    found = verdict(pod, node_with_cards(), allowedSchedulers=["default-scheduler", "volcano"])

    assert isinstance(found, Patched)
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

    assert isinstance(found, Patched)
    assert (found.placement.verdict, found.placement.deny_exemption) == ("Infeasible", text)

"""States of nodes that pass: a pod that they keep waiting is not denied."""

from collections.abc import Sequence

import pytest

from tests.placement.reasons.correct_pods import GPU, MIG, NPU, PRODUCT, Object, doubt, node_with_cards, verdict
from tests.support.admission import DOMAIN, TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.injection import Denied
from webhook.kube.pod.taints import TEMPORARY_TAINTS

POD = make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/scheduler", "default-scheduler")
JOB = POD.gpu(8)
KEYS = [f"{key}gpu" if key.endswith("/") else key for key in TEMPORARY_TAINTS]


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
@pytest.mark.parametrize("key", KEYS)
def test_temporary_taint_is_waited_for_and_never_to_be_tolerated(key: str, effect: str) -> None:
    taint = f"{key}=1764000000:{effect}"

    assert doubt(JOB, node_with_cards("gpu-1", taint)) == f"1 node would do that has a temporary taint: {key}"


def test_candidate_for_deletion_takes_pods() -> None:
    found = verdict(JOB, node_with_cards("gpu-1", "DeletionCandidateOfClusterAutoscaler=1764000000:PreferNoSchedule"))

    assert found.outcome == "Patched"
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

"""Cards count by whatever name a pod requests them: for the limits of its namespace, defaults, and products."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.mutation.mutate import mutate
from webhook.mutation.rules import RULES
from webhook.mutation.workload.workload import read_workload

KAI, VOLCANO = "kai-scheduler", "volcano"


def kai(fraction: str = "", memory: str = "", devices: str = "") -> PodBuilder:
    """Return a pod of KAI with these annotations."""
    pod = make_pod().spec(schedulerName=KAI)
    for key, value in {"gpu-fraction": fraction, "gpu-memory": memory, "gpu-fraction-num-devices": devices}.items():
        pod = pod.annotate(key, value) if value else pod
    return pod


def requesting(**amounts: int) -> PodBuilder:
    return make_pod().limits(**amounts)


TWO_CONTAINERS = {
    "containers": [{"name": name, "resources": {"limits": {"nvidia.com/gpumem": "4000"}}} for name in "ab"],
    "initContainers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpucores": "30", "nvidia.com/gpu": 1}}}],
}
SHARE = {"name": "s", "resources": {"limits": {"nvidia.com/gpumem": "1000"}}}
TWO_CARDS = {"name": "t", "resources": {"limits": {"nvidia.com/gpu": 2}}}
SIDECAR = SHARE | {"restartPolicy": "Always"}
CARDS = [
    pytest.param(kai("0.5"), 1, id="half a card of KAI"),
    pytest.param(kai("0.5", devices="8"), 4, id="half of each of eight cards of KAI"),
    pytest.param(kai("0.55", devices="100"), 55, id="an exact product"),
    pytest.param(kai("0.5", devices="3"), 2, id="a product that is rounded up"),
    pytest.param(kai("0.5").annotate("gpu-fraction-num-devices", "many"), 1, id="a number that KAI rejects"),
    pytest.param(kai("NaN", devices="8"), 8, id="a fraction that KAI rejects"),
    pytest.param(kai("1e-999999999", devices="8"), 1, id="a tiny fraction"),
    pytest.param(kai(memory="2000", devices="8"), 8, id="memory of each of eight cards of KAI"),
    pytest.param(kai(devices="8").annotate(f"{DOMAIN}/gpu-fraction", "0.5"), 4, id="our share of KAI's cards"),
    pytest.param(make_pod().annotate("gpu-memory", "2000"), 0, id="a key of KAI for another scheduler"),
    pytest.param(requesting(**{"volcano.sh/vgpu-number": 8, "volcano.sh/vgpu-memory": 3000}), 8, id="vGPUs of Volcano"),
    pytest.param(requesting(**{"volcano.sh/vgpu-memory": 3000}), 1, id="memory of Volcano"),
    pytest.param(requesting(**{"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000}), 2, id="cards and memory of HAMi"),
    pytest.param(make_pod().spec(**TWO_CONTAINERS), 2, id="two containers with memory of HAMi, after one with a card"),
    pytest.param(make_pod().spec(containers=[SHARE], initContainers=[SHARE, SHARE]), 1, id="one after the other"),
    pytest.param(make_pod().spec(containers=[SHARE], initContainers=[SHARE, SIDECAR]), 2, id="beside a sidecar"),
    pytest.param(make_pod().spec(containers=[SHARE], initContainers=[SIDECAR, SHARE]), 2, id="after a sidecar"),
    pytest.param(
        make_pod().spec(containers=[SHARE], initContainers=[SIDECAR, TWO_CARDS]), 3, id="more cards after a sidecar"
    ),
    pytest.param(requesting(**{"nvidia.com/gpumem": 0}), 1, id="the default memory of HAMi"),
    pytest.param(requesting(**{"nvidia.com/gpu": 0, "nvidia.com/gpumem": 3000}), 0, id="memory of no card of HAMi"),
    pytest.param(requesting(**{"huawei.com/Ascend910B": 1, "huawei.com/Ascend910B-memory": 65536}), 1, id="an NPU"),
    pytest.param(requesting(**{"hygon.com/dcunum": 2, "hygon.com/dcumem": 4000}), 2, id="DCUs of HAMi"),
    pytest.param(requesting(**{"cambricon.com/vmlu": 2, "cambricon.com/mlu.smlu.vcore": 10}), 2, id="MLUs of HAMi"),
    pytest.param(requesting(**{"example.com/gpumem": 3000}), 0, id="a resource of no accelerator"),
]


@pytest.mark.parametrize(("pod", "cards"), CARDS)
def test_cards_by_any_name_count_against_the_limit(pod: PodBuilder, cards: int) -> None:
    limits = {"namespaces": ["lab"], "maxCardsPerPod": 0}
    reading = read_workload(pod.annotate(TYPE, "inference").obj(), "lab", {}, policy_with(namespaceLimits=[limits]))

    wanted = f'namespace "lab" may not request {cards} cards in a pod; allowed: at most 0'
    assert [each.detail for each in reading.denials] == ([wanted] if cards else [])


SHARED = [each.values[0] for each in CARDS if each.values[1]]


@pytest.mark.parametrize("pod", SHARED)
def test_a_pod_with_cards_by_any_name_needs_a_required_type(pod: PodBuilder) -> None:
    policies = (policy_with(requireType=each) for each in ("deny", "training"))
    denied, typed = (read_workload(pod.obj(), "lab", {}, each) for each in policies)

    assert ["the policy requires a workload type" in each.detail for each in denied.errors] == [True]
    assert typed.type_name == "training"


@pytest.mark.parametrize(
    "pod",
    [
        *SHARED,
        requesting(**{"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 1}),
    ],
)
def test_the_default_type_of_a_namespace_holds_for_cards_by_any_name(pod: PodBuilder) -> None:
    assert read_workload(pod.obj(), "lab", {TYPE: "inference"}, policy_with()).type_name == "inference"


def test_a_share_of_kai_is_one_where_the_type_chooses_the_scheduler() -> None:
    of_kai = {"nodeUsage": {"allow": ["a"]}, "schedulerName": KAI}
    limits = [{"namespaces": ["lab"], "products": ["L4"]}]
    policy = policy_with(workloadTypes={"shared": of_kai}, allowedSchedulers=[KAI], namespaceLimits=limits)
    pod = make_pod().annotate(TYPE, "shared").annotate("gpu-memory", "2000").obj()
    workload = read_workload(pod, "lab", {}, policy).workload

    assert workload is not None
    assert [each.card for each in workload.requested_accelerators] == ["nvidia.com/gpu"]
    assert workload.any_product is not None
    assert workload.any_product.listed == ("L4",)


@pytest.mark.parametrize(
    ("pod", "card"),
    [
        (kai("0.5"), "nvidia.com/gpu"),
        (requesting(**{"volcano.sh/vgpu-number": 1}), "nvidia.com/gpu"),
        (requesting(**{"nvidia.com/gpumem": 3000}), "nvidia.com/gpu"),
        (requesting(**{"cambricon.com/vmlu": 1}), "cambricon.com/mlu"),
    ],
    ids=["KAI", "Volcano", "HAMi", "HAMi with another vendor"],
)
def test_a_pod_with_cards_by_another_name_gets_only_products_of_its_namespace(pod: PodBuilder, card: str) -> None:
    policy = policy_with(namespaceLimits=[{"namespaces": ["lab"], "products": ["L4"]}])
    workload = read_workload(pod.obj(), "lab", {TYPE: "inference"}, policy).workload
    assert workload is not None
    terms: Any = mutate(pod.obj(), workload, policy, RULES).pod["spec"]["affinity"]["nodeAffinity"]

    required = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"key": f"{card}.product", "operator": "In", "values": ["L4"]} in required[0]["matchExpressions"]

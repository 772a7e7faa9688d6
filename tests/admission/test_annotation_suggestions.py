"""Suggestions name annotations where those make the pod fit; each is proven by the pod that has them."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from tests.support.admission import PRODUCT, TYPE, USAGE, admit_pod, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.admission.annotation_suggestions import as_annotation_changes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Denied
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Allowed
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.kube.deadline import never
from webhook.placement.framework.result import Placement, PlacementVerdict, Remedy
from webhook.placement.waiting.assumed_pods import AssumedPod, AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.policy.policy import Policy

DOMAIN = "maip.mxsf.io"
CARD = "nvidia.com/gpu"
SUGGESTION = "placement check: suggestion: "


def gpus(name: str, usage: str, product: str, *, taints: bool = True, memory: int = 97871, **labels: Any) -> NodeInfo:
    """Return an empty node with 8 cards, in a pool that keeps other pods away."""
    cards = {f"{CARD}.product": product, f"{CARD}.memory": str(memory), f"{CARD}.count": "8"}
    driver = {"nvidia.com/cuda.driver-version.major": "535"}
    tainted = [f"{USAGE}={usage}:NoSchedule", f"{CARD}.product={product}:NoSchedule"] if taints else []
    return node(name, labels={USAGE: usage, **cards, **driver, **labels}, taints=tainted, capacity={CARD: 8, "cpu": 64})


A100 = [gpus(f"a100-{number}", "training", "NVIDIA-A100-SXM4-80GB", memory=81251) for number in range(3)]
H20 = gpus("h20", "training", "NVIDIA-H20")
L40S = gpus("l40s", "inference", "NVIDIA-L40S", memory=46068)


def training(**annotations: str) -> PodBuilder:
    pod = make_pod("trainer").gpu(4).annotate(TYPE, "training")
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return pod


def suggestion(pod: PodBuilder, nodes: list[NodeInfo], policy: Policy) -> str:
    """Return the suggestion that the user of the pod gets at admission."""
    verdict = admit_pod(pod.obj(), policy, cluster=ClusterView(Snapshot.of(nodes), scheduler_for(policy)))
    if isinstance(verdict, Denied):
        return verdict.denial.message.partition(" Suggestion: ")[2].removesuffix(".")
    (found,) = [each.removeprefix(SUGGESTION) for each in verdict.warnings if each.startswith(SUGGESTION)]
    return found


BOTH_POOLS = policy_with(
    workloadTypes={
        "training": {"nodeUsage": {"allow": ["training"]}},
        "inference": {"nodeUsage": {"allow": ["inference", "training"]}},
    }
)


def test_another_type_is_suggested_for_a_node_whose_taint_is_not_that_of_its_label() -> None:
    mixed = node(
        "n", labels={USAGE: "training"}, taints=[f"{USAGE}=inference:NoSchedule"], capacity={CARD: 8, "cpu": 64}
    )

    assert suggestion(training(), [mixed], BOTH_POOLS) == f"set {TYPE}: inference instead of training: 1 node would fit"


CASES = [
    pytest.param(
        training(gpu_product="NVIDIA-H20"),
        A100,
        {PRODUCT: "NVIDIA-A100-SXM4-80GB"},
        f"set {PRODUCT}: NVIDIA-A100-SXM4-80GB instead of NVIDIA-H20: 3 nodes would fit",
        id="another product",
    ),
    pytest.param(
        training(gpu_product="NVIDIA-L40S"),
        [L40S],
        {TYPE: "inference"},
        f"set {TYPE}: inference instead of training: 1 node would fit",
        id="another workload type",
    ),
    pytest.param(
        training(gpu_product="NVIDIA-H20"),
        [gpus("l40s", "inference", "NVIDIA-L40S", taints=False)],
        {TYPE: "inference", PRODUCT: "NVIDIA-L40S"},
        f"set {TYPE}: inference instead of training and {PRODUCT}: NVIDIA-L40S instead of NVIDIA-H20: 1 node would fit",
        id="both",
    ),
    pytest.param(
        training(gpu_product="NVIDIA-H20", gpu_memory="141Gi"),
        [H20],
        {f"{DOMAIN}/gpu-memory": "95Gi"},
        f"set {DOMAIN}/gpu-memory: 95Gi instead of 141Gi: 1 node would fit",
        id="less memory",
    ),
    pytest.param(
        training(gpu_product="NVIDIA-H20", gpu_driver="550"),
        [H20],
        {f"{DOMAIN}/gpu-driver": "535"},
        f"set {DOMAIN}/gpu-driver: 535 instead of 550: 1 node would fit",
        id="an older driver",
    ),
    pytest.param(
        training(gpu_product="NVIDIA-H20", gpu_count="16"),
        [H20],
        {f"{DOMAIN}/gpu-count": "8"},
        f"set {DOMAIN}/gpu-count: 8 instead of 16: 1 node would fit",
        id="fewer cards on the node",
    ),
]


@pytest.mark.parametrize(("pod", "nodes", "annotations", "wanted"), CASES)
@pytest.mark.parametrize("mode", ["warn", "deny"])
def test_the_suggestion_names_the_annotation(
    pod: PodBuilder, nodes: list[NodeInfo], annotations: dict[str, str], wanted: str, mode: str
) -> None:
    assert suggestion(pod, nodes, policy_with(placementCheck={"mode": mode})) == wanted


@pytest.mark.parametrize(("pod", "nodes", "annotations", "wanted"), CASES)
def test_the_annotated_pod_fits_on_as_many_nodes_as_it_says(
    pod: PodBuilder, nodes: list[NodeInfo], annotations: dict[str, str], wanted: str
) -> None:
    annotated = pod
    for key, value in annotations.items():
        annotated = annotated.annotate(key, value)
    policy = policy_with()

    verdict = admit_pod(annotated.obj(), policy, cluster=ClusterView(Snapshot.of(nodes), scheduler_for(policy)))

    assert verdict.outcome == "Patched"
    assert verdict.placement is not None
    assert verdict.placement.verdict == "Feasible"
    assert wanted.endswith(f": {verdict.placement.feasible} node{'s' * (verdict.placement.feasible > 1)} would fit")


@pytest.mark.parametrize(
    ("pod", "nodes", "policy"),
    [
        pytest.param(
            training(gpu_product="NVIDIA-H20"),
            [node("n", labels=H20.node.labels, taints=["team=a:NoSchedule"], capacity={CARD: 8})],
            policy_with(),
            id="a taint that no annotation names",
        ),
        pytest.param(
            training(gpu_product="NVIDIA-H20"),
            A100,
            policy_with(allowedProducts={"NVIDIA-A100*": ["team-llm"]}),
            id="a product that the namespace may not ask for",
        ),
        pytest.param(training().node_selector("zone", "a"), [H20], policy_with(), id="a nodeSelector of the user"),
        pytest.param(
            training(gpu_product="NVIDIA-L40S"),
            [L40S],
            policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}}),
            id="a pool of no other type",
        ),
    ],
)
def test_what_no_annotation_can_state_stays_in_terms_of_the_scheduler(
    pod: PodBuilder, nodes: list[NodeInfo], policy: Policy
) -> None:
    assert not suggestion(pod, nodes, policy).startswith("set ")


def test_a_denial_with_a_suggestion_does_not_call_the_pod_impossible() -> None:
    policy = policy_with(placementCheck={"mode": "deny"})
    pod = training(gpu_product="NVIDIA-H20").obj()

    verdict = admit_pod(pod, policy, cluster=ClusterView(Snapshot.of(A100), scheduler_for(policy)))

    assert isinstance(verdict, Denied)
    assert verdict.denial.message.startswith("no node of this cluster can take this pod as it is: 0/3 nodes are ")
    assert verdict.denial.message.endswith(" 3 nodes would fit.")


CPU_ONLY = make_pod("launcher").requests(cpu=1).annotate(TYPE, "training")
PLAIN = node("plain", capacity={"cpu": 64})


def admitted(pod: PodBuilder, policy: Policy, nodes: Snapshot) -> Allowed:
    verdict = admit_pod(pod.obj(), policy, cluster=ClusterView(nodes, scheduler_for(policy, suggestions=3)))
    assert verdict.outcome == "Patched"
    return verdict


@pytest.mark.parametrize(
    ("defaults", "remedy"),
    [
        pytest.param({}, f"remove {TYPE}", id="its own type"),
        pytest.param({TYPE: "inference"}, "set withoutAccelerator: leave in the policy", id="one of its namespace"),
    ],
)
def test_a_pod_without_a_card_is_asked_to_do_without_the_type(defaults: dict[str, str], remedy: str) -> None:
    nodes = replace(Snapshot.of([*A100, PLAIN]), namespaces={"default": Namespace({}, defaults)})

    found = admitted(CPU_ONLY, policy_with(withoutAccelerator="inject"), nodes).warnings[-1]

    assert found == f"{SUGGESTION}{remedy}, since the pod requests no accelerator: 1 node would fit"


@pytest.mark.parametrize("asked", [{}, {"gpu-product": "NVIDIA-H20"}, {"gpu-memory": "200Gi"}])
def test_a_pod_without_a_card_is_never_asked_for_an_annotation_about_cards(asked: dict[str, str]) -> None:
    pod = CPU_ONLY
    for key, value in asked.items():
        pod = pod.annotate(f"{DOMAIN}/{key}", value)

    placement = admitted(pod, policy_with(), Snapshot.of(A100)).placement

    assert placement.suggestions
    assert not [each for each in placement.suggestions if each.startswith("set ")]


def test_a_pod_without_a_card_is_not_sent_to_several_products() -> None:
    placement = admitted(CPU_ONLY, policy_with(), Snapshot.of([*A100, H20])).placement

    assert placement.suggestions == (
        "3 nodes would fit if the pod tolerated nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB",
    )


def test_what_is_not_about_products_is_suggested_beside_doing_without_the_type() -> None:
    taints = [f"{USAGE}=training:NoSchedule", "spot=true:NoSchedule"]
    spot = node("spot", labels={USAGE: "training"}, taints=taints, capacity={"cpu": 64})

    placement = admitted(CPU_ONLY, policy_with(), Snapshot.of([spot, PLAIN])).placement

    assert placement.suggestions[:2] == (
        f"remove {TYPE}, since the pod requests no accelerator: 1 node would fit",
        "1 node would fit if the pod tolerated spot=true",
    )


def test_the_annotations_that_a_pod_without_a_card_is_asked_to_remove_include_its_type() -> None:
    """Without a product it would tolerate no node of the pool, so the next answer would be that it fits nowhere."""
    warnings = admit_pod(CPU_ONLY.annotate(PRODUCT, "NVIDIA-H20").obj(), policy_with()).warnings

    assert [each.partition(", or remove ")[2] for each in warnings] == [f"{TYPE}, {PRODUCT}"]


@pytest.mark.parametrize(
    ("usage", "product", "question"),
    [
        pytest.param("training", "NVIDIA-H20", "; did you mean NVIDIA-H20?", id="the product that is meant"),
        pytest.param("inference", "NVIDIA-A100-SXM4-80GB", "", id="another one, which works"),
    ],
)
def test_one_product_is_suggested_and_one_that_works(usage: str, product: str, question: str) -> None:
    nodes = Snapshot.of([*A100, gpus("h20", usage, "NVIDIA-H20")])

    verdict = admitted(training(gpu_product="NVIDIA-H2O"), policy_with(), nodes)

    named = [each.partition(" instead of ")[0] for each in verdict.placement.suggestions if f"{PRODUCT}: " in each]
    assert named == [f"set {PRODUCT}: {product}"]
    assert [each for each in verdict.warnings if each.startswith("gpu-product: ")] == [
        f"gpu-product: no node has NVIDIA-H2O{question}"
    ]


def test_the_suggestion_counts_no_room_of_pods_that_wait() -> None:
    policy, base = policy_with(), Snapshot.of(A100)
    waits = RunningPod.of(make_pod("waits").gpu(8).obj()).assumed_on("a100-0", 0)
    texts = []
    for pods in ({}, {"waits": AssumedPod(waits, 0)}):
        view = ClusterView(base, scheduler_for(policy), assumed=AssumedPods(base, pods))
        verdict = admit_pod(training(gpu_product="NVIDIA-H20").obj(), policy, cluster=view)
        texts += [each for each in verdict.warnings if each.startswith(SUGGESTION)]

    assert ["3 nodes" in texts[0], "3 nodes" in texts[1], "2 nodes" in texts[1]] == [True, False, True], texts


def test_the_patch_does_not_depend_on_the_suggestion() -> None:
    pod, policy = training(gpu_product="NVIDIA-H20").obj(), policy_with()
    with_view = admit_pod(pod, policy, cluster=ClusterView(Snapshot.of(A100), scheduler_for(policy)))
    without = admit_pod(pod, policy)

    assert with_view.outcome == "Patched"
    assert without.outcome == "Patched"
    assert with_view.operations == without.operations


TOLERATE, OTHER = "it would fit if the pod tolerated the pool", "it would fit with less memory"


def changed(
    pod: PodBuilder,
    keys: set[str] | None,
    *,
    fits: bool = True,
    verdict: PlacementVerdict = "Infeasible",
    defaults: dict[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the suggestions for `pod` after one about `keys` of the node h20 and another one.

    `fits` states whether two nodes take any other pod.
    """
    snapshot, policy = Snapshot.of([H20]), policy_with(withoutAccelerator="inject")
    remedy = Remedy(TOLERATE, "h20", None if keys is None else frozenset(keys), lambda info, nodes: (info, nodes))
    placement = Placement(verdict, None, 1, 0, "", suggestions=(TOLERATE, OTHER), remedies=(remedy,))

    def place(_: WaitingPod) -> Placement:
        return Placement("Feasible" if fits else "Infeasible", "h20", 1, 2 if fits else 0, "")

    content = PodContent(make_request(pod.obj()), defaults or {})
    return as_annotation_changes(content, policy, placement, snapshot, place, never).suggestions


TYPED, UNTYPED = training(), make_pod("trainer").gpu(4)
POOL, PRODUCT_TAINT = {USAGE}, {f"{CARD}.product"}
SET_TYPE, SET_PRODUCT = f"set {TYPE}: training: 2 nodes would fit", f"set {PRODUCT}: NVIDIA-H20: 2 nodes would fit"
REMOVE = f"remove {TYPE}, since the pod requests no accelerator: 2 nodes would fit"


@pytest.mark.parametrize(
    ("pod", "keys", "fits", "wanted"),
    [
        # With a type, the annotation replaces what the scheduler suggests; without one, it comes before it.
        pytest.param(TYPED, PRODUCT_TAINT, True, (SET_PRODUCT,), id="typed"),
        pytest.param(UNTYPED, POOL, True, (f"set {TYPE}: training: 2 nodes would fit", TOLERATE, OTHER), id="untyped"),
        pytest.param(TYPED, PRODUCT_TAINT, False, (TOLERATE, OTHER), id="not proven"),
        pytest.param(TYPED, {"team"}, True, (TOLERATE, OTHER), id="another key"),
        pytest.param(TYPED, PRODUCT_TAINT | {"team"}, True, (TOLERATE, OTHER), id="and another key"),
        pytest.param(TYPED, None, True, (TOLERATE, OTHER), id="something else"),
        # A pod without a card: its type is the reason, and no product is suggested then.
        pytest.param(CPU_ONLY, PRODUCT_TAINT, True, (REMOVE, OTHER), id="no card, product"),
        pytest.param(CPU_ONLY, {"team"}, True, (REMOVE, TOLERATE, OTHER), id="no card, other"),
        pytest.param(CPU_ONLY, PRODUCT_TAINT, False, (TOLERATE, OTHER), id="no card, nothing fits"),
        pytest.param(make_pod("cpu"), {"team"}, True, (TOLERATE, OTHER), id="no card, no type"),
    ],
)
@pytest.mark.parametrize("verdict", get_args(PlacementVerdict))
def test_annotations_replace_the_suggestions_of_the_scheduler_that_they_state(
    pod: PodBuilder,
    keys: set[str] | None,
    wanted: tuple[str, ...],
    verdict: PlacementVerdict,
    *,
    fits: bool,
) -> None:
    found = changed(pod, keys, fits=fits, verdict=verdict)
    is_asked = verdict in ("Waiting", "Infeasible")
    # The second suggestion has no remedy, so it only stays next to a proven one for a pod without a type.
    kept = [each for each in wanted if each != OTHER]
    assert [each for each in found if each != OTHER] == (kept if is_asked else [TOLERATE])


@pytest.mark.parametrize(
    ("own", "of_namespace"),
    [("NVIDIA-A10", ""), ("", "NVIDIA-A10"), ("NVIDIA-A10", "NVIDIA-L40S")],
    ids=["of the pod", "of its namespace", "of both, where that of the pod is in force"],
)
def test_the_value_that_is_replaced_is_named_wherever_it_stands(own: str, of_namespace: str) -> None:
    pod = training(gpu_product=own) if own else TYPED
    found = changed(pod, PRODUCT_TAINT, defaults={PRODUCT: of_namespace} if of_namespace else {})

    assert found[0] == f"set {PRODUCT}: NVIDIA-H20 instead of NVIDIA-A10: 2 nodes would fit"


def test_without_a_card_a_type_of_the_namespace_is_left_to_the_policy() -> None:
    text = "set withoutAccelerator: leave in the policy, since the pod requests no accelerator: 2 nodes would fit"

    assert changed(make_pod("cpu"), POOL, defaults={TYPE: "training"})[0] == text
    assert changed(CPU_ONLY, POOL, defaults={TYPE: "training"})[0] == text
    assert changed(CPU_ONLY, POOL)[0] == REMOVE

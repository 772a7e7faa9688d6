"""Warnings about what a pod names and the view of the cluster does not have."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.acceptance.placing.pools import CARD, H20, pool_node, training_pod
from tests.support.admission import DOMAIN, PRODUCT, TYPE, admit_pod, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.views import made_anew
from tests.support.work import calls_of
from webhook.admission.cluster_view import ClusterView
from webhook.backends.references import PodReferences
from webhook.cluster.index.labels import LabelColumns
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.kube.api.review_answer import fit_warnings
from webhook.placement.reasons.cluster_warnings import unknown_products
from webhook.placement.scheduler import Scheduler
from webhook.policy.policy import Policy
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS

Object = dict[str, Any]

_NODES = [pool_node("train-1", "training"), pool_node("train-2", "training", "NVIDIA-A100-SXM4-80GB")]


def about(
    subject: str,
    pod: PodBuilder,
    *objects: Object,
    policy: Policy | None = None,
    stale: str = "",
    evidence: SchedulerEvidence | None = None,
) -> list[str]:
    """The warnings that begin with `subject`, with `objects` and `evidence` as the view of the cluster."""
    view = ClusterView(replace(made_anew(objects), scheduler_evidence=evidence), Scheduler(), stale)
    return [each for each in admit_pod(pod.obj(), policy, view).warnings if each.startswith(subject)]


def about_products(products: str, *nodes: Object, **options: Any) -> list[str]:
    return about("gpu-product", training_pod("pod", product=products), *(nodes or _NODES), **options)


@pytest.mark.parametrize(
    ("products", "warnings"),
    [
        pytest.param(H20, [], id="known"),
        pytest.param("NVIDIA-H2O", ["NVIDIA-H2O; did you mean NVIDIA-H20?"], id="one wrong character"),
        pytest.param("nvidia-h20", ["nvidia-h20; did you mean NVIDIA-H20?"], id="case"),
        pytest.param("H20", ["H20; did you mean NVIDIA-H20?"], id="without the vendor"),
        pytest.param("NVIDIA-A100", ["NVIDIA-A100; did you mean NVIDIA-A100-SXM4-80GB?"], id="without the form"),
        pytest.param("NVIDIA-B300", ["NVIDIA-B300"], id="nothing similar"),
        pytest.param(f"{H20},NVIDIA-B300", [], id="an alternative that another cluster has"),
        pytest.param(f"{H20},NVIDIA-H2", [], id="an alternative similar to a known one that is named"),
        pytest.param(f"{H20},NVIDIA-A100", ["NVIDIA-A100; did you mean NVIDIA-A100-SXM4-80GB?"], id="a typo of two"),
        pytest.param("NVIDIA-B300,NVIDIA-L4", ["NVIDIA-B300, NVIDIA-L4"], id="both of two"),
        pytest.param("b-1,b-2,b-3,b-4,b-5", ["b-1, b-2, b-3 and 2 more"], id="many"),
        pytest.param(f"{H20},{H20}-SHARED", [], id="a variant that no node has, beside its product"),
        pytest.param("NVIDIA-A100-SXM4,NVIDIA-A100-SXM4-80GB", [], id="only its variant"),
    ],
)
def test_product_that_no_node_has_is_named(products: str, warnings: list[str]) -> None:
    assert about_products(products) == [f"gpu-product: no node has {each}" for each in warnings]


def test_product_whose_variant_is_known_and_named_is_no_typing_error() -> None:
    nodes = [pool_node(name, "training", f"NVIDIA-A100-SXM4-{name}GB") for name in ("40", "80")]
    assert about_products("NVIDIA-A100-SXM4,NVIDIA-A100-SXM4-80GB", *nodes) == []


def test_pods_of_one_template_share_the_search_for_the_products_of_the_nodes() -> None:
    snapshot = made_anew([pool_node(f"n-{number}", "training", f"NVIDIA-X{number}") for number in range(40)])

    def work(product: str) -> int:
        references = PodReferences(BUILT_IN_ACCELERATORS[0], (product,), "default-scheduler")
        return calls_of(lambda: list(unknown_products(references, snapshot, ())))

    work("NVIDIA-Y40")
    first, second = work("NVIDIA-X4O"), work("NVIDIA-X4O")
    assert first > 10 * second


def test_cluster_without_product_labels_is_named_as_the_reason() -> None:
    plain = make_node_object("plain", capacity={"nvidia.com/gpu": 8})
    assert about_products(H20, plain) == [f"gpu-product: no node has {H20} (no node has the label {CARD})"]


def labelled(**labels: str) -> Object:
    keys = {"gke": "cloud.google.com/gke-accelerator", "memory": "karpenter.k8s.aws/instance-gpu-memory"}
    return make_node_object("node", labels={keys[name]: value for name, value in labels.items()})


def test_similar_label_of_the_product_is_named() -> None:
    (warning,) = about_products(H20, labelled(gke="nvidia-l4"))
    similar = "but some have cloud.google.com/gke-accelerator=nvidia-l4: name it in accelerators.labels.product"
    assert warning == f"gpu-product: no node has {H20} (no node has the label {CARD}, {similar} of the policy)"


@pytest.mark.parametrize(
    ("node", "similar"),
    [
        pytest.param(
            labelled(memory="22888"),
            ", but some have karpenter.k8s.aws/instance-gpu-memory=22888: name it in accelerators.labels.memory of the "
            "policy",
            id="similar",
        ),
        pytest.param(labelled(gke="nvidia-l4"), "", id="not similar"),
    ],
)
def test_amount_whose_label_no_node_has_is_reported(node: Object, similar: str) -> None:
    pod = training_pod("pod").annotate(f"{DOMAIN}/gpu-memory", "24Gi")
    assert about("gpu-memory", pod, node) == [f"gpu-memory: no node has the label nvidia.com/gpu.memory{similar}"]
    assert about("gpu-memory", pod, make_node_object("labelled", labels={"nvidia.com/gpu.memory": "24564"})) == []


def test_label_of_a_cloud_is_not_similar_on_nodes_with_cards_of_another_vendor() -> None:
    memory = {"karpenter.k8s.aws/instance-gpu-memory": "49152"}
    nvidia = make_node_object("l40s", labels=memory, capacity={"nvidia.com/gpu": 1})
    ascend = make_node_object("ascend", capacity={"huawei.com/Ascend910": 8})
    pod = make_pod("pod").annotate(TYPE, "training").annotate(f"{DOMAIN}/gpu-memory", "60Gi")
    pod = pod.gpu(1, "huawei.com/Ascend910")
    assert about("gpu-memory", pod, nvidia, ascend) == ["gpu-memory: no node has the label huawei.com/npu.memory"]


def test_amount_whose_label_a_node_template_has_is_not_reported() -> None:
    pod = training_pod("pod").annotate(f"{DOMAIN}/gpu-count", "8")
    template = {"name": "big", "labels": {"nvidia.com/gpu.count": "8"}, "capacity": {"cpu": "8"}}
    node = make_node_object("node")
    assert about("gpu-count", pod, node, policy=policy_with(nodeTemplates=[template])) == []
    assert about("gpu-count", pod, node) == ["gpu-count: no node has the label nvidia.com/gpu.count"]


def test_product_that_is_only_a_taint_is_known() -> None:
    assert about_products(H20, make_node_object("tainted", taints=[f"{CARD}={H20}:NoSchedule"])) == []


@pytest.mark.parametrize("field", ["labels", "taints"])
def test_product_of_a_node_template_is_known(field: str) -> None:
    given = {"labels": {CARD: "NVIDIA-B300"}, "taints": [{"key": CARD, "value": "NVIDIA-B300", "effect": "NoSchedule"}]}
    template = {"name": "new", "capacity": {"nvidia.com/gpu": "8"}, field: given[field]}
    assert about_products("NVIDIA-B300", policy=policy_with(nodeTemplates=[template])) == []


@pytest.mark.parametrize(
    ("variants", "warnings"),
    [
        pytest.param(["-SHARED"], [], id="accepted"),
        pytest.param([], [f"gpu-product: no node has {H20}; did you mean {H20}-SHARED?"], id="not accepted"),
    ],
)
def test_variant_that_the_policy_accepts_is_the_product(variants: list[str], warnings: list[str]) -> None:
    shared = pool_node("shared", "training", f"{H20}-SHARED")
    assert about_products(H20, shared, policy=policy_with(productVariants=variants)) == warnings


def test_unknown_product_is_named_without_its_variants() -> None:
    policy = policy_with(productVariants=["-SHARED"])
    assert about_products("NVIDIA-B300", policy=policy) == ["gpu-product: no node has NVIDIA-B300"]


@pytest.mark.parametrize(
    ("allowed", "product", "is_missing"),
    [
        pytest.param({"NVIDIA-H20*": ["team-b"]}, "", True, id="a pattern"),
        pytest.param({"NVIDIA-H20*": ["team-b"]}, "NVIDIA-A100-SXM4-80GB", False, id="with a product"),
        pytest.param({"NVIDIA-H20*": ["team-b"], "NVIDIA-A100-SXM4-80GB": ["*"]}, "", False, id="one is left"),
        pytest.param({"NVIDIA-H20": ["team-b"]}, "", False, id="a product, which affinity excludes"),
        pytest.param({}, "", False, id="no restriction"),
    ],
)
def test_pod_that_must_name_a_product_is_warned(allowed: Object, product: str, is_missing: bool) -> None:
    """Node selectors cannot exclude a pattern, so the pod tolerates no product that the policy does not list."""
    nodes = [
        make_node_object(name, labels={CARD: name}, taints=[f"{CARD}={name}:NoSchedule"])
        for name in (H20, "NVIDIA-A100-SXM4-80GB")
    ]
    pod = make_pod("pod").gpu(1).annotate(TYPE, "training")
    pod = pod.annotate(PRODUCT, product) if product else pod

    warnings = about("gpu-product", pod, *nodes, policy=policy_with(allowedProducts=allowed))

    assert [each.startswith("gpu-product is missing: ") for each in fit_warnings(warnings)] == [True] * is_missing
    assert not is_missing or fit_warnings(warnings)[0].endswith("name a product that the namespace may use")


def test_no_warning_without_a_current_view() -> None:
    pod = training_pod("pod", product="NVIDIA-H2O")
    assert about_products("NVIDIA-H2O", stale="the view is too old") == []
    assert admit_pod(pod.obj()).warnings == ()
    assert about("gpu-product", pod) == []


def test_no_warning_with_the_check_off() -> None:
    pod = training_pod("pod", product="NVIDIA-H2O").annotate(f"{DOMAIN}/placement-check", "off")
    assert about("gpu-product", pod, *_NODES) == []


def test_denied_pod_has_the_warning_too() -> None:
    pod = training_pod("pod", product="NVIDIA-H2O").annotate(f"{DOMAIN}/placement-check", "deny")
    assert about("gpu-product", pod, *_NODES) == ["gpu-product: no node has NVIDIA-H2O; did you mean NVIDIA-H20?"]


def test_long_lists_are_compared_with_a_few_products_only() -> None:
    """A comparison takes time, and a user can name a hundred products in a cluster whose nodes have as many."""
    nodes = [pool_node(f"n{number}", "training", f"{'x' * 50}-{number:03}") for number in range(60)]
    warnings = about_products(",".join(f"{'x' * 50}_{number:03}" for number in range(20)), *nodes)
    assert [each for each in warnings if "did you mean" in each] == warnings[:2]
    assert warnings[2].endswith("and 15 more")


def test_values_of_a_label_are_those_that_nodes_have() -> None:
    columns = LabelColumns([{"x": "a"}, {"x": "b"}, {}])
    assert columns.values("x") == {"a", "b"}
    assert columns.values("y") == set()
    assert columns.with_rows_moved(np.array([1, 2])).values("x") == {"b"}


def _anti_affinity(**namespaces: Any) -> Object:
    term = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname", **namespaces}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


_ANTI_AFFINITY = _anti_affinity(namespaces=["other"])
_NOT_PACKED = training_pod("pod").annotate(f"{DOMAIN}/bin-packing", "false")
_BY_THE_HINT = (
    "quota full (CrossNamespacePodAffinity) denies this pod: the packing hint selects pods of all namespaces; set "
    'binPacking.namespaces: same in the policy, or maip.mxsf.io/bin-packing: "false"'
)
_BY_THE_USER = (
    "quota full (CrossNamespacePodAffinity) denies this pod: spec.affinity selects pods of other namespaces; drop "
    "those terms"
)

_BY_BOTH = (
    "quota full (CrossNamespacePodAffinity) denies this pod: spec.affinity and the packing hint select pods of other "
    "namespaces; drop those terms, and set binPacking.namespaces: same in the policy"
)


def quota(used: str = "0", *, name: str = "full", namespace: str = "default", hard: str = "0", **spec: Any) -> Object:
    """A quota of pods with affinity across namespaces, by default for none."""
    spec = {"scopes": ["CrossNamespacePodAffinity"], **spec}
    status = {"hard": {"pods": hard}, "used": {"pods": used}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec, "status": status}


_BY_SELECTOR = {"matchExpressions": [{"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("pod", "quotas", "warnings"),
    [
        pytest.param(training_pod("pod"), [quota()], [_BY_THE_HINT], id="none allowed"),
        pytest.param(training_pod("pod"), [quota("2", hard="2")], [_BY_THE_HINT], id="exhausted"),
        pytest.param(training_pod("pod"), [quota("1", hard="2")], [], id="room for one"),
        pytest.param(
            training_pod("pod"), [quota(scopes=[], scopeSelector=_BY_SELECTOR)], [_BY_THE_HINT], id="selector"
        ),
        pytest.param(training_pod("pod"), [quota(scopes=[])], [], id="a quota of all pods"),
        pytest.param(
            training_pod("pod"),
            [
                quota(
                    scopeSelector={
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                    }
                )
            ],
            [],
            id="of some pods only",
        ),
        pytest.param(training_pod("pod"), [quota(namespace="other")], [], id="of another namespace"),
        pytest.param(training_pod("pod"), [], [], id="no quota"),
        pytest.param(_NOT_PACKED, [quota()], [], id="not packed"),
        pytest.param(_NOT_PACKED.affinity(_ANTI_AFFINITY), [quota()], [_BY_THE_USER], id="terms of the user"),
        pytest.param(
            _NOT_PACKED.affinity(_anti_affinity(namespaces=["default"])), [quota()], [], id="its own namespace"
        ),
        pytest.param(_NOT_PACKED.affinity(_anti_affinity()), [quota()], [], id="no namespace is named"),
        pytest.param(
            _NOT_PACKED.affinity(_anti_affinity(namespaces=["default", "other"])),
            [quota()],
            [_BY_THE_USER],
            id="its own namespace and another one",
        ),
        pytest.param(
            _NOT_PACKED.affinity(_anti_affinity(namespaceSelector={"matchLabels": {"team": "b"}})),
            [quota()],
            [_BY_THE_USER],
            id="a selector of namespaces",
        ),
        pytest.param(
            _NOT_PACKED.affinity(_anti_affinity(namespaces=["default"], namespaceSelector={"matchLabels": {"a": "b"}})),
            [quota()],
            [_BY_THE_USER],
            id="a selector beside its own namespace",
        ),
        pytest.param(training_pod("pod").affinity(_ANTI_AFFINITY), [quota()], [_BY_BOTH], id="both"),
        pytest.param(training_pod("pod"), [quota(name="open", hard="9"), quota()], [_BY_THE_HINT], id="two quotas"),
    ],
)
def test_quota_that_denies_a_packed_pod_is_named(pod: PodBuilder, quotas: list[Object], warnings: list[str]) -> None:
    assert about("quota", pod, *_NODES, *quotas) == warnings


@pytest.mark.parametrize("pod", [training_pod("pod"), training_pod("pod").affinity(_ANTI_AFFINITY)])
def test_warning_about_a_quota_is_not_cut_by_the_api_server(pod: PodBuilder) -> None:
    (warning,) = about("quota", pod, *_NODES, quota(name="q" * 253))
    assert len(warning.encode()) <= 256


_NO_SIGN = SchedulerEvidence(frozenset({"apps"}), "kube-scheduler\nmaster-1_3f2a")
_NO_VOLCANO = (
    "scheduler volcano: no sign that it runs: no API group scheduling.volcano.sh, no Lease and no bound pod names it. "
    "Without it, the pod stays Pending"
)
_NO_PROFILE = (
    "scheduler binpack-scheduler: no sign that it runs: no Lease and no bound pod names it. Without it, the pod stays "
    "Pending; a new profile of kube-scheduler has its first sign with its first pod"
)
_BOUND = make_pod("bound").node_name("train-1").scheduler("volcano").obj()
_ENDED = make_pod("ended").node_name("train-1").scheduler("volcano").status(phase="Succeeded").obj()


@pytest.mark.parametrize(
    ("evidence", "pods", "warnings"),
    [
        pytest.param(_NO_SIGN, [], [_NO_VOLCANO], id="no sign"),
        pytest.param(None, [], [], id="groups and Leases not known"),
        pytest.param(SchedulerEvidence(frozenset({"scheduling.volcano.sh"}), ""), [], [], id="API group"),
        pytest.param(SchedulerEvidence(frozenset(), "a\nvolcano\nb"), [], [], id="name of a Lease"),
        pytest.param(SchedulerEvidence(frozenset(), "volcano-7d4b9_3f2a"), [], [], id="holder of a Lease"),
        pytest.param(_NO_SIGN, [_BOUND], [], id="bound pod"),
        pytest.param(_NO_SIGN, [_ENDED], [_NO_VOLCANO], id="pod that has ended"),
        pytest.param(
            _NO_SIGN, [make_pod("other").node_name("train-1").obj()], [_NO_VOLCANO], id="pod of the default scheduler"
        ),
    ],
)
def test_scheduler_without_a_sign_is_named(
    evidence: SchedulerEvidence | None, pods: list[Object], warnings: list[str]
) -> None:
    assert about("scheduler", training_pod("pod"), *_NODES, *pods, evidence=evidence) == warnings


@pytest.mark.parametrize(
    ("scheduler", "warnings"),
    [
        pytest.param("default-scheduler", [], id="the default scheduler"),
        pytest.param("someone-elses", [], id="not of the policy"),
        pytest.param(
            "binpack-scheduler",
            [_NO_PROFILE],
            id="a profile",
        ),
    ],
)
def test_scheduler_that_the_user_names(scheduler: str, warnings: list[str]) -> None:
    pod = training_pod("pod").annotate(TYPE, "inference").scheduler(scheduler)
    assert about("scheduler", pod, *_NODES, evidence=_NO_SIGN) == warnings


def test_no_warning_about_a_scheduler_without_a_current_view_or_a_check() -> None:
    pod = training_pod("pod")
    assert about("scheduler", pod, *_NODES, evidence=_NO_SIGN, stale="the view is too old") == []
    assert about("scheduler", pod.annotate(f"{DOMAIN}/placement-check", "off"), *_NODES, evidence=_NO_SIGN) == []


def test_warning_about_a_scheduler_is_not_cut_by_the_api_server() -> None:
    name = "s" * 63
    policy = policy_with(allowedSchedulers=["volcano", name])
    pod = training_pod("pod").annotate(f"{DOMAIN}/scheduler", name)
    (warning,) = about("scheduler", pod, *_NODES, policy=policy, evidence=_NO_SIGN)
    assert len(warning.encode()) <= 256

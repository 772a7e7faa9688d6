"""Limits of namespaces: which entry holds, and the errors of entries that contradict the rest of the policy."""

import json
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.documents.field import InvalidInput
from webhook.mutation.workload.workload import WorkloadReading, read_workload
from webhook.policy.loader import parse_policy
from webhook.policy.products import AnyProduct, any_product, limits_of, may_use_product

SPEC = {"namespaceLimits": [{"namespaces": ["lab-*"], "maxCardsPerPod": 1}, {"namespaces": ["*"], "maxCardsPerPod": 8}]}


@pytest.mark.parametrize(("namespace", "wanted"), [("lab-a", 1), ("lab", 8), ("other", 8)])
def test_the_first_entry_that_matches_holds(namespace: str, wanted: int) -> None:
    limits = limits_of(policy_with(**SPEC).spec, namespace)

    assert limits is not None
    assert limits.max_cards_per_pod == wanted


def test_a_namespace_without_an_entry_has_no_limits() -> None:
    assert limits_of(policy_with(namespaceLimits=[{"namespaces": ["lab-*"]}]).spec, "team-a") is None


@pytest.mark.parametrize(
    ("product", "wanted"),
    [("NVIDIA-L4", True), ("NVIDIA-L4-SHARED", True), ("NVIDIA-L40", False), ("NVIDIA-A100-X", True), ("X", False)],
)
def test_a_product_includes_its_variants(product: str, wanted: bool) -> None:
    limits = [{"namespaces": ["lab"], "products": ["NVIDIA-L4", "NVIDIA-A100*"]}]
    spec = policy_with(namespaceLimits=limits, productVariants=["-SHARED"]).spec

    assert may_use_product(spec, product, "lab") is wanted
    assert may_use_product(spec, product, "team-a")


@pytest.mark.parametrize(
    ("products", "spec", "wanted"),
    [
        (["A", "B"], {}, AnyProduct(listed=("A", "B"), is_required=True)),
        (["A", "B"], {"productAffinity": False}, AnyProduct(listed=("A", "B"))),
        (["A"], {"productVariants": ["-SHARED"]}, AnyProduct(listed=("A", "A-SHARED"), is_required=True)),
        (["A*"], {}, AnyProduct(listed=())),
        (["A*"], {"allowedProducts": {"A1": ["lab"], "A2": [], "B": ["lab"]}}, AnyProduct(listed=("A1",))),
        ([], {}, AnyProduct(listed=(), is_required=True)),
    ],
    ids=str,
)
def test_a_pod_that_names_no_product_may_use_those_of_the_limits(
    products: list[str], spec: dict[str, Any], wanted: AnyProduct
) -> None:
    policy = policy_with(namespaceLimits=[{"namespaces": ["lab"], "products": products}], **spec)

    assert any_product(policy.spec, "lab") == wanted
    assert any_product(policy.spec, "other").listed is None


def limit(**fields: Any) -> list[dict[str, Any]]:
    return [{"namespaces": ["lab"], **fields}]


QUEUE = "must be a queue like research, or a pattern with * such as team-a-*"
UNKNOWN = 'has no workload type "x": workloadTypes are training, inference'
NO_VOLCANO = 'must hold "volcano", the schedulerName of workloadTypes.training, or workloadTypes must not'
HIDDEN = "spec.namespaceLimits[0] comes first for one of them, so this entry does not hold for it"
TWO = [*limit(), {"namespaces": ["lab", "team"]}]


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ([{}], ["[0].namespaces: Required value: must be set"]),
        ([{"namespaces": []}], ["[0].namespaces: Invalid value: []; must hold at least one value"]),
        (limit(maxCardsPerPod=True), ["[0].maxCardsPerPod: Invalid value: true; must be an integer"]),
        (limit(queues=["a b"]), [f'[0].queues[0]: Invalid value: "a b"; {QUEUE}']),
        (limit(workloadTypes=["x"]), [f'[0].workloadTypes: Invalid value: ["x"]; {UNKNOWN}']),
        (limit(schedulers=["mine"]), [f'[0].schedulers: Invalid value: ["mine"]; {NO_VOLCANO}']),
        (limit(schedulers=["mine"], workloadTypes=["inference"]), []),
        (TWO, [f'[1].namespaces: Invalid value: ["lab", "team"]; {HIDDEN}']),
        (
            [*limit(), *limit(), *limit()],
            [f'[{each}].namespaces: Invalid value: ["lab"]; {HIDDEN}' for each in (1, 2)],
        ),
    ],
    ids=str,
)
def test_an_entry_is_checked_against_the_policy(limits: list[dict[str, Any]], wanted: list[str]) -> None:
    head = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
    try:
        parse_policy(json.dumps({**head, "spec": {"namespaceLimits": limits}}), "p.yaml")
    except InvalidInput as error:
        found = [str(each).removeprefix("p.yaml: spec.namespaceLimits") for each in error.errors]
    else:
        found = []

    assert found == wanted


LIMITED: dict[str, Any] = {
    "workloadTypes": {
        "training": {"nodeUsage": {"allow": ["training"]}},
        "inference": {"nodeUsage": {"allow": ["inference"]}},
        "closed": {"nodeUsage": {"allow": ["training"]}, "allowedNamespaces": ["team-*"]},
    },
    "allowedSchedulers": ["default-scheduler", "volcano", "kai-scheduler"],
    "allowedProducts": {"H20": ["lab", "team-a"], "A10": ["team-a"]},
    "namespaceLimits": [
        {
            "namespaces": ["lab"],
            "workloadTypes": ["training", "closed"],
            "products": ["H20", "L4*"],
            "schedulers": ["volcano"],
            "queues": ["lab-*"],
            "maxCardsPerPod": 2,
        },
        {"namespaces": ["bare"]},
    ],
}
TYPE_KEY = "workload-type"
# An annotation and its value, and the denial in the namespace `lab`, or "" if the namespace may use it.
VALUES = [
    (TYPE_KEY, "training", ""),
    (TYPE_KEY, "inference", 'may not ask for workload type "inference"; allowed workload types: training, closed'),
    (TYPE_KEY, "closed", 'may not ask for workload type "closed"; allowed namespaces: team-*'),
    ("gpu-product", "H20", ""),
    ("gpu-product", "L40", ""),
    ("gpu-product", "A10", 'may not ask for product "A10"; allowed products: H20, L4*'),
    ("gpu-product", "H20,X", 'may not ask for product "X"; allowed products: H20, L4*'),
    ("scheduler", "volcano", ""),
    ("scheduler", "default-scheduler", ""),
    ("scheduler", "kai-scheduler", 'may not use scheduler "kai-scheduler"; allowed schedulers: volcano'),
    ("queue", "lab-1", ""),
    ("queue", " lab-1 ", ""),
    ("queue", "other", 'may not use queue "other"; allowed queues: lab-*'),
]


def reading_of(pod: PodBuilder, namespace: str, defaults: dict[str, str], **spec: Any) -> WorkloadReading:
    return read_workload(pod.obj(), namespace, defaults, policy_with(**(LIMITED | spec)))


def asking(name: str, value: str) -> PodBuilder:
    return make_pod().gpu(1).annotate(TYPE, "training").annotate(f"{DOMAIN}/{name}", value)


@pytest.mark.parametrize(("name", "value", "denial"), VALUES)
def test_a_value_of_the_pod_that_its_namespace_may_not_use_denies_it(name: str, value: str, denial: str) -> None:
    found = reading_of(asking(name, value), "lab", {})

    assert [each.detail for each in found.denials] == ([f'namespace "lab" {denial}'] if denial else [])
    assert found.is_forbidden is bool(denial)
    # Without its products, the pod still has a workload.
    assert (found.workload is None) is (bool(denial) and name != "gpu-product")
    for namespace in ("bare", "team-a"):
        is_open = reading_of(asking(name, value), namespace, {}, allowedProducts={}).denials == ()
        assert is_open is (value != "closed" or namespace == "team-a")


@pytest.mark.parametrize(("name", "value", "denial"), VALUES)
def test_a_default_that_its_namespace_may_not_use_is_ignored_unless_the_pod_has_its_own(
    name: str, value: str, denial: str
) -> None:
    defaults, pod = {f"{DOMAIN}/{name}": value}, make_pod().gpu(1)
    found = reading_of(pod if name == TYPE_KEY else pod.annotate(TYPE, "training"), "lab", defaults)

    ignored = [each for each in found.warnings if each.startswith("ignored: ")]
    assert [each.partition('Forbidden: namespace "lab" ')[2] for each in ignored] == ([denial] if denial else [])
    assert found.denials == ()
    assert (found.workload is None) is (bool(denial) and name == TYPE_KEY)
    allowed = {TYPE_KEY: "training", "gpu-product": "H20", "scheduler": "volcano", "queue": "lab-1"}
    own = reading_of(asking(name, allowed[name]), "lab", defaults)
    assert (own.denials, own.is_forbidden, [each for each in own.warnings if "ignored" in each]) == ((), False, [])


@pytest.mark.parametrize(("cards", "is_allowed"), [(1, True), (2, True), (3, False)])
def test_cards_are_counted_up_to_the_limit(cards: int, *, is_allowed: bool) -> None:
    found = reading_of(make_pod().gpu(cards).annotate(TYPE, "training"), "lab", {})
    detail = f'namespace "lab" may not request {cards} cards in a pod; allowed: at most 2'

    assert [(each.path, each.detail) for each in found.denials] == ([] if is_allowed else [("spec.containers", detail)])


@pytest.mark.parametrize("namespace", ["lab", "bare", "team-a"])
@pytest.mark.parametrize(
    ("pod", "path", "detail"),
    [
        (make_pod().spec(schedulerName="kai-scheduler"), "spec.schedulerName", 'scheduler "kai-scheduler"'),
        (make_pod().spec(schedulerName="volcano"), "", ""),
        (make_pod().spec(schedulerName="default-scheduler"), "", ""),
        (make_pod().label("kueue.x-k8s.io/queue-name", "q"), "metadata.labels[kueue.x-k8s.io/queue-name]", 'queue "q"'),
        (make_pod().label("kueue.x-k8s.io/queue-name", "lab-q"), "", ""),
        (
            make_pod().spec(schedulerName="volcano").annotate("scheduling.volcano.sh/queue-name", "q"),
            "metadata.annotations[scheduling.volcano.sh/queue-name]",
            'queue "q"',
        ),
        # Only Volcano reads it.
        (make_pod().annotate("scheduling.volcano.sh/queue-name", "q"), "", ""),
    ],
)
def test_fields_of_the_pod_itself_are_limited_as_well(pod: PodBuilder, path: str, detail: str, namespace: str) -> None:
    found = reading_of(pod.gpu(1).annotate(TYPE, "training"), namespace, {})

    assert [each.path for each in found.denials] == ([path] if path and namespace == "lab" else [])
    assert all(f'namespace "lab" may not use {detail}; allowed' in each.detail for each in found.denials)


def test_a_denial_names_no_value_if_none_is_allowed() -> None:
    limits = [{"namespaces": ["lab"], "queues": [], "products": [], "maxCardsPerPod": 0}]
    pod = make_pod().gpu(1).annotate(TYPE, "training").annotate(f"{DOMAIN}/queue", "q")
    found = reading_of(
        pod.annotate(f"{DOMAIN}/gpu-product", "X"), "lab", {}, namespaceLimits=limits, allowedProducts={}
    )

    assert [each.detail.partition("; ")[2] for each in found.denials] == [
        "allowed products: none",
        "allowed queues: none",
        "allowed: at most 0",
    ]


@pytest.mark.parametrize(("namespace", "is_allowed"), [("team-a", True), ("lab", False)])
def test_a_restricted_product_names_the_namespaces_that_may_use_it(namespace: str, *, is_allowed: bool) -> None:
    found = reading_of(asking("gpu-product", "A10"), namespace, {}, namespaceLimits=[])
    detail = f'namespace "{namespace}" may not ask for product "A10"; allowed namespaces: team-a'

    assert [each.detail for each in found.denials] == ([] if is_allowed else [detail])

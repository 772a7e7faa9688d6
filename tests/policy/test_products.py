"""The products that pods of a namespace may use: variants, restrictions, and any product."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.kube.pod.taints import Taint, Toleration
from webhook.kube.selectors import requirement_matches
from webhook.policy.products import AnyProduct, accepted_products, any_product, may_use_product

H20, H200, SHARED = "NVIDIA-H20", "NVIDIA-H200", "NVIDIA-H20-SHARED"
PRODUCT_LABEL = "nvidia.com/gpu.product"


@pytest.mark.parametrize(
    ("suffixes", "product", "wanted"),
    [
        pytest.param([], H20, [H20], id="none by default"),
        pytest.param(["-SHARED"], H20, [H20, SHARED], id="a shared card"),
        pytest.param(["-SHARED"], SHARED, [SHARED], id="the variant itself"),
        pytest.param(["-MIG-1g.10gb"], H20, [H20, f"{H20}-MIG-1g.10gb"], id="a slice"),
        pytest.param(["-SHARED"], "x" * 60, ["x" * 60], id="a variant too long for a label"),
    ],
)
def test_variants_are_accepted_with_their_product(suffixes: list[str], product: str, wanted: list[str]) -> None:
    spec = policy_with(productVariants=suffixes).spec

    assert list(accepted_products(spec, [product], "team-a")) == wanted


def test_variant_that_is_also_named_is_accepted_once() -> None:
    spec = policy_with(productVariants=["-SHARED"]).spec

    assert accepted_products(spec, [H20, SHARED], "team-a") == (H20, SHARED)


def test_variant_that_the_namespace_may_not_use_is_not_accepted() -> None:
    spec = policy_with(productVariants=["-SHARED"], allowedProducts={"*-SHARED": ["team-b"]}).spec

    assert accepted_products(spec, [H20], "team-a") == (H20,)
    assert accepted_products(spec, [H20], "team-b") == (H20, SHARED)


@pytest.mark.parametrize("suffixes", ["-SHARED", "-MIG-1g.10gb", "-MIG-1g.10gb-SHARED"])
@pytest.mark.parametrize(("namespace", "may"), [("team-a", True), ("team-b", False)])
def test_restriction_of_a_product_holds_for_its_variants(namespace: str, may: bool, suffixes: str) -> None:
    """A card that is divided and shared has both suffixes."""
    spec = policy_with(productVariants=["-SHARED", "-MIG-1g.10gb"], allowedProducts={H20: ["team-a"]}).spec

    assert may_use_product(spec, H20 + suffixes, namespace) is may


ANY_CASES = [
    pytest.param({}, AnyProduct(), id="no restriction"),
    pytest.param({"allowedProducts": {H20: ["team-*"]}}, AnyProduct(), id="none for the namespace"),
    pytest.param({"allowedProducts": {"NVIDIA-H*": ["team-*"]}}, AnyProduct(), id="a pattern of the namespace"),
    pytest.param({"allowedProducts": {H200: []}}, AnyProduct((H200,)), id="a product of others"),
    pytest.param(
        {"allowedProducts": {H200: [], H20: ["team-a"]}},
        AnyProduct((H200,)),
        id="a product of others and one of its own",
    ),
    pytest.param(
        {"allowedProducts": {H20: []}, "productVariants": ["-SHARED"]},
        AnyProduct((H20, SHARED)),
        id="a product of others with variants",
    ),
    pytest.param({"allowedProducts": {"NVIDIA-H*": []}}, AnyProduct(listed=()), id="a pattern of others"),
    pytest.param(
        {"allowedProducts": {"*": [], H20: ["team-a"], H200: ["team-b"]}}, AnyProduct(listed=(H20,)), id="a list"
    ),
    pytest.param(
        {"allowedProducts": {H200: [], H20: ["team-a"]}, "productAffinity": False},
        AnyProduct(listed=(H20,)),
        id="taints alone",
    ),
]


@pytest.mark.parametrize(("spec", "wanted"), ANY_CASES)
def test_any_product_is_one_that_the_namespace_may_use(spec: dict[str, Any], wanted: AnyProduct) -> None:
    assert any_product(policy_with(**spec).spec, "team-a") == wanted


@pytest.mark.parametrize("spec", [case.values[0] for case in ANY_CASES], ids=[case.id for case in ANY_CASES])
@pytest.mark.parametrize("product", [H20, H200, SHARED, "NVIDIA-A10"])
def test_no_restricted_product_takes_a_pod_that_names_none(spec: dict[str, Any], product: str) -> None:
    """On a node that is tainted by its product, with or without the product's label."""
    policy = policy_with(**spec)
    pod = make_pod().annotate(TYPE, "inference").limits(**{"nvidia.com/gpu": 1}).obj()

    verdict = admit_pod(pod, policy, namespace="team-a")

    assert verdict.outcome == "Patched"
    if not may_use_product(policy.spec, product, "team-a"):
        assert not fits(verdict.pod, product, {PRODUCT_LABEL: product})
        assert not fits(verdict.pod, product, {})


def fits(pod: dict[str, Any], product: str, labels: dict[str, str]) -> bool:
    """Whether the taint and labels of a node with the product admit `pod`."""
    taint = {"key": PRODUCT_LABEL, "value": product, "effect": "NoSchedule"}
    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    node = labels | {f"{DOMAIN}/node.usage": "inference"}
    return any(Toleration.of(each).tolerates(Taint.of(taint)) for each in pod["spec"]["tolerations"]) and all(
        requirement_matches(each, node) for each in term["matchExpressions"]
    )

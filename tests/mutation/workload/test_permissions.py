"""Limits of namespaces: which entry holds, and the errors of entries that contradict the rest of the policy."""

import json
from typing import Any

import pytest

from tests.support.admission import policy_with
from webhook.documents.field import InvalidInput
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

"""The labels of an accelerator, and what the loader rejects of them."""

from typing import Any

import orjson
import pytest

from webhook.documents.field import InvalidInput
from webhook.policy.loader import parse_policy
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS, Accelerator, CardLabels, similar_labels
from webhook.policy.spec.document import API_VERSION, KIND

AMD = next(each for each in BUILT_IN_ACCELERATORS if each.name == "amd")


def accelerator(**labels: Any) -> Accelerator:
    return Accelerator(name="x", resources=("example.com/x",), card="example.com/x", labels=CardLabels(**labels))


def errors_of(**fields: Any) -> list[str]:
    entry = {"name": "x", "resources": ["example.com/x"], "card": "example.com/x", **fields}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "p"}, "spec": {"accelerators": [entry]}}
    try:
        parse_policy(orjson.dumps(document), "policy")
    except InvalidInput as error:
        return [str(each) for each in error.errors]
    return []


def test_labels_that_are_not_named_are_made_of_the_card() -> None:
    plain = accelerator()
    assert [plain.labels_of(fact) for fact in ("product", "memory", "count", "driver")] == [
        ("example.com/x.product",),
        ("example.com/x.memory",),
        ("example.com/x.count",),
        ("example.com/x.driver-version",),
    ]


def test_labels_of_the_product_do_not_change_its_taint() -> None:
    assert accelerator(product=("example.com/model",)).product_taint == "example.com/x.product"


def test_product_is_that_of_the_first_label_that_the_node_has() -> None:
    two = accelerator(product=("new", "old"))
    assert two.product_of({"old": "o", "new": "n"}) == "n"
    assert two.product_of({"old": "o"}) == "o"
    assert two.product_of({"example.com/x.product": "p"}) is None


@pytest.mark.parametrize(
    ("value", "size_mib"), [("192G", 192 * 1024), ("64G", 64 * 1024), ("G", None), ("", None), ("0G", None)]
)
def test_memory_in_values_with_a_unit(value: str, size_mib: int | None) -> None:
    assert AMD.memory_mib(value) == size_mib


@pytest.mark.parametrize(
    ("unit", "least_bytes", "least"),
    [
        ("MiB", 2**30, 1024),
        ("MiB", 2**30 + 1, 1025),
        ("GB", 80 * 10**9, 80),
        ("GB", 80 * 10**9 + 1, 81),
        ("GiB", 80 * 10**9, 75),
        ("B", 80 * 10**9, 80 * 10**9),
    ],
)
def test_the_least_memory_is_exact_in_each_unit(unit: str, least_bytes: int, least: int) -> None:
    assert accelerator(memory_unit=unit).least_memory(least_bytes) == least


def test_a_listed_value_is_enough_for_exactly_its_size() -> None:
    found = accelerator(memory_unit="GB", memory_values=("40GB", "80GB"))

    assert found.memory_values(80 * 10**9) == ("80GB",)
    assert found.memory_values(80 * 10**9 + 1) == ()


@pytest.mark.parametrize(("value", "size_mib"), [("81559", 81559), ("81559Mi", None), ("8e4", None)])
def test_memory_in_plain_numbers(value: str, size_mib: int | None) -> None:
    assert accelerator().memory_mib(value) == size_mib


def test_similar_labels_are_those_of_the_labeller_and_of_clouds() -> None:
    hand_made = Accelerator(name="amd", resources=("amd.com/gpu",), card="amd.com/gpu")
    found = list(similar_labels(hand_made, "product"))
    assert found[0] == "amd.com/gpu.product-name"
    assert "karpenter.k8s.aws/instance-gpu-name" in found
    assert "amd.com/gpu.product" not in found
    assert list(similar_labels(AMD, "memory"))[:1] == ["karpenter.k8s.aws/instance-gpu-memory"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"labels": {"product": []}}, "labels.product: Invalid value: []; must hold at least one label"),
        pytest.param({"labels": {"count": ["no key!"]}}, "labels.count[0]"),
        pytest.param({"labels": {"driver": list("abcde")}}, "must hold at most 4 labels"),
        pytest.param({"labels": {"memoryUnit": "TiB"}}, "labels.memoryUnit"),
        pytest.param({"labels": {"memoryValues": ["big"]}}, "must begin with a number of memoryUnit, like 192G"),
        pytest.param({"labels": {"driver": ["a"]}, "driverLabel": "b"}, "must have driverLabel or labels.driver"),
    ],
    ids=str,
)
def test_wrong_labels_are_rejected(fields: dict[str, Any], error: str) -> None:
    (found,) = errors_of(**fields)
    assert error in found


def test_driver_label_is_the_label_of_the_driver() -> None:
    assert errors_of(driverLabel="example.com/driver") == []
    one = Accelerator(name="x", resources=("example.com/x",), card="example.com/x", driver_label="example.com/driver")
    assert one.driver_labels == ("example.com/driver",)

"""The keys of annotations, and their valid values."""

import pytest

from webhook.kube.names import LABEL_VALUE_RULE
from webhook.policy.keys import ANNOTATIONS, CardMemory, Keys, card_memory, name, positive, products, topology
from webhook.policy.loader import built_in_policy, parse_policy

ALIASES = {"host": "kubernetes.io/hostname", "zone": "topology.kubernetes.io/zone"}
HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("NVIDIA-H20", ("NVIDIA-H20",)),
        ("NVIDIA-H20,NVIDIA-A10", ("NVIDIA-H20", "NVIDIA-A10")),
        (" b , a,b ", ("b", "a")),
        ("a" * 63, ("a" * 63,)),
    ],
    ids=["one", "two", "blanks and repeats", "63 letters"],
)
def test_products_are_label_values_each_once(text: str, wanted: tuple[str, ...]) -> None:
    assert products(text) == wanted


def test_products_are_a_hundred_at_most() -> None:
    hundred = [f"p{index}" for index in range(100)]
    assert products(",".join([*hundred, "p0"])) == tuple(hundred)
    with pytest.raises(ValueError, match="must be at most 100 products"):
        products(",".join([*hundred, "p100"]))


@pytest.mark.parametrize("text", ["", ",", "a,", ",a", "a b", "a;b", "-a", "a/b", "a" * 64, "节点"])
def test_no_products(text: str) -> None:
    with pytest.raises(ValueError, match="each product of the comma list must be a label value"):
        products(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("80Gi", 80 * 2**30),
        ("1Gi", 2**30),
        ("1073741825", 2**30 + 1),
        ("80G", 80 * 10**9),
        ("1.5Gi", 3 * 2**29),
        ("2e9", 2 * 10**9),
        ("8Ei", 2**63 - 1),
    ],
)
def test_memory_is_in_bytes(text: str, wanted: int) -> None:
    assert card_memory(0)(text) == CardMemory(wanted, "")


@pytest.mark.parametrize(
    ("text", "percent", "least_bytes"),
    [
        ("80Gi", 5, 76 * 2**30),
        ("80Gi", 50, 40 * 2**30),
        ("80Gi", 1, 85040352461),  # 85040352460.8
        ("8Ei", 5, 8762203435012037017),  # 8762203435012037016.65
    ],
)
def test_card_may_report_less_than_the_size_that_it_is_sold_by(text: str, percent: int, least_bytes: int) -> None:
    assert card_memory(percent)(text) == CardMemory(least_bytes, f"{text} less {percent} %")


@pytest.mark.parametrize(
    ("sold", "reported_mib"), [("80Gi", 81559), ("96Gi", 97871), ("141Gi", 143771), ("40Gi", 40960)]
)
def test_cards_match_the_size_that_they_are_sold_by(sold: str, reported_mib: int) -> None:
    """H100, H20, H200 and A100 as nvidia-smi reports them."""
    assert card_memory(5)(sold).least_bytes <= reported_mib * 2**20


def test_card_of_the_next_smaller_size_does_not_match() -> None:
    assert card_memory(5)("96Gi").least_bytes > 81559 * 2**20


@pytest.mark.parametrize("text", ["", "80 Gi", "80GB", "Gi", "eighty", "1e", "0x10", "--1", "1_000"])
def test_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="must be a quantity"):
        card_memory(5)(text)


@pytest.mark.parametrize("text", ["0", "0Gi", "-1Gi"])
def test_memory_is_above_zero(text: str) -> None:
    with pytest.raises(ValueError, match="must be above zero"):
        card_memory(5)(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("80", "80Gi"),
        ("81920", "80Gi"),
        ("81559", "80Gi"),
        ("97871", "96Gi"),
        ("143771", "141Gi"),
        ("11264", "11Gi"),
        ("11400", "11Gi"),
        ("80m", "80Gi"),
        ("80k", "80Gi"),
        ("80Ki", ""),
        ("80M", "80Gi"),
        ("24576", "24Gi"),
        ("512Mi", ""),
        ("0.5Gi", ""),
    ],
)
def test_memory_that_no_card_is_below_is_refused_with_what_is_probably_meant(text: str, meant: str) -> None:
    """A number without a suffix is one of bytes, which every card has."""
    with pytest.raises(ValueError, match="must be at least 1Gi") as error:
        card_memory(5)(text)

    assert str(error.value).partition("; did you mean ")[2] == (f"{meant}?" if meant else "")


@pytest.mark.parametrize("text", ["80GB", "80gi", "80 Gi", " 80 gb", "80g", "80GiB"])
def test_gigabytes_that_are_no_quantity_are_a_question(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a quantity: .*; did you mean 80Gi\?$"):
        card_memory(5)(text)


@pytest.mark.parametrize(("text", "wanted"), [("1", 1), ("8", 8), ("008", 8), ("999999999", 999_999_999)])
def test_a_positive_integer(text: str, wanted: int) -> None:
    assert positive(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "00", "-1", "+1", "1.0", "1e3", "8 ", "٨", "²", "1000000000", "9" * 5000])
def test_no_positive_integer(text: str) -> None:
    with pytest.raises(ValueError, match=r'^must be an integer above zero, as in "8"$'):
        positive(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("host", "kubernetes.io/hostname"),
        ("zone", "topology.kubernetes.io/zone"),
        ("example.com/row", "example.com/row"),
        ("none", "none"),
    ],
)
def test_a_topology_is_an_alias_or_a_key(text: str, wanted: str) -> None:
    assert topology(ALIASES)(text) == wanted


@pytest.mark.parametrize("text", ["", "hosts", "rack", "/row", "a/b/c", "example.com/"])
def test_no_topology(text: str) -> None:
    with pytest.raises(ValueError, match='must be one of "host", "zone", "none", or a topology key such as'):
        topology(ALIASES)(text)


@pytest.mark.parametrize(("text", "meant"), [("hosts", "host"), ("zones", "zone"), ("non", "none"), ("x" * 9999, "")])
def test_a_topology_that_is_misspelt_gets_a_question(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match="hostname") as caught:
        topology(ALIASES)(text)

    assert str(caught.value).partition("; ")[2] == (f'did you mean "{meant}"?' if meant else "")


@pytest.mark.parametrize("text", ["", "a b", "a/b", "a" * 64])
def test_no_name(text: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared
        name(text)
    assert str(refused.value) == LABEL_VALUE_RULE


def test_the_keys_are_those_that_users_write() -> None:
    policy = built_in_policy()

    assert list(policy.keys) == [
        f"maip.mxsf.io/{name}"
        for name in (
            "workload-type",
            "gpu-product",
            "gpu-memory",
            "gpu-count",
            "gpu-driver",
            "bin-packing",
            "spread",
            "scheduler",
            "queue",
            "gang",
            "gang-size",
            "within",
            "within-mode",
            "gpu-fraction",
            "preemptible",
            "placement-check",
            "reclaim",
            "inject",
        )
    ]
    assert policy.node_usage_key == "maip.mxsf.io/node.usage"
    assert policy.policy_annotation == "maip.mxsf.io/placement-policy"
    assert policy.rules_annotation == "maip.mxsf.io/placement-rules"


def test_another_key_domain_moves_every_key() -> None:
    policy = parse_policy(HEAD + "spec: {keyDomain: example.com}\n", "policy.yaml")

    keys = [*policy.keys, policy.node_usage_key, policy.policy_annotation, policy.rules_annotation]
    assert [key for key in keys if not key.startswith("example.com/")] == []


def test_every_annotation_is_a_key_under_the_domain() -> None:
    assert list(Keys("example.com")) == [f"example.com/{row.attribute.replace('_', '-')}" for row in ANNOTATIONS]

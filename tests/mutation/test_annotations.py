"""Valid and invalid values of the annotations."""

import pytest

from tests.support.admission import DOMAIN, TYPE, admit_pod, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Patched
from webhook.kube.api.review_answer import fit_warnings
from webhook.kube.names import LABEL_VALUE_RULE
from webhook.mutation.workload.workload import WorkloadReading, read_workload
from webhook.policy.keys import CardMemory, card_memory, name, positive, products, topology

ALIASES = {"host": "kubernetes.io/hostname", "zone": "topology.kubernetes.io/zone"}


def read(namespace_annotations: dict[str, str] | None = None, /, **annotations: str) -> WorkloadReading:
    """Read a training pod with these annotations under `maip.mxsf.io/`; underscores become dashes."""
    pod = make_pod().annotate(TYPE, "training")
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return read_workload(pod.obj(), "default", namespace_annotations or {}, policy_with())


def read_of_card(namespace_annotations: dict[str, str], /, **annotations: str) -> WorkloadReading:
    """Like `read`, for a pod that requests a card: the defaults of its namespace apply."""
    pod = make_pod().annotate(TYPE, "training").limits(**{"nvidia.com/gpu": 1})
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return read_workload(pod.obj(), "default", namespace_annotations, policy_with())


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
        ("80Gi", 81920),
        ("1Gi", 1024),
        ("1073741825", 1025),
        ("80G", 76294),
        ("1.5Gi", 1536),
        ("2e9", 1908),
        ("8Ei", 2**63 // 2**20),
    ],
)
def test_memory_is_rounded_up_to_mebibytes(text: str, wanted: int) -> None:
    assert card_memory(0)(text) == CardMemory(wanted, "")


@pytest.mark.parametrize(
    ("text", "percent", "least_mib"),
    [
        ("80Gi", 5, 77824),
        ("80Gi", 50, 40960),
        ("80Gi", 1, 81101),  # 81100.8
        ("8Ei", 5, 8356288371098),
    ],
)
def test_card_may_report_less_than_the_size_that_it_is_sold_by(text: str, percent: int, least_mib: int) -> None:
    assert card_memory(percent)(text) == CardMemory(least_mib, f"{text} less {percent} %")


@pytest.mark.parametrize(
    ("sold", "reported_mib"), [("80Gi", 81559), ("96Gi", 97871), ("141Gi", 143771), ("40Gi", 40960)]
)
def test_cards_match_the_size_that_they_are_sold_by(sold: str, reported_mib: int) -> None:
    """H100, H20, H200 and A100 as nvidia-smi reports them."""
    assert card_memory(5)(sold).least_mib <= reported_mib


def test_card_of_the_next_smaller_size_does_not_match() -> None:
    assert card_memory(5)("96Gi").least_mib > 81559


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


@pytest.mark.parametrize("text", ["", "a b", "a/b", "a" * 64])
def test_no_name(text: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared
        name(text)
    assert str(refused.value) == LABEL_VALUE_RULE


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu_count": " 8 "},
        {"gpu_memory": "80Gi\n"},
        {"bin_packing": " true"},
        {"scheduler": "volcano "},
        {"placement_check": " warn "},
        {"gpu_product": " NVIDIA-H20 "},
    ],
    ids=lambda value: next(iter(value)),
)
def test_blanks_around_a_value_are_nothing(annotations: dict[str, str]) -> None:
    reading = read(**annotations)

    assert reading.errors == ()
    assert reading.workload == read(**{key: value.strip() for key, value in annotations.items()}).workload


@pytest.mark.parametrize("value", ["disabled", " disabled "])
def test_pod_can_opt_out(value: str) -> None:
    verdict = admit_pod(make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/inject", value).obj())

    assert verdict == Bypassed("maip.mxsf.io/inject: disabled")


@pytest.mark.parametrize(("value", "outcome"), [("enabled", Patched), ("Disabled", Denied), ("", Denied)])
def test_other_values_of_inject_do_not_opt_out(value: str, outcome: type) -> None:
    verdict = admit_pod(make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/inject", value).obj())

    assert isinstance(verdict, outcome)


def test_the_pods_value_wins_over_its_namespaces() -> None:
    reading = read_of_card({f"{DOMAIN}/gpu-count": "4", f"{DOMAIN}/gpu-driver": "550"}, gpu_count="8")

    assert reading.workload is not None
    assert (reading.workload.gpu_count, reading.workload.gpu_driver) == (8, 550)


def test_invalid_value_of_the_namespace_is_a_warning_that_names_it() -> None:
    reading = read_of_card({f"{DOMAIN}/gpu-count": "x", f"{DOMAIN}/gpu-driver": "y"}, gpu_count="z")

    assert [error.path for error in reading.errors] == ["metadata.annotations[maip.mxsf.io/gpu-count]"]
    (warning,) = reading.warnings
    assert warning.startswith('ignored: namespace "default": metadata.annotations[maip.mxsf.io/gpu-driver]: Invalid')


@pytest.mark.parametrize(
    "key", [key for key in policy_with().keys if not key.endswith("/workload-type")], ids=lambda key: key
)
def test_no_value_of_the_namespace_denies_a_pod(key: str) -> None:
    reading = read_of_card({key: "no such ; value"})

    assert (reading.errors, reading.denials) == ((), ())
    assert reading.workload is not None
    assert any("namespace" in warning and key in warning for warning in reading.warnings)


@pytest.mark.parametrize(
    ("mode", "floor", "asked", "wanted"),
    [
        ("off", "off", None, "off"),
        ("warn", "off", None, "warn"),
        ("off", "deny", None, "deny"),
        ("deny", "off", "off", "off"),
        ("off", "off", "deny", "deny"),
        ("warn", "warn", "off", "warn"),
        ("warn", "warn", "deny", "deny"),
        ("off", "deny", "warn", "deny"),
    ],
)
def test_check_is_never_less_strict_than_its_floor(mode: str, floor: str, asked: str | None, wanted: str) -> None:
    pod = make_pod().annotate(TYPE, "training")
    if asked is not None:
        pod = pod.annotate(f"{DOMAIN}/placement-check", asked)

    reading = read_workload(pod.obj(), "default", {}, policy_with(placementCheck={"mode": mode, "floor": floor}))

    assert reading.workload is not None
    assert reading.workload.check_mode == wanted
    laxer = asked is not None and asked != wanted
    assert list(reading.warnings) == (
        [f'placement-check "{asked}" is laxer than the policy\'s floor; "{floor}" holds'] if laxer else []
    )


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("gpu-products", "gpu-product"),
        ("gpu_product", "gpu-product"),
        ("workload-typ", "workload-type"),
        ("gang-sizes", "gang-size"),
        ("owner", None),
        ("placement-policy", None),
        ("placement-rules", None),
        ("team", None),
    ],
)
def test_a_key_close_to_one_of_ours_is_pointed_out(key: str, meant: str | None) -> None:
    pod = make_pod().annotate(f"{DOMAIN}/{key}", "x").annotate(f"example.com/{key}", "x").obj()

    warnings = read_workload(pod, "default", {}, policy_with()).warnings

    reported = f"annotation {DOMAIN}/{key} is not known and does nothing"
    if key.startswith("placement-"):
        assert list(warnings) == []
    else:
        assert list(warnings) == [f"{reported}; did you mean {DOMAIN}/{meant}?" if meant else reported]


def test_a_request_without_a_namespace_is_in_default() -> None:
    policy = policy_with(
        workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "allowedNamespaces": ["default"]}}
    )
    request = make_request(make_pod().annotate(TYPE, "training").obj(), namespace="")

    assert isinstance(admit_pod(request.object or {}, policy, namespace=""), Patched)


def test_first_twenty_unknown_keys_are_checked() -> None:
    pod = make_pod()
    for number in range(19):
        pod = pod.annotate(f"{DOMAIN}/of-the-company-{number}", "x")
    last = pod.annotate(f"{DOMAIN}/gpu-products", "x").annotate(f"{DOMAIN}/gpu-counts", "x").obj()

    warnings = read_workload(last, "default", {}, policy_with()).warnings

    similar, others = warnings
    shown = ", ".join(f"{DOMAIN}/of-the-company-{number}" for number in range(3))
    assert similar == (
        f"annotation {DOMAIN}/gpu-products is not known and does nothing; did you mean {DOMAIN}/gpu-product?"
    )
    assert others == f"annotations {shown} and 17 more are not known and do nothing"


@pytest.mark.parametrize(
    ("domain", "is_pointed_out"),
    [
        pytest.param("maip.mxfs.io", True, id="two neighbours swapped"),
        pytest.param("maip.mxs.io", True, id="a letter less"),
        pytest.param("maip.mxsf.ioo", True, id="a letter more"),
        pytest.param("maip.mxsf.iO", True, id="another letter"),
        pytest.param("maip.example.com", True, id="a former domain"),
        pytest.param("mxsf.io", False, id="another domain"),
        pytest.param("maip.msfx.io", False, id="two letters"),
    ],
)
def test_a_key_of_a_former_domain_or_of_one_an_edit_away_is_pointed_out(domain: str, *, is_pointed_out: bool) -> None:
    pod = make_pod().annotate(f"{domain}/gpu-product", "NVIDIA-H20").annotate(f"{domain}/unknown", "x").obj()

    warnings = read_workload(pod, "default", {}, policy_with(formerKeyDomains=["maip.example.com"])).warnings

    question = f"annotation {domain}/gpu-product is not known and does nothing; did you mean {DOMAIN}/gpu-product?"
    assert list(warnings) == ([question] if is_pointed_out else [])


def test_annotations_written_as_labels_are_pointed_out_unless_they_are_annotations_too() -> None:
    pod = make_pod().label(TYPE, "training").label(f"{DOMAIN}/gpu-product", "NVIDIA-H20").label("app", "web")

    def warnings(pod: PodBuilder) -> tuple[str, ...]:
        return read_workload(pod.obj(), "default", {}, policy_with()).warnings

    listed = f"{DOMAIN}/gpu-product, {TYPE}"
    assert warnings(pod) == (f"labels that only have an effect as annotations: {listed}",)
    assert warnings(make_pod().label(TYPE, "training").annotate(TYPE, "training").gpu(1)) == ()


MISSING_TYPE = (
    f"metadata.annotations[{TYPE}]: Required value: the pod requests an accelerator, and the policy requires a "
    "workload type of such pods: training, inference"
)


def test_a_pod_with_a_card_and_without_a_type_can_be_warned_denied_or_given_a_type() -> None:
    pod = make_pod().gpu(1).obj()

    warned, denied, typed = (admit_pod(pod, policy_with(requireType=each)) for each in ("warn", "deny", "inference"))

    assert warned == Bypassed("no workload type", (MISSING_TYPE,))
    assert isinstance(denied, Denied)
    assert (denied.denial.code, denied.denial.message) == (422, MISSING_TYPE)
    assert isinstance(typed, Patched)
    assert typed.workload_type == "inference"
    assert admit_pod(pod, policy_with()) == Bypassed("no workload type")
    assert admit_pod(pod, policy_with(requireType="deny", invalidAnnotations="warn")).warnings == (MISSING_TYPE,)


def test_the_required_type_is_for_pods_with_a_card_and_without_a_type_alone() -> None:
    policy = policy_with(requireType="inference")

    own = admit_pod(make_pod().gpu(1).annotate(TYPE, "training").obj(), policy)

    assert isinstance(own, Patched)
    assert own.workload_type == "training"
    assert admit_pod(make_pod().requests(cpu=1).obj(), policy) == Bypassed("no workload type")
    assert admit_pod(make_pod().requests(cpu=1).obj(), policy_with(requireType="deny")) == Bypassed("no workload type")


def test_a_warning_names_three_resources_at_most() -> None:
    pod = make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/gpu-count", "1")
    pod = pod.limits(**{f"example.com/gpu-{number}": 1 for number in range(4)})

    (warning,) = read_workload(pod.obj(), "default", {}, policy_with()).warnings

    assert warning.startswith(
        "the pod requests no accelerator of the policy, only example.com/gpu-0, example.com/gpu-1, example.com/gpu-2, "
        "…: request one, such as nvidia.com/gpu, or list it under accelerators of the policy, or remove "
        "maip.mxsf.io/gpu-count"
    )


@pytest.mark.parametrize(
    ("domain", "namespace", "limits", "remedy"),
    [
        pytest.param(DOMAIN, {}, {}, "add it (training, inference)", id="no type"),
        pytest.param("placement.platform.example.com", {}, {}, "add it (training, inference)", id="a long domain"),
        pytest.param(DOMAIN, {"workload-type": "training"}, {}, f"or add {DOMAIN}/workload-type", id="left-out type"),
        pytest.param(DOMAIN, None, {}, "request one, such as nvidia.com/gpu", id="no card"),
        pytest.param(
            DOMAIN,
            None,
            {"example.com/vgpu": 1},
            "or list it under accelerators of the policy",
            id="another card",
        ),
    ],
)
def test_remedy_of_an_annotation_without_effect_stands_in_what_clients_see(
    domain: str, namespace: dict[str, str] | None, limits: dict[str, int], remedy: str
) -> None:
    """A pod with every annotation of ours, but without a type, or without a card."""
    policy, pod = policy_with(keyDomain=domain), make_pod().limits(**limits)
    if namespace is None:
        pod = pod.annotate(f"{domain}/workload-type", "training")
    for key in ("gpu-product", "gpu-memory", "gpu-count", "gpu-driver", "bin-packing", "placement-check"):
        value = {"gpu-memory": "80Gi", "bin-packing": "true", "placement-check": "warn"}.get(key, "1")
        pod = pod.annotate(f"{domain}/{key}", value)
    defaults = {f"{domain}/{key}": value for key, value in (namespace or {}).items()}

    warnings = read_workload(pod.obj(), "default", defaults, policy).warnings

    assert any(remedy in each for each in fit_warnings(warnings))

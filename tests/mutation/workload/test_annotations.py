"""Valid and invalid values of the annotations."""

import pytest

from tests.support.admission import DOMAIN, TYPE, admit_pod, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.kube.api.review_answer import fit_warnings
from webhook.mutation.workload.annotations import stray_keys
from webhook.mutation.workload.workload import read_workload


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

    assert admit_pod(request.object or {}, policy, namespace="").outcome == "Patched"


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


@pytest.mark.parametrize("order", [1, -1])
def test_each_kind_of_stray_key_is_pointed_out_next_to_the_others(order: int) -> None:
    """Similar keys first, then unknown ones, then labels, each in the order of the pod."""
    keys = [f"{DOMAIN}/team", f"{DOMAIN}/gpu-products", "maip.mxsf.ioo/gang", f"{DOMAIN}/gpu-count"][::order]
    pod = make_pod().label(f"{DOMAIN}/queue", "q")
    for key in keys:
        pod = pod.annotate(key, "8")
    found = stray_keys(pod.obj()["metadata"]["annotations"], pod.obj()["metadata"]["labels"], policy_with())

    known = "annotation {} is not known and does nothing; did you mean {}?"
    assert found == [
        known.format(f"{DOMAIN}/gpu-products", f"{DOMAIN}/gpu-product"),
        known.format("maip.mxsf.ioo/gang", f"{DOMAIN}/gang"),
        f"annotation {DOMAIN}/team is not known and does nothing",
        f"labels that only have an effect as annotations: {DOMAIN}/queue",
    ]


def test_annotations_written_as_labels_are_pointed_out_unless_they_are_annotations_too() -> None:
    pod = make_pod().label(TYPE, "training").label(f"{DOMAIN}/gpu-product", "NVIDIA-H20").label("app", "web")

    def warnings(pod: PodBuilder) -> tuple[str, ...]:
        return read_workload(pod.obj(), "default", {}, policy_with()).warnings

    listed = f"{DOMAIN}/gpu-product, {TYPE}"
    assert warnings(pod) == (f"labels that only have an effect as annotations: {listed}",)
    assert warnings(make_pod().label(TYPE, "training").annotate(TYPE, "training").gpu(1)) == ()


@pytest.mark.parametrize(
    ("domain", "namespace", "limits", "remedy"),
    [
        pytest.param(DOMAIN, {}, {}, "add it (inference, training)", id="no type"),
        pytest.param("placement.platform.example.com", {}, {}, "add it (inference, training)", id="a long domain"),
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

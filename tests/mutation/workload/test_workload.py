"""The workload that annotations and defaults of the namespace describe."""

import orjson
import pytest

from tests.support.admission import DOMAIN, TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from tests.support.servers.server import World, review_bytes
from webhook.admission.injection import Bypassed, Denied
from webhook.mutation.workload.workload import WorkloadReading, read_workload


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


@pytest.mark.parametrize("reaction", ["deny", "warn"])
def test_unknown_types_create_no_time_series(reaction: str) -> None:
    """Each label value is a time series in Prometheus; any user could create millions of them."""
    world = World(policy=policy_with(invalidAnnotations=reaction))
    for number in range(3):
        world.admissions().answer(review_bytes(make_pod().annotate(TYPE, f"x{number}").obj()), 1000.0, None)

    names = {
        sample.labels["workload_type"]
        for family in world.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "placement_webhook_admission_requests_total"
    }
    assert [record.workload_type for record in world.records] == ["x0", "x1", "x2"]
    assert len(names) == 1


@pytest.mark.parametrize("written", ["training", " training ", "training\n"])
def test_blanks_around_a_type_make_no_other_type(written: str) -> None:
    world = World()

    answer = world.admissions().answer(review_bytes(make_pod().annotate(TYPE, written).obj()), 1000.0, None)

    assert orjson.loads(answer.body)["response"]["allowed"] is True
    assert [record.workload_type for record in world.records] == ["training"]
    assert world.count("admission_requests_total", outcome="Patched", workload_type="training") == 1


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


@pytest.mark.parametrize(("value", "outcome"), [("enabled", "Patched"), ("Disabled", "Denied"), ("", "Denied")])
def test_other_values_of_inject_do_not_opt_out(value: str, outcome: str) -> None:
    verdict = admit_pod(make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/inject", value).obj())

    assert verdict.outcome == outcome


def test_the_pods_value_wins_over_its_namespaces() -> None:
    reading = read_of_card({f"{DOMAIN}/gpu-count": "4", f"{DOMAIN}/gpu-driver": "550"}, gpu_count="8")

    assert reading.workload is not None
    assert (reading.workload.amounts.count, reading.workload.amounts.driver) == (8, 550)


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


CARD = {"nvidia.com/gpu": 1}
MISSING = f"{TYPE} is missing: add it (inference, training); without it, these have no effect: {DOMAIN}/gpu-count"
LEFT_OUT = "no accelerator requested; the workload type is a default of the namespace"
REQUIRED = "the pod requests an accelerator, and the policy requires a workload type"


@pytest.mark.parametrize(
    ("limits", "own", "defaults", "required", "reason", "type_name"),
    [
        ({}, {}, {}, None, "no workload type", None),
        ({}, {"gpu-count": "8"}, {}, None, "no workload type", None),
        ({}, {}, {"workload-type": "training"}, None, LEFT_OUT, None),
        (CARD, {}, {"workload-type": "training"}, None, "", "training"),
        (CARD, {"workload-type": "inference"}, {"workload-type": "training"}, None, "", "inference"),
        (CARD, {}, {}, "warn", "no workload type", None),
        (CARD, {}, {}, "deny", "no workload type", None),
        (CARD, {}, {}, "inference", "", "inference"),
        (CARD, {}, {"workload-type": "training"}, "inference", "", "training"),
        (CARD, {"workload-type": "training"}, {}, "inference", "", "training"),
        (CARD, {}, {"gpu-count": "4"}, "inference", "", "inference"),
        ({}, {}, {}, "inference", "no workload type", None),
        ({}, {}, {}, "deny", "no workload type", None),
        ({}, {"workload-type": "training"}, {}, None, "", "training"),
        (CARD, {"workload-type": " x "}, {}, None, "invalid annotations", "x"),
        (CARD, {}, {"workload-type": "x"}, None, "invalid default of the namespace", None),
    ],
)
def test_the_type_is_that_of_the_pod_then_of_its_namespace_then_the_required_one(
    limits: dict[str, int],
    own: dict[str, str],
    defaults: dict[str, str],
    required: str | None,
    reason: str,
    type_name: str | None,
) -> None:
    pod = make_pod().limits(**limits)
    for key, value in own.items():
        pod = pod.annotate(f"{DOMAIN}/{key}", value)
    spec = {"requireType": required} if required else {}
    of_namespace = {f"{DOMAIN}/{key}": value for key, value in defaults.items()}
    found = read_workload(pod.obj(), "default", of_namespace, policy_with(**spec))

    assert (found.bypass_reason, found.type_name, found.workload is None) == (reason, type_name, bool(reason))
    lacks_required = required in ("warn", "deny") and bool(limits) and type_name is None
    texts = [*map(str, found.errors)] if required == "deny" else [*found.warnings]
    assert any(REQUIRED in each for each in texts) is lacks_required
    assert (MISSING in found.warnings) is ("gpu-count" in own and not lacks_required)
    assert bool(found.errors) is ((required == "deny" and lacks_required) or own.get("workload-type") == " x ")
    if found.workload is not None and "gpu-count" in defaults:
        assert found.workload.amounts.count == int(defaults["gpu-count"])


@pytest.mark.parametrize("handling", ["warn", "leave", "inject"])
@pytest.mark.parametrize("of_namespace", ["warn", "leave", "inject"])
@pytest.mark.parametrize("is_own", [False, True])
def test_a_pod_without_a_card_is_handled_as_the_policy_says(*, handling: str, of_namespace: str, is_own: bool) -> None:
    policy = policy_with(withoutAccelerator={"podAnnotations": handling, "namespaceDefaults": of_namespace})
    pod, defaults = make_pod(), {TYPE: "training"}
    found = read_workload((pod.annotate(TYPE, "training") if is_own else pod).obj(), "lab", defaults, policy)

    if is_own:
        assert found.bypass_reason == ("no accelerator requested" if handling == "leave" else "")
        begin = f"the pod requests no accelerator, so {TYPE} has no effect: request one, such as nvidia.com/gpu"
        assert list(found.warnings) == ([begin] if handling == "leave" else [])
    else:
        assert found.bypass_reason == (LEFT_OUT if of_namespace == "leave" else "")
        warning = 'the pod requests no accelerator, but has workload type "training" from namespace "lab"'
        assert list(found.warnings) == ([warning] if of_namespace == "warn" else [])


@pytest.mark.parametrize("on_missing", ["warn", "deny"])
def test_what_a_pod_lacks_for_its_qos_class_is_a_denial_or_a_warning(on_missing: str) -> None:
    qos = {"class": "Guaranteed", "onMissing": on_missing}
    policy = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "qos": qos}})
    found = read_workload(make_pod().annotate(TYPE, "training").gpu(1).obj(), "lab", {}, policy)

    lacks = [f"spec.containers[0].resources.limits.{name}" for name in ("cpu", "memory")]
    assert [each.path for each in found.denials] == (lacks if on_missing == "deny" else [])
    assert [each.partition(": ")[0] for each in found.warnings] == (lacks if on_missing == "warn" else [])
    assert (found.workload is None, found.is_forbidden) == ((on_missing == "deny",) * 2)


def test_the_first_of_several_accelerators_is_meant_by_the_annotations() -> None:
    pod = make_pod().annotate(TYPE, "training").limits(**CARD, **{"amd.com/gpu": 1})
    found, plain = (read_workload(each.obj(), "lab", {}, policy_with()) for each in (
        pod.annotate(f"{DOMAIN}/gpu-product", "X"), pod
    ))  # fmt: skip

    assert found.workload is not None
    assert [each.name for each in found.workload.requested_accelerators] == ["nvidia", "amd"]
    assert found.workload.accelerator.name == "nvidia"
    assert found.warnings == ("the pod requests cards of nvidia, amd; its gpu- annotations are read as nvidia's",)
    assert plain.warnings == ()


@pytest.mark.parametrize(("products", "any_will_do"), [("", True), ("X", False), ("?", False)])
def test_any_product_will_do_for_a_pod_that_names_none(products: str, *, any_will_do: bool) -> None:
    """One that is invalid, and ignored, is still one that the pod wants."""
    pod = make_pod().annotate(TYPE, "training").gpu(1)
    pod = pod.annotate(f"{DOMAIN}/gpu-product", products) if products else pod
    for tolerates in (True, False):
        policy = policy_with(tolerateAnyProduct=tolerates)
        workload = read_workload(pod.obj(), "lab", {}, policy).workload
        assert workload is not None
        assert (workload.any_product is not None) is (any_will_do and tolerates)
        without_card = read_workload(make_pod().annotate(TYPE, "training").obj(), "lab", {}, policy).workload
        assert without_card is not None
        assert without_card.any_product is None


def test_an_invalid_wish_not_to_be_reclaimed_is_an_error_and_no_opting_out_is_pointed_out() -> None:
    pod = make_pod().annotate(TYPE, "training").gpu(1).annotate(f"{DOMAIN}/reclaim", "x")
    (error,) = read_workload(pod.obj(), "lab", {}, policy_with()).errors
    assert error.path == f"metadata.annotations[{DOMAIN}/reclaim]"
    (ignored,) = read_of_card({f"{DOMAIN}/reclaim": "x"}).warnings
    assert ignored.startswith('ignored: namespace "default"')

    pod = make_pod().annotate(TYPE, "training").gpu(1).annotate(f"{DOMAIN}/inject", "disabled")
    assert read_workload(pod.obj(), "lab", {}, policy_with(optOutNamespaces=["a", "b"])).warnings == (
        f'{DOMAIN}/inject: "disabled" has no effect in namespace "lab": the policy allows it in a, b',
    )


@pytest.mark.parametrize("written", ["", " ", "\t"])
def test_empty_type_is_an_invalid_one_and_not_none(written: str) -> None:
    pod = make_pod().annotate(TYPE, written)

    reading = read_workload(pod.obj(), "default", {}, policy_with())

    assert (reading.type_name, reading.workload, reading.bypass_reason) == ("", None, "invalid annotations")
    assert [error.path for error in reading.errors] == [f"metadata.annotations[{TYPE}]"]
    assert isinstance(admit_pod(pod.obj()), Denied)

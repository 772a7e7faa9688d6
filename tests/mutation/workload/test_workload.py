"""The workload that annotations and defaults of the namespace describe."""

import orjson
import pytest

from tests.support.admission import DOMAIN, TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from tests.support.servers.server import World, review_bytes
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Patched
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


@pytest.mark.parametrize(("value", "outcome"), [("enabled", Patched), ("Disabled", Denied), ("", Denied)])
def test_other_values_of_inject_do_not_opt_out(value: str, outcome: type) -> None:
    verdict = admit_pod(make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/inject", value).obj())

    assert isinstance(verdict, outcome)


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

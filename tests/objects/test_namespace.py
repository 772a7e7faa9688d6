"""The defaults on a Namespace are validated when the Namespace is written."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, make_request, policy_with
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Advised, ObjectVerdict, Verdict
from webhook.documents.field import InvalidInput
from webhook.objects.admission import admit_request
from webhook.policy.policy import Policy

MISTYPED = f'metadata.annotations[{TYPE}]: Unsupported value: "trainning"; supported values: "inference", "training"'


def namespace(annotations: Any, name: str = "team-a") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


def admitted(
    annotations: Any, policy: Policy | None = None, *, old: Any = None, **request: Any
) -> Verdict | ObjectVerdict:
    fields: dict[str, Any] = {"kind": "Namespace", "resource": "namespaces", "name": "team-a", "namespace": "team-a"}
    if old is not None:
        fields |= {"operation": "UPDATE", "old_object": namespace(old)}
    return admit_request(
        make_request(namespace(annotations), **(fields | request)), policy or policy_with(), cluster=None
    )


def test_good_defaults_are_allowed_without_a_word() -> None:
    verdict = admitted({TYPE: "training", f"{DOMAIN}/gpu-product": "NVIDIA-H20", "team": "vision"})

    assert verdict == Advised("training")


def test_bad_defaults_are_denied_with_one_message_that_names_each() -> None:
    verdict = admitted({TYPE: "trainning", f"{DOMAIN}/gpu-memory": "80 GB", f"{DOMAIN}/gpu-count": "2"})

    assert isinstance(verdict, Denied)
    assert (verdict.denial.code, verdict.denial.reason) == (422, "Invalid")
    first, second = verdict.denial.message.split(";\n")
    assert first == MISTYPED
    assert second.startswith(f'metadata.annotations[{DOMAIN}/gpu-memory]: Invalid value: "80 GB"; must be a quantity')


def test_a_denial_keeps_the_warnings_about_other_annotations() -> None:
    verdict = admitted({TYPE: "trainning", f"{DOMAIN}/gpu-prodct": "NVIDIA-H20"})

    assert isinstance(verdict, Denied)
    assert verdict.warnings == (
        f"annotation {DOMAIN}/gpu-prodct is not known and does nothing; did you mean {PRODUCT}?",
    )


def test_a_default_is_validated_without_a_workload_type() -> None:
    verdict = admitted({f"{DOMAIN}/scheduler": "my-scheduler"})

    assert isinstance(verdict, Denied)
    assert verdict.denial.message.startswith(f"metadata.annotations[{DOMAIN}/scheduler]: Unsupported value")


@pytest.mark.parametrize("type_of_its_own", [{TYPE: "training"}, {}], ids=["a type", "no type"])
def test_a_product_that_the_namespace_may_not_use_is_denied(type_of_its_own: dict[str, str]) -> None:
    """Pods can have types of their own, beside which the product would be a default."""
    restricted = policy_with(allowedProducts={"NVIDIA-H20": ["team-b"]})

    verdict = admitted({PRODUCT: "NVIDIA-H20"} | type_of_its_own, restricted)

    assert isinstance(verdict, Denied)
    assert (verdict.denial.code, verdict.denial.reason) == (403, "Forbidden")
    assert 'namespace "team-a" may not ask for product "NVIDIA-H20"' in verdict.denial.message


def test_a_type_that_the_namespace_may_not_use_is_denied() -> None:
    types = {"training": {"nodeUsage": {"allow": ["training"]}, "allowedNamespaces": ["team-b"]}}

    verdict = admitted({TYPE: "training"}, policy_with(workloadTypes=types))

    assert isinstance(verdict, Denied)
    assert (verdict.denial.code, verdict.denial.reason) == (403, "Forbidden")
    assert 'namespace "team-a" may not ask for workload type "training"' in verdict.denial.message


@pytest.mark.parametrize("annotation", [{}, {f"{DOMAIN}/gpu-memory": "80 GB"}, {f"{DOMAIN}/gpu-count": "0"}])
@pytest.mark.parametrize("product", [{}, {PRODUCT: "NVIDIA-H20"}])
def test_a_denial_is_invalid_if_any_of_its_new_errors_is(annotation: dict[str, str], product: dict[str, str]) -> None:
    """The stored object has the errors of neither, of one, or of both."""
    restricted = policy_with(allowedProducts={"NVIDIA-H20": ["team-b"]})
    stored: tuple[dict[str, str], ...] = ({}, annotation, product, annotation | product)
    for old in stored:
        verdict = admitted(annotation | product, restricted, old=old)
        is_invalid, is_forbidden = (not each.items() <= old.items() for each in (annotation, product))

        codes = [verdict.denial.code] if isinstance(verdict, Denied) else []
        assert codes == ([422] if is_invalid else [403] if is_forbidden else [])


@pytest.mark.parametrize(
    ("name", "namespace", "is_denied"), [("team-a", "", True), ("", "team-a", True), ("team-b", "team-a", False)]
)
def test_limits_are_those_of_the_namespace_by_its_name(name: str, namespace: str, *, is_denied: bool) -> None:
    restricted = policy_with(allowedProducts={"NVIDIA-H20": ["team-b"]})

    verdict = admitted({PRODUCT: "NVIDIA-H20"}, restricted, name=name, namespace=namespace)

    assert isinstance(verdict, Denied) is is_denied


def test_a_policy_can_turn_the_denial_into_warnings() -> None:
    verdict = admitted({TYPE: "trainning"}, policy_with(invalidAnnotations="warn"))

    assert verdict == Advised("trainning", (f"{MISTYPED}; the pods of the namespace ignore it",))


def test_an_error_that_the_stored_namespace_has_blocks_no_other_change() -> None:
    verdict = admitted({TYPE: "trainning", "team": "vision"}, old={TYPE: "trainning"})

    assert verdict == Advised("trainning", (f"{MISTYPED}; the pods of the namespace ignore it",))


def test_another_bad_value_than_the_stored_one_is_denied() -> None:
    verdict = admitted({TYPE: "trainning", f"{DOMAIN}/gpu-count": "0"}, old={TYPE: "inferense"})

    assert isinstance(verdict, Denied)
    assert verdict.denial.message.startswith(MISTYPED)


def test_defaults_of_a_domain_an_edit_away_are_a_warning() -> None:
    assert admitted({"maip.mxsf.oi/workload-type": "training"}) == Bypassed(
        "no annotation of the policy's domain",
        (f"annotation maip.mxsf.oi/workload-type is not known and does nothing; did you mean {TYPE}?",),
    )


def test_a_misspelt_key_is_a_warning() -> None:
    verdict = admitted({f"{DOMAIN}/workload-typ": "training"})

    assert verdict == Advised(
        None, (f"annotation {DOMAIN}/workload-typ is not known and does nothing; did you mean {TYPE}?",)
    )


def test_keys_follow_the_domain_of_the_policy() -> None:
    policy = policy_with(keyDomain="example.com")

    assert isinstance(admitted({TYPE: "trainning"}, policy), Bypassed)
    assert isinstance(admitted({"example.com/workload-type": "trainning"}, policy), Denied)


@pytest.mark.parametrize("annotations", [None, {}, {"team": "vision"}])
def test_a_namespace_without_our_keys_is_left_alone(annotations: Any) -> None:
    assert admitted(annotations) == Bypassed("no annotation of the policy's domain")


@pytest.mark.parametrize(
    ("field", "value"), [("operation", "DELETE"), ("subresource", "status"), ("group", "other.io"), ("kind", "Other")]
)
def test_another_request_is_left_alone(field: str, value: str) -> None:
    assert isinstance(admitted({TYPE: "trainning"}, None, old=None, **{field: value}), Bypassed)


@pytest.mark.parametrize("annotations", [7, ["a"], {TYPE: 7}])
def test_annotations_of_another_type_are_an_error(annotations: Any) -> None:
    with pytest.raises(InvalidInput, match=r"request\.object\.metadata\.annotations"):
        admitted(annotations)


def test_defaults_without_a_type_or_an_accelerator_are_for_pods_that_have_them() -> None:
    assert admitted({f"{DOMAIN}/gpu-product": "NVIDIA-H20"}) == Advised(None)
    assert admitted({TYPE: "training", f"{DOMAIN}/gpu-memory": "80Gi"}) == Advised("training")

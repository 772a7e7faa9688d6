"""Pods that request a card without a workload type."""

import pytest

from tests.support.admission import DOMAIN, TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.injection import Bypassed, Denied
from webhook.mutation.workload.card_request import CardRequest
from webhook.mutation.workload.workload import read_workload

MISSING_TYPE = (
    f"metadata.annotations[{TYPE}]: Required value: the pod requests an accelerator, and the policy requires a "
    "workload type of such pods: inference, training"
)


def test_a_pod_with_a_card_and_without_a_type_can_be_warned_denied_or_given_a_type() -> None:
    pod = make_pod().gpu(1).obj()

    warned, denied, typed = (admit_pod(pod, policy_with(requireType=each)) for each in ("warn", "deny", "inference"))

    assert warned == Bypassed("no workload type", (MISSING_TYPE,))
    assert isinstance(denied, Denied)
    assert (denied.denial.code, denied.denial.message) == (422, MISSING_TYPE)
    assert typed.outcome == "Patched"
    assert typed.workload_type == "inference"
    assert admit_pod(pod, policy_with()) == Bypassed("no workload type")
    assert admit_pod(pod, policy_with(requireType="deny", invalidAnnotations="warn")).warnings == (MISSING_TYPE,)


def test_the_required_type_is_for_pods_with_a_card_and_without_a_type_alone() -> None:
    policy = policy_with(requireType="inference")

    own = admit_pod(make_pod().gpu(1).annotate(TYPE, "training").obj(), policy)

    assert own.outcome == "Patched"
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


@pytest.mark.parametrize("resource", ["nvidia.com/gpus", "nvidia.com/GPU"])
def test_a_resource_similar_to_a_card_is_a_question(resource: str) -> None:
    pod = make_pod().annotate(TYPE, "training").limits(**{resource: 1, "example.com/nic": 1})

    assert read_workload(pod.obj(), "default", {}, policy_with()).warnings == (
        f"resource {resource} is not that of an accelerator of the policy; did you mean nvidia.com/gpu?",
    )


def test_defaults_that_restrict_apply_to_a_pod_without_a_card() -> None:
    policy = policy_with(withoutAccelerator={"namespaceDefaults": "leave"})
    keys, pod = policy.keys, make_pod().requests(cpu=1).obj()
    defaults = {keys.inject: "disabled", keys.placement_check: "deny", keys.workload_type: "training"}

    kept = CardRequest.of(pod, {}, (), policy).applicable_defaults(defaults, policy)

    assert kept == {keys.inject: "disabled", keys.placement_check: "deny"}


HALF = {"gpu-fraction": "0.5"}


@pytest.mark.parametrize("scheduler", ["kai-scheduler", "volcano", ""])
@pytest.mark.parametrize(
    ("annotations", "of_kai", "is_share"),
    [
        ({}, False, False),
        (HALF, True, False),
        ({"gpu-memory": "1"}, True, False),
        ({f"{DOMAIN}/gpu-fraction": "0.5"}, False, True),
    ],
)
@pytest.mark.parametrize("limits", [{}, {"nvidia.com/gpu": 1}, {"deviceclass.resource.kubernetes.io/x": 1}])
def test_a_share_is_one_of_the_policy_or_one_of_kai_for_kai_and_none_beside_cards(
    annotations: dict[str, str], scheduler: str, limits: dict[str, int], *, of_kai: bool, is_share: bool
) -> None:
    pod = make_pod().spec(schedulerName=scheduler)
    for key, value in annotations.items():
        pod = pod.annotate(key, value)
    found = CardRequest.of(pod.obj(), annotations, tuple(limits), policy_with())
    has_card, is_class = "nvidia.com/gpu" in limits, "deviceclass.resource.kubernetes.io/x" in limits

    assert found.has_kai_share is (of_kai and not has_card)
    assert found.has_share is ((is_share or (of_kai and scheduler == "kai-scheduler")) and not has_card)
    assert found.has_claims is is_class
    assert found.may_include_card is (has_card or is_class or found.has_share)
    assert [each.name for each in found.accelerators] == (["nvidia"] if has_card else [])
    claiming = CardRequest.of(pod.spec(resourceClaims=[{"name": "c"}]).obj(), annotations, (), policy_with())
    assert claiming.has_claims


@pytest.mark.parametrize("own", ["warn", "inject"])
@pytest.mark.parametrize("of_namespace", ["warn", "inject"])
def test_annotations_about_cards_are_warned_of_as_their_holder_is_handled(own: str, of_namespace: str) -> None:
    policy = policy_with(withoutAccelerator={"podAnnotations": own, "namespaceDefaults": of_namespace})
    pod = make_pod().annotate(TYPE, "training").annotate(f"{DOMAIN}/gpu-count", "8")
    defaults = {f"{DOMAIN}/gpu-driver": "550"}
    warnings = read_workload(pod.obj(), "lab", defaults, policy).warnings

    named = [key for key, handling in (("gpu-count", own), ("gpu-driver", of_namespace)) if handling == "warn"]
    removed = ", ".join((TYPE, *(f"{DOMAIN}/{each}" for each in named)))
    assert [each.partition(", or remove ")[2] for each in warnings] == ([removed] if named else [])

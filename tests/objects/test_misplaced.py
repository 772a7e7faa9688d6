"""Annotations in places of an object from which its pods do not get them."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, make_request, policy_with
from tests.support.objects.workload_objects import TEMPLATE, jobset, workload
from webhook.admission.injection import Denied
from webhook.objects.admission import admit_request

Object = dict[str, Any]


def warnings_of(content: Object) -> tuple[str, ...]:
    """Return the warnings for the user who creates `content`."""
    group = content["apiVersion"].rpartition("/")[0]
    request = make_request(content, kind=content["kind"], group=group, resource="")
    verdict = admit_request(request, policy_with(), None)
    assert not isinstance(verdict, Denied)
    return verdict.warnings


ANNOTATED = {"annotations": {TYPE: "training"}}
OF_JOB = "spec.replicatedJobs[0].template"


@pytest.mark.parametrize(
    ("content", "place", "remedy"),
    [
        pytest.param(
            workload("batch/v1", "CronJob", {"jobTemplate": {"metadata": ANNOTATED, "spec": {"template": TEMPLATE}}}),
            "spec.jobTemplate.metadata.annotations",
            "its pods read spec.jobTemplate.spec.template.metadata.annotations",
            id="a CronJob",
        ),
        pytest.param(
            workload(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                {
                    "replicatedJobs": [
                        {"name": "w", "template": {"metadata": ANNOTATED, "spec": {"template": TEMPLATE}}}
                    ]
                },
            ),
            f"{OF_JOB}.metadata.annotations",
            f"its pods read {OF_JOB}.spec.template.metadata.annotations",
            id="a JobSet",
        ),
        pytest.param(
            workload("apps/v1", "Deployment", {**ANNOTATED, "template": TEMPLATE}),
            "spec.annotations",
            "its pods read spec.template.metadata.annotations",
            id="a Deployment",
        ),
        pytest.param(
            workload("apps/v1", "Deployment", {"template": {**TEMPLATE, **ANNOTATED}}),
            "spec.template.annotations",
            "its pods read spec.template.metadata.annotations",
            id="beside the metadata of the template",
        ),
        pytest.param(
            workload(
                "serving.kserve.io/v1beta1",
                "InferenceService",
                {"predictor": {**TEMPLATE["spec"], "metadata": ANNOTATED}},
            ),
            "spec.predictor.metadata.annotations",
            "its pods read spec.predictor.annotations",
            id="a component, which has no metadata",
        ),
        pytest.param(
            workload("trainer.kubeflow.org/v1alpha1", "TrainJob", {"podTemplateOverrides": [ANNOTATED]}),
            "spec.podTemplateOverrides[0].annotations",
            "its pods read spec.podTemplateOverrides[0].metadata.annotations",
            id="beside the metadata of an override",
        ),
        pytest.param(
            workload("trainer.kubeflow.org/v1alpha1", "TrainJob", ANNOTATED),
            "spec.annotations",
            "the pods of a TrainJob come from the runtime",
            id="a TrainJob",
        ),
        pytest.param(
            workload(
                "trainer.kubeflow.org/v1alpha1",
                "TrainingRuntime",
                {"template": {"metadata": ANNOTATED, "spec": jobset()["spec"]}},
            ),
            "spec.template.metadata.annotations",
            f"its pods read spec.template.{OF_JOB}.spec.template.metadata.annotations",
            id="a TrainingRuntime",
        ),
    ],
)
def test_annotations_above_the_pod_template_are_warned_of(content: Object, place: str, remedy: str) -> None:
    (warning,) = warnings_of(content)

    assert warning.startswith(f"{TYPE} has no effect at {place}: {remedy}")


def train_job(**spec: Any) -> Object:
    return workload("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "torch"}, **spec})


def patched_by(template: Object, **of_job: Any) -> Object:
    """Return the spec of a TrainJob that patches the pods of its runtime with `template`."""
    replicated = {"name": "node", "template": {**of_job, "spec": {"template": template}}}
    return {"runtimePatches": [{"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [replicated]}}}}]}


def test_values_in_overrides_and_patches_of_a_train_job_are_checked() -> None:
    mistyped = {"metadata": {"annotations": {TYPE: "trainning"}}}
    in_patch = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template"
    spec = {"podTemplateOverrides": [mistyped], **patched_by(mistyped)}

    of_override, of_patch = warnings_of(train_job(**spec))

    expected = f'metadata.annotations[{TYPE}]: Unsupported value: "trainning"'
    assert of_override.startswith(f"spec.podTemplateOverrides[0].{expected}")
    assert of_patch.startswith(f"{in_patch}.{expected}")


@pytest.mark.parametrize(
    ("annotations", "wrong"),
    [
        ({"gpu-memory": "much"}, ["gpu-memory"]),
        ({"gpu-count": "many", "gpu-product": "NVIDIA-H20"}, ["gpu-count"]),
        ({"placement-check": "maybe", "bin-packing": "perhaps"}, ["bin-packing", "placement-check"]),
        ({"bin-packing": "true"}, []),
    ],
)
def test_each_value_in_an_override_is_checked(annotations: dict[str, str], wrong: list[str]) -> None:
    template = {"metadata": {"annotations": {f"{DOMAIN}/{key}": value for key, value in annotations.items()}}}

    found = warnings_of(train_job(podTemplateOverrides=[{}, template]))

    paths = [each.partition(": ")[0] for each in found if " value: " in each]
    assert sorted(paths) == [f"spec.podTemplateOverrides[1].metadata.annotations[{DOMAIN}/{key}]" for key in wrong]


def test_an_override_of_a_train_job_has_an_effect() -> None:
    right = {"metadata": ANNOTATED}

    assert warnings_of(train_job(podTemplateOverrides=[right])) == ()
    assert warnings_of(train_job(**patched_by(right))) == ()


@pytest.mark.parametrize("passed", [(), (TYPE,), (PRODUCT,), (PRODUCT, TYPE)], ids=lambda each: f"{len(each)} passed")
@pytest.mark.parametrize("is_patch", [True, False])
def test_a_key_on_the_object_itself_is_warned_of_unless_it_passes_the_same_one_on(
    passed: tuple[str, ...], *, is_patch: bool
) -> None:
    values = {TYPE: "training", PRODUCT: "NVIDIA-H20"}
    template = {"metadata": {"annotations": {key: values[key] for key in passed}}}
    content = train_job(**(patched_by(template) if is_patch else {"podTemplateOverrides": [template]}))
    content["metadata"] = {**content["metadata"], "annotations": values}

    found = [each for each in warnings_of(content) if "on the TrainJob itself" in each]

    left = [key for key in (TYPE, PRODUCT) if key not in passed]
    verb = "have" if len(left) > 1 else "has"
    assert [each.partition(" no effect ")[0] for each in found] == ([f"{', '.join(left)} {verb}"] if left else [])


def test_an_annotation_on_the_job_of_a_patch_is_warned_of() -> None:
    (warning,) = warnings_of(train_job(**patched_by({"spec": {}}, metadata=ANNOTATED)))

    assert f"{OF_JOB}.metadata.annotations: its pods read " in warning


@pytest.mark.parametrize("patches", [None, [], [{}], [{"trainingRuntimeSpec": {}}]])
def test_annotations_above_patches_that_do_not_reach_the_pods_are_warned_of(patches: list[Object] | None) -> None:
    """The innermost part of the path to the pods that exists, and each part above it, can have annotations."""
    spec = {"metadata": ANNOTATED} | ({} if patches is None else {"runtimePatches": patches})

    (warning,) = warnings_of(train_job(**spec))

    assert warning.startswith(f"{TYPE} has no effect at spec.metadata.annotations: ")


def test_annotations_above_the_jobs_of_a_patch_are_warned_of() -> None:
    job = {"name": "node", "template": {"metadata": ANNOTATED, "spec": {}}}
    template = {"metadata": ANNOTATED, "spec": {"replicatedJobs": [job]}}
    spec = {"runtimePatches": [{"trainingRuntimeSpec": {"template": template}}]}

    above, of_job = warnings_of(train_job(**spec))

    assert "at spec.runtimePatches[0].trainingRuntimeSpec.template.metadata.annotations: " in above
    assert f"{OF_JOB}.metadata.annotations: " in of_job


@pytest.mark.parametrize("overrides", ["x", [1], [{"metadata": "x"}], [{"metadata": {"annotations": {TYPE: 1}}}]])
def test_malformed_overrides_are_left_to_their_controller(overrides: Any) -> None:
    assert warnings_of(train_job(podTemplateOverrides=overrides)) == ()

"""The pods of Spark, which are written without templates."""

from typing import Any

import pytest

from tests.kube.workloads.reading import sets_of
from tests.support.objects.workload_objects import SPEC, workload
from webhook.documents.field import InvalidInput
from webhook.kube.workloads.pod_set import pod_name

ANNOTATIONS = {"example.com/a": "1"}


def spark(**spec: Any) -> dict[str, Any]:
    return workload("sparkoperator.k8s.io/v1beta2", "SparkApplication", {"driver": {}, "executor": {}, **spec})


@pytest.mark.parametrize(
    ("language", "executor", "memory", "cpu"),
    [
        pytest.param("Scala", {"memory": "8g", "cores": 4}, f"{8 * 1024**2 * 11 // 10}Ki", "4", id="10 % more"),
        pytest.param("Python", {"memory": "8g"}, f"{8 * 1024**2 * 14 // 10}Ki", "1", id="40 % more"),
        pytest.param("Scala", {}, f"{(1024 + 384) * 1024}Ki", "1", id="at least 384 MiB more"),
        pytest.param("Scala", {"memory": "1g", "memoryOverhead": "512m"}, f"{1536 * 1024}Ki", "1", id="stated"),
        pytest.param("Scala", {"memory": "much", "coreRequest": "500m"}, "much", "500m", id="no memory of Spark"),
        pytest.param("Scala", {"memory": "9" * 5000 + "g"}, "9" * 5000 + "g", "1", id="more digits than are read"),
    ],
)
def test_a_spark_pod_has_the_amounts_of_its_fields(
    language: str, executor: dict[str, Any], memory: str, cpu: str
) -> None:
    _, found = sets_of(spark(type=language, executor=executor))

    resources = found.pod["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}


@pytest.mark.parametrize(
    ("application", "more"),
    [
        pytest.param({"type": "Python", "memoryOverheadFactor": "0.2"}, (1, 5), id="a stated factor"),
        pytest.param({"type": "Python", "memoryOverheadFactor": "x"}, (2, 5), id="no factor"),
        pytest.param({"type": "R"}, (2, 5), id="the language"),
    ],
)
@pytest.mark.parametrize("kind", ["SparkApplication", "ScheduledSparkApplication"])
def test_spark_pods_have_the_memory_that_the_application_adds(
    kind: str, application: dict[str, Any], more: tuple[int, int]
) -> None:
    spec = {"driver": {}, "executor": {"memory": "8g"}, **application}
    spec = spec if kind == "SparkApplication" else {"schedule": "@daily", "template": spec}
    _, found = sets_of(workload("sparkoperator.k8s.io/v1beta2", kind, spec))

    size, (part, whole) = 8 * 1024**2, more
    limits = found.pod["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": f"{size + size * part // whole}Ki"}


def test_a_part_of_a_pod_spec_has_the_containers_of_its_controller() -> None:
    (found,) = sets_of(
        workload("serving.kserve.io/v1alpha1", "LLMInferenceService", {"template": {"nodeSelector": {}}})
    )

    assert found.pod["spec"]["containers"] == [{"name": "main"}]
    assert found.caveat == "its controller adds the containers of spec.template"


@pytest.mark.parametrize(("initial", "number"), [(7, 7), (1, 2)])
def test_spark_starts_with_its_initial_executors(initial: int, number: int) -> None:
    allocation = {"enabled": True, "minExecutors": 2, "initialExecutors": initial, "maxExecutors": 9}
    _, found = sets_of(spark(dynamicAllocation=allocation))

    assert found.replicas == number


def test_spark_without_dynamic_allocation_starts_its_instances() -> None:
    """The operator passes the fields of `dynamicAllocation` on only if it is enabled."""
    for allocation in ({"enabled": False, "minExecutors": 2, "initialExecutors": 7}, {"minExecutors": 2}):
        _, found = sets_of(spark(executor={"instances": 1}, dynamicAllocation=allocation))
        assert found.replicas == 1


def test_spark_executors_have_gpus_template_scheduler_and_number() -> None:
    executor = {
        "instances": 3,
        "gpu": {"name": "nvidia.com/gpu", "quantity": 2},
        "annotations": ANNOTATIONS,
        "template": {"metadata": {"annotations": {"example.com/b": "2"}}, "spec": SPEC},
    }
    driver, found = sets_of(spark(executor=executor, batchScheduler="volcano"))

    assert (driver.replicas, found.replicas) == (1, 3)
    assert (pod_name(driver.pod), pod_name(found.pod)) == ("team-a/web-driver", "team-a/web-exec-")
    assert found.pod["spec"]["schedulerName"] == "volcano"
    assert found.pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert found.pod["metadata"]["annotations"] == {**ANNOTATIONS, "example.com/b": "2"}


@pytest.mark.parametrize(
    ("executor", "path", "detail"),
    [
        ({"sidecars": 5}, "sidecars", "must be a list of objects"),
        ({"template": 5}, "template", "must be an object"),
        ({"template": {"spec": {"containers": "abc"}}}, "template.spec.containers", "must be a list of objects"),
        ({"template": {"spec": {"containers": [5]}}}, "template.spec.containers", "must be a list of objects"),
        ({"template": {"metadata": {"labels": 3}}}, "template.metadata.labels", "must be an object"),
        ({"annotations": [1, 2]}, "annotations", "must be an object"),
        ({"gpu": "x"}, "gpu", "must be an object"),
        ({"gpu": {"name": ["a"], "quantity": 1}}, "gpu.name", "must be text"),
        ({"gpu": {"name": 5, "quantity": 1}}, "gpu.name", "must be text"),
    ],
)
def test_a_field_of_spark_of_another_type_is_named(executor: dict[str, Any], path: str, detail: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        sets_of(spark(executor=executor))

    (error,) = caught.value.errors
    assert (error.path, error.detail) == (f"spec.executor.{path}", detail)

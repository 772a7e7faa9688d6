"""The pods of serving platforms, Spark and AppWrappers."""

from typing import Any

import pytest

from tests.kube.workloads.reading import sets_of
from tests.support.objects.workload_objects import SPEC, TEMPLATE, job, workload
from webhook.documents.field import InvalidInput
from webhook.kube.workloads.pod_set import pod_name

ANNOTATIONS = {"example.com/a": "1"}


def llm(**spec: Any) -> dict[str, Any]:
    return workload("serving.kserve.io/v1alpha1", "LLMInferenceService", spec)


def described(content: dict[str, Any]) -> list[tuple[str, str, int | None, str]]:
    """Return path, role, number and first name of each set."""
    return [(each.path, each.role, each.replicas, pod_name(each.pod)) for each in sets_of(content)]


def test_an_llm_inference_service_has_decode_and_prefill_pods_with_annotations_beside_their_specs() -> None:
    prefill = {"replicas": 3, "template": SPEC, "annotations": {"example.com/a": "2"}}
    content = llm(replicas=2, template=SPEC, annotations=ANNOTATIONS, prefill=prefill)

    assert described(content) == [
        ("spec.template", "decode", 2, "team-a/web-kserve-decode-"),
        ("spec.prefill.template", "prefill", 3, "team-a/web-kserve-prefill-"),
    ]
    decode, second = sets_of(content)
    assert (decode.pod["metadata"]["annotations"], decode.annotations_path) == (ANNOTATIONS, "spec.annotations")
    assert second.pod["metadata"]["annotations"] == {"example.com/a": "2"}
    assert decode.locate("spec.tolerations[0]") == "spec.template.tolerations[0]"


def test_workers_of_an_llm_inference_service_leave_the_placement_unknown() -> None:
    content = llm(replicas=2, template=SPEC, worker=SPEC, parallelism={"pipeline": 4})

    assert [(each.role, each.replicas) for each in sets_of(content)] == [("decode", 2), ("decode-worker", 6)]
    assert all("follows from spec.parallelism" in each.caveat for each in sets_of(content))


def test_an_llm_inference_service_can_leave_its_template_to_a_configuration() -> None:
    assert sets_of(llm(baseRefs=[{"name": "config"}])) == ()


def test_prefill_pods_without_a_template_are_counted_and_their_placement_is_unknown() -> None:
    decode, prefill = sets_of(llm(template=SPEC, prefill={"replicas": 4}))

    assert (prefill.path, prefill.role, prefill.replicas) == ("spec.prefill.template", "prefill", 4)
    assert (decode.caveat, prefill.caveat) == ("", "its controller adds the containers of spec.prefill.template")


def test_a_pod_clique_set_multiplies_two_numbers() -> None:
    clique = {"name": "Decode", "annotations": ANNOTATIONS, "spec": {"replicas": 3, "podSpec": SPEC}}
    content = workload("grove.io/v1alpha1", "PodCliqueSet", {"replicas": 2, "template": {"cliques": [clique]}})

    path = "spec.template.cliques[0].spec.podSpec"
    assert described(content) == [(path, "Decode", 6, "team-a/web-0-decode-")]
    (found,) = sets_of(content)
    assert found.annotations_path == "spec.template.cliques[0].annotations"
    assert [pod_name(found.pod_at(index)) for index in (2, 3)] == ["team-a/web-0-decode-", "team-a/web-1-decode-"]
    assert found.pod["metadata"]["annotations"] == ANNOTATIONS


def test_scaling_groups_of_a_pod_clique_set_leave_the_placement_unknown() -> None:
    cliques = [{"name": "a", "spec": {"podSpec": SPEC}}]
    template = {"cliques": cliques, "podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["a"], "replicas": 4}]}
    (found,) = sets_of(workload("grove.io/v1alpha1", "PodCliqueSet", {"template": template}))

    assert found.caveat == "each replica of a scaling group repeats its cliques"


def test_a_component_of_dynamo_has_a_pod_on_each_node_of_each_replica() -> None:
    components = [
        {"name": "frontend", "podTemplate": TEMPLATE},
        {"name": "worker", "replicas": 2, "multinode": {"nodeCount": 4}, "podTemplate": TEMPLATE},
        {"name": "without"},
    ]
    content = workload("nvidia.com/v1beta1", "DynamoGraphDeployment", {"components": components})

    assert described(content) == [
        ("spec.components[0].podTemplate", "frontend", 1, "team-a/web-frontend-"),
        ("spec.components[1].podTemplate", "worker", 8, "team-a/web-worker-"),
        ("spec.components[2].podTemplate", "without", 1, "team-a/web-without-"),
    ]
    assert [each.caveat for each in sets_of(content)] == ["", "", "its controller adds spec.components[2].podTemplate"]


def test_a_dynamo_graph_of_the_older_version_has_no_templates() -> None:
    assert sets_of(workload("nvidia.com/v1alpha1", "DynamoGraphDeployment", {"services": {"a": {}}})) == ()


def test_a_nim_service_describes_its_container_itself() -> None:
    limits = {"limits": {"nvidia.com/gpu": 4}}
    spec = {"replicas": 2, "annotations": ANNOTATIONS, "resources": limits, "nodeSelector": {"a": "b"}, "image": {}}
    content = workload("apps.nvidia.com/v1alpha1", "NIMService", spec)

    (found,) = sets_of(content)
    assert found.replicas == 2
    assert found.pod["spec"] == {
        "nodeSelector": {"a": "b"},
        "containers": [{"name": "main", "resources": limits}],
    }
    assert found.pod["metadata"]["annotations"] == ANNOTATIONS
    assert found.annotations_path == "spec.annotations"


def wrapper(*templates: Any, **spec: Any) -> dict[str, Any]:
    components = [{"template": each} for each in templates]
    return workload("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": components, **spec})


def test_the_pods_of_an_app_wrapper_are_those_of_its_objects() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC}
    content = wrapper(job(parallelism=2), service, pod)

    first, second = sets_of(content)
    assert (first.path, first.replicas) == ("spec.components[0].template.spec.template", 2)
    assert first.annotations_path == "spec.components[0].template.spec.template.metadata.annotations"
    assert first.locate("spec.nodeName") == "spec.components[0].template.spec.template.spec.nodeName"
    assert second.path == "spec.components[2].template"
    assert {each.pod["metadata"]["namespace"] for each in (first, second)} == {"team-a"}


def test_a_suspended_app_wrapper_creates_no_pods() -> None:
    assert [each.suspended for each in sets_of(wrapper(job(), suspend=True))] == ["spec.suspend"]


@pytest.mark.parametrize("of_wrapper", [None, False, True])
@pytest.mark.parametrize("of_job", [None, False, True])
def test_the_pods_of_an_app_wrapper_are_suspended_by_it_or_by_their_own_object(
    of_wrapper: bool | None, of_job: bool | None
) -> None:
    outer = {} if of_wrapper is None else {"suspend": of_wrapper}
    inner = job() if of_job is None else job(suspend=of_job)
    other = job()

    own, beside = sets_of(wrapper(inner, other, **outer))

    assert bool(own.suspended) is bool(of_wrapper or of_job)
    assert bool(beside.suspended) is bool(of_wrapper)


@pytest.mark.parametrize("namespace", [None, "team-a", "team-b"])
def test_the_objects_of_an_app_wrapper_are_in_its_namespace_whatever_they_state(namespace: str | None) -> None:
    metadata = {"name": "p", "labels": {"a": "b"}, **({} if namespace is None else {"namespace": namespace})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": SPEC}
    inner = job()
    inner["metadata"] = {**inner["metadata"], **metadata}

    for each in sets_of(wrapper(inner, pod)):
        assert each.pod["metadata"]["namespace"] == "team-a"
    assert sets_of(wrapper(pod))[0].pod["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(
    ("inner", "path"),
    [
        pytest.param({"apiVersion": "a/v1", "kind": "Other"}, "spec.components[0].template: kind", id="unknown kind"),
        pytest.param("text", "spec.components[0].template", id="no object"),
        pytest.param({"apiVersion": "apps/v1", "kind": "Deployment"}, "spec.components[0].template", id="no template"),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": 5},
            "spec.components[0].template: metadata: Invalid value: 5",
            id="metadata of a kind",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": 5, "spec": SPEC},
            "spec.components[0].template: metadata: Invalid value: 5",
            id="metadata of a Pod",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "spec": 5},
            "spec.components[0].template: spec: Invalid value: 5",
            id="spec of a Pod",
        ),
    ],
)
def test_the_error_of_a_wrapped_object_names_its_place(inner: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        sets_of(wrapper(inner))
    assert str(caught.value.errors[0]).startswith(path)


def test_a_ray_cron_job_has_the_pods_of_its_job() -> None:
    cluster = {"headGroupSpec": {"template": TEMPLATE}}
    spec = {"jobTemplate": {"rayClusterSpec": cluster, "submitterPodTemplate": TEMPLATE}}

    assert [(path, role) for path, role, *_ in described(workload("ray.io/v1", "RayCronJob", spec))] == [
        ("spec.jobTemplate.rayClusterSpec.headGroupSpec.template", "head"),
        ("spec.jobTemplate.submitterPodTemplate", "submitter"),
    ]

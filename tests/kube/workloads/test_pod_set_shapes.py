"""The pod that a template makes, for each shape of template."""

from typing import Any

import pytest

from tests.kube.workloads.reading import sets_of
from tests.support.objects.workload_objects import (
    SPEC,
    inference_service,
    workload,
)
from webhook.kube.workloads.pod_set import pod_name


def test_a_notebook_and_an_inference_service_give_their_pods_their_annotations() -> None:
    for content, path in (
        (workload("kubeflow.org/v1", "Notebook", {"template": {"spec": SPEC}}), "metadata.annotations"),
        (inference_service(containers=SPEC["containers"], annotations={"b": "own"}), "spec.predictor.annotations"),
    ):
        content["metadata"]["annotations"] = {"a": "outer", "b": "outer", "kubectl.kubernetes.io/last": "x"}
        (found,) = sets_of(content)

        assert found.annotations_path == path
        assert found.pod["metadata"]["annotations"] == {
            "a": "outer",
            "b": "own" if "Inference" in content["kind"] else "outer",
        }


def test_a_model_of_an_inference_service_is_a_pod_of_which_the_object_says_only_a_part() -> None:
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    content = inference_service(
        model={"modelFormat": {"name": "huggingface"}, "resources": resources}, nodeSelector={"pool": "a"}
    )
    (found,) = sets_of(content)

    assert found.pod["spec"] == {
        "nodeSelector": {"pool": "a"},
        "containers": [{"name": "kserve-container", "resources": resources}],
    }
    assert "serving runtime" in found.caveat


@pytest.mark.parametrize(
    ("template", "word"),
    [
        ({"container": {}, "podSpecPatch": "x"}, "podSpecPatch"),
        (
            {"container": {"resources": {"limits": {"nvidia.com/gpu": "{{inputs.parameters.gpus}}"}}}},
            "inputs.parameters.gpus",
        ),
        ({"container": {"args": ["{{inputs.parameters.x}}"]}}, ""),
    ],
    ids=["a patch", "a parameter", "a parameter of no consequence"],
)
def test_a_workflow_that_computes_its_pods_is_known_in_part(template: dict[str, Any], word: str) -> None:
    (found,) = sets_of(workload("argoproj.io/v1alpha1", "Workflow", {"templates": [template]}))

    assert bool(found.caveat) is bool(word)
    assert word in found.caveat


def workflow(*templates: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return workload("argoproj.io/v1alpha1", "Workflow", {"templates": list(templates), **spec})


@pytest.mark.parametrize(("fields", "name"), [({}, "web"), ({"retryStrategy": {"limit": 2}}, "web-train-")])
def test_the_pod_of_a_workflow_that_is_one_step_has_its_name(fields: dict[str, Any], name: str) -> None:
    """Source: github.com/argoproj/argo-workflows, workflow/util/pod_name.go, GeneratePodName."""
    train = {"name": "train", "container": {}, **fields}
    first, second = sets_of(workflow(train, train | {"name": "other"}, entrypoint="train"))

    assert [pod_name(each.pod) for each in (first, second)] == [f"team-a/{name}", "team-a/web-other-"]
    assert first.pod["metadata"]["labels"] == {"workflows.argoproj.io/workflow": "web"}


def test_a_pod_of_a_workflow_has_the_volumes_that_it_mounts() -> None:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("data", "unused")]
    (found,) = sets_of(workflow({"container": {"volumeMounts": [{"name": "data"}]}}, volumes=volumes))

    assert found.pod["spec"]["volumes"] == volumes[:1]


SCHEDULING = {
    "affinity": ({"nodeAffinity": {"of": "template"}}, {"nodeAffinity": {"of": "workflow"}}),
    "nodeSelector": ({"of": "template"}, {"of": "workflow"}),
    "tolerations": ([{"key": "template"}], [{"key": "workflow"}]),
    "schedulerName": ("of-template", "of-workflow"),
    "priorityClassName": ("of-template", "of-workflow"),
}


@pytest.mark.parametrize("name", SCHEDULING)
@pytest.mark.parametrize("in_template", [True, False])
@pytest.mark.parametrize("in_workflow", [True, False])
def test_a_constraint_of_a_template_takes_precedence_over_that_of_the_workflow(
    name: str, in_template: bool, in_workflow: bool
) -> None:
    """Source: github.com/argoproj/argo-workflows, workflow/controller/workflowpod.go, addSchedulingConstraints."""
    own, outer = SCHEDULING[name]
    of_workflow = "podPriorityClassName" if name == "priorityClassName" else name
    train = {"container": {}, **({name: own} if in_template else {})}

    (found,) = sets_of(workflow(train, **({of_workflow: outer} if in_workflow else {})))

    assert found.pod["spec"].get(name) == (own if in_template else outer if in_workflow else None)


def test_the_metadata_of_a_template_takes_precedence_over_those_of_all_pods() -> None:
    """Source: github.com/argoproj/argo-workflows, workflow/controller/workflowpod.go, addMetadata."""
    both = {kind: {"all": "pods", "both": "pods"} for kind in ("labels", "annotations")}
    own = {kind: {"both": "template", "own": "template"} for kind in ("labels", "annotations")}
    merged = {"all": "pods", "both": "template", "own": "template"}

    (found,) = sets_of(workflow({"container": {}, "metadata": own}, podMetadata=both))
    (plain,) = sets_of(workflow({"container": {}}, podMetadata=both))

    label = {"workflows.argoproj.io/workflow": "web"}
    assert found.pod["metadata"]["annotations"] == merged
    assert found.pod["metadata"]["labels"] == merged | label
    assert plain.pod["metadata"]["annotations"] == both["annotations"]


def test_a_workflow_gives_its_templates_defaults() -> None:
    defaults = {
        "nodeSelector": {"pool": "a"},
        "metadata": {"annotations": {"a": "default", "b": "default"}},
        "container": {"resources": {"limits": {"nvidia.com/gpu": 1}}},
    }
    train = {"container": {"image": "train"}, "metadata": {"annotations": {"b": "own"}}}
    (found,) = sets_of(workflow(train, templateDefaults=defaults))

    assert found.pod["metadata"]["annotations"] == {"a": "default", "b": "own"}
    assert found.pod["spec"]["nodeSelector"] == {"pool": "a"}
    (container,) = found.pod["spec"]["containers"]
    assert container == {"image": "train", "resources": {"limits": {"nvidia.com/gpu": 1}}}


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}, "volumeClaimTemplates"),
        ({"volumeClaimTemplates": [{"metadata": {"name": "other"}}]}, ""),
        ({"caller": {"name": "all", "steps": [[]], "nodeSelector": {"pool": "a"}}}, "nodeSelector"),
        ({"caller": {"name": "all", "steps": [[]]}}, ""),
    ],
    ids=["a claim of the workflow", "a claim of another template", "constraints of a caller", "a caller"],
)
def test_a_workflow_that_adds_to_the_pod_of_a_template_leaves_its_placement_unknown(
    spec: dict[str, Any], word: str
) -> None:
    callers = [spec["caller"]] if "caller" in spec else []
    (found,) = sets_of(workflow(*callers, {"container": {"volumeMounts": [{"name": "data"}]}}, **spec))

    assert bool(found.caveat) is bool(word)
    assert word in found.caveat

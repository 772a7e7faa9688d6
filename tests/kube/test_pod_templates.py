"""The pods that objects would make."""

from typing import Any

import pytest

from tests.support.builders import make_pod
from webhook.kube.documents import Document, field
from webhook.kube.field import InvalidInput
from webhook.kube.pod_templates import pod_name, pods_of

TEMPLATE = make_pod().annotate("team", "a").label("app", "web").template()


def pods(content: dict[str, Any]) -> list[Document]:
    return list(pods_of(Document("f.yaml", content)))


def owner(kind: str, api_version: str = "apps/v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "team-a"}, "spec": spec}


OWNERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "Deployment": (owner("Deployment", template=TEMPLATE), "spec.template", "ReplicaSet"),
    "ReplicaSet": (owner("ReplicaSet", template=TEMPLATE), "spec.template", "ReplicaSet"),
    "StatefulSet": (owner("StatefulSet", template=TEMPLATE), "spec.template", "StatefulSet"),
    "DaemonSet": (owner("DaemonSet", template=TEMPLATE), "spec.template", "DaemonSet"),
    "ReplicationController": (
        owner("ReplicationController", "v1", template=TEMPLATE),
        "spec.template",
        "ReplicationController",
    ),
    "Job": (owner("Job", "batch/v1", template=TEMPLATE), "spec.template", "Job"),
    "CronJob": (
        owner("CronJob", "batch/v1", jobTemplate={"spec": {"template": TEMPLATE}}),
        "spec.jobTemplate.spec.template",
        "Job",
    ),
    "PodTemplate": (
        {"kind": "PodTemplate", "metadata": {"name": "web", "namespace": "team-a"}, "template": TEMPLATE},
        "template",
        "PodTemplate",
    ),
}


@pytest.mark.parametrize(("content", "path", "controller"), OWNERS.values(), ids=OWNERS.keys())
def test_an_object_makes_the_pod_of_its_template(content: dict[str, Any], path: str, controller: str) -> None:
    (pod,) = pods(content)

    assert pod.place == f"f.yaml: {path}"
    assert (pod.content["apiVersion"], pod.content["kind"]) == ("v1", "Pod")
    assert pod.content["spec"] == TEMPLATE["spec"]
    assert pod.content["metadata"]["annotations"] == {"team": "a"}
    assert pod.content["metadata"]["labels"] == {"app": "web"}
    assert pod.content["metadata"]["namespace"] == "team-a"
    assert pod.content["metadata"]["generateName"] == "web-"
    assert "name" not in pod.content["metadata"]
    (reference,) = pod.content["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"], reference["controller"]) == (controller, "web", True)


def test_a_pod_is_itself() -> None:
    document = Document("f.yaml", make_pod("a").obj())

    assert list(pods_of(document)) == [document]


def test_a_volcano_job_makes_a_pod_for_each_task() -> None:
    tasks = [{"name": "ps", "template": TEMPLATE}, {"name": "worker", "replicas": 3, "template": {"spec": {"x": 1}}}]

    found = pods(owner("Job", "batch.volcano.sh/v1alpha1", tasks=tasks))

    assert [pod.place for pod in found] == ["f.yaml: spec.tasks[0].template", "f.yaml: spec.tasks[1].template"]
    assert [pod.content["spec"] for pod in found] == [TEMPLATE["spec"], {"x": 1}]
    assert [field(pod.content, "metadata", "generateName") for pod in found] == ["web-", "web-"]


@pytest.mark.parametrize("kind", ["Service", "ConfigMap", "Namespace", "Node", "List", "SomethingNew"])
def test_other_kinds_create_no_pod(kind: str) -> None:
    assert pods({"apiVersion": "v1", "kind": kind}) == []


def test_an_owner_without_a_name_is_called_by_its_kind() -> None:
    (pod,) = pods({"kind": "Deployment", "spec": {"template": {"spec": {}}}})

    assert pod.content["metadata"]["generateName"] == "deployment-"
    assert "namespace" not in pod.content["metadata"]


def test_name_and_namespace_are_those_of_the_owner_not_of_the_template() -> None:
    """Source: k8s.io/kubernetes/pkg/controller/controller_utils.go, GetPodFromTemplate copies neither."""
    template = {"metadata": {"name": "mine", "namespace": "elsewhere"}, "spec": {}}

    (pod,) = pods({"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": template}})

    assert pod_name(pod.content) == "default/web-"


def test_the_object_is_not_touched() -> None:
    content = owner("Deployment", template={"metadata": {"labels": {"a": "b"}}, "spec": {}})
    before = repr(content)

    pods(content)

    assert repr(content) == before


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        pytest.param({}, "f.yaml: kind: Required value", id="no kind"),
        pytest.param({"kind": ""}, "f.yaml: kind: Required value", id="an empty kind"),
        pytest.param({"kind": 7}, "f.yaml: kind: Required value", id="a kind that is no text"),
        pytest.param(
            {"kind": "Deployment"},
            "f.yaml: spec.template: Invalid value: null; must be the pod template of the Deployment",
            id="no template",
        ),
        pytest.param(
            owner("Job", template="x"),
            'f.yaml: spec.template: Invalid value: "x"; must be',
            id="a template that is text",
        ),
        pytest.param(
            owner("CronJob", template={}),
            "f.yaml: spec.jobTemplate.spec.template: Invalid value: null",
            id="a template in the wrong place",
        ),
        pytest.param(
            owner("Job", template={"metadata": [1]}),
            "f.yaml: spec.template.metadata: Invalid value: [1]; must be an object",
            id="metadata",
        ),
        pytest.param(owner("Job", "batch.volcano.sh/v1alpha1"), "f.yaml: spec.tasks: Required value", id="no tasks"),
        pytest.param(
            owner("Job", "batch.volcano.sh/v1alpha1", tasks=["x"]),
            "f.yaml: spec.tasks[0].template: Invalid value: null",
            id="a task that is text",
        ),
        pytest.param(
            owner("Job", "batch.volcano.sh/v1alpha1", tasks=[{"template": {}}, {}]),
            "f.yaml: spec.tasks[1].template: Invalid value: null",
            id="a task without template",
        ),
    ],
)
def test_a_template_that_cannot_be_read_is_named(content: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        pods(content)

    assert str(refused.value).startswith(wanted)


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        ({"metadata": {"name": "a", "namespace": "b"}}, "b/a"),
        ({"metadata": {"name": "a"}}, "default/a"),
        ({"metadata": {"generateName": "a-"}}, "default/a-"),
        ({"metadata": {"name": "a", "generateName": "b-"}}, "default/a"),
        ({"metadata": {}}, "default/"),
        ({"metadata": None}, "default/"),
        ({}, "default/"),
    ],
    ids=["both", "no namespace", "a name to come", "a name that came", "no name", "null", "no metadata"],
)
def test_a_pod_is_called_namespace_and_name(pod: dict[str, Any], wanted: str) -> None:
    assert pod_name(pod) == wanted

"""The sets of pods that objects create."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kube.workloads.reading import sets_of
from tests.support.objects.builders import make_pod
from tests.support.objects.workload_objects import (
    SPEC,
    TEMPLATE,
    apps,
    inference_service,
    job,
    jobset,
    kubeflow,
    leader_worker_set,
    ray_cluster_spec,
    volcano,
    workload,
)
from tests.support.random.random_json import replace_somewhere
from webhook.documents.field import FieldError, InvalidInput
from webhook.kube.workloads.platform_kinds import PLATFORM_KINDS
from webhook.kube.workloads.pod_set import PodSet, pod_name
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.pod_template_path import Count, PodTemplatePath, WorkloadKind
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS, kinds_by_name


def described(content: Any) -> list[tuple[str, str, int | None, list[str]]]:
    """Return path, role, replicas and the first names of the pods of each set."""
    return [
        (
            each.path,
            each.role,
            each.replicas,
            [pod_name(each.pod_at(n)) for n in range(1 if each.replicas is None else min(each.replicas, 4))],
        )
        for each in sets_of(content)
    ]


LWS = "spec.leaderWorkerTemplate"
RAY_PATHS = ("headGroupSpec.template", "workerGroupSpecs[0].template")
CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str, int | None, list[str]]]]] = {
    "a Deployment": (apps("Deployment", replicas=3), [("spec.template", "", 3, ["team-a/web-"] * 3)]),
    "a Deployment of one": (apps("Deployment"), [("spec.template", "", 1, ["team-a/web-"])]),
    "a Deployment of none": (apps("Deployment", replicas=0), [("spec.template", "", 0, [])]),
    "a ReplicaSet": (apps("ReplicaSet", replicas=2), [("spec.template", "", 2, ["team-a/web-"] * 2)]),
    "a ReplicationController": (
        workload("v1", "ReplicationController", {"template": TEMPLATE}),
        [("spec.template", "", 1, ["team-a/web-"])],
    ),
    "a DaemonSet": (apps("DaemonSet"), [("spec.template", "", None, ["team-a/web-"])]),
    "a StatefulSet": (apps("StatefulSet", replicas=2), [("spec.template", "", 2, ["team-a/web-0", "team-a/web-1"])]),
    "a StatefulSet that starts at 5": (
        apps("StatefulSet", replicas=2, ordinals={"start": 5}),
        [("spec.template", "", 2, ["team-a/web-5", "team-a/web-6"])],
    ),
    "a Job": (job(), [("spec.template", "", 1, ["team-a/web-"])]),
    "a Job with more workers than work": (
        job(parallelism=8, completions=2),
        [("spec.template", "", 2, ["team-a/web-"] * 2)],
    ),
    "an Indexed Job": (
        job(parallelism=2, completions=4, completionMode="Indexed"),
        [("spec.template", "", 2, ["team-a/web-0-", "team-a/web-1-"])],
    ),
    "a CronJob": (
        workload("batch/v1", "CronJob", {"jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}}),
        [("spec.jobTemplate.spec.template", "", 2, ["team-a/web-"] * 2)],
    ),
    "a PodTemplate": (
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "web"}, "template": TEMPLATE},
        [("template", "", 1, ["default/web-"])],
    ),
    "a Volcano Job": (
        volcano(
            {"name": "ps", "replicas": 1, "template": TEMPLATE}, {"name": "worker", "replicas": 2, "template": TEMPLATE}
        ),
        [
            ("spec.tasks[0].template", "ps", 1, ["team-a/web-ps-0"]),
            ("spec.tasks[1].template", "worker", 2, ["team-a/web-worker-0", "team-a/web-worker-1"]),
        ],
    ),
    "a Volcano Job without names": (
        volcano({"replicas": 1, "template": TEMPLATE}),
        [("spec.tasks[0].template", "default0", 1, ["team-a/web-default0-0"])],
    ),
    "a Volcano Job without a number": (
        volcano({"template": TEMPLATE}),
        [("spec.tasks[0].template", "default0", 0, [])],
    ),
    "a PyTorchJob": (
        kubeflow("PyTorchJob", "pytorchReplicaSpecs", Master=1, Worker=2),
        [
            ("spec.pytorchReplicaSpecs.Master.template", "Master", 1, ["team-a/web-master-0"]),
            ("spec.pytorchReplicaSpecs.Worker.template", "Worker", 2, ["team-a/web-worker-0", "team-a/web-worker-1"]),
        ],
    ),
    "a TFJob": (
        kubeflow("TFJob", "tfReplicaSpecs", PS=1),
        [("spec.tfReplicaSpecs.PS.template", "PS", 1, ["team-a/web-ps-0"])],
    ),
    "an MPIJob": (
        kubeflow("MPIJob", "mpiReplicaSpecs", "v2beta1", Launcher=1, Worker=2),
        [
            ("spec.mpiReplicaSpecs.Launcher.template", "Launcher", 1, ["team-a/web-launcher-"]),
            ("spec.mpiReplicaSpecs.Worker.template", "Worker", 2, ["team-a/web-worker-0", "team-a/web-worker-1"]),
        ],
    ),
    "a RayCluster": (
        workload("ray.io/v1", "RayCluster", ray_cluster_spec()),
        [
            ("spec.headGroupSpec.template", "head", 1, ["team-a/web-head"]),
            ("spec.workerGroupSpecs[0].template", "gpu", 4, ["team-a/web-gpu-worker-"] * 4),
        ],
    ),
    "a RayJob": (
        workload("ray.io/v1", "RayJob", {"rayClusterSpec": ray_cluster_spec()}),
        [
            ("spec.rayClusterSpec.headGroupSpec.template", "head", 1, ["team-a/web-"]),
            ("spec.rayClusterSpec.workerGroupSpecs[0].template", "gpu", 4, ["team-a/web-"] * 4),
        ],
    ),
    "a RayJob with a submitter of its own on a RayCluster that exists": (
        workload("ray.io/v1", "RayJob", {"clusterSelector": {"a": "b"}, "submitterPodTemplate": TEMPLATE}),
        [("spec.submitterPodTemplate", "submitter", 1, ["team-a/web-"])],
    ),
    "a RayJob that KubeRay submits to a RayCluster that exists": (
        workload(
            "ray.io/v1",
            "RayJob",
            {"clusterSelector": {"a": "b"}, "submitterPodTemplate": TEMPLATE, "submissionMode": "HTTPMode"},
        ),
        [],
    ),
    "a RayJob that KubeRay submits": (
        workload(
            "ray.io/v1",
            "RayJob",
            {
                "clusterSelector": {},
                "rayClusterSpec": {"headGroupSpec": {"template": TEMPLATE}},
                "submitterPodTemplate": TEMPLATE,
                "submissionMode": "InteractiveMode",
            },
        ),
        [("spec.rayClusterSpec.headGroupSpec.template", "head", 1, ["team-a/web-"])],
    ),
    "a RayService": (
        workload("ray.io/v1", "RayService", {"rayClusterConfig": {"headGroupSpec": {"template": TEMPLATE}}}),
        [("spec.rayClusterConfig.headGroupSpec.template", "head", 1, ["team-a/web-"])],
    ),
    "a JobSet": (
        jobset(),
        [
            (
                "spec.replicatedJobs[0].template.spec.template",
                "node",
                6,
                ["team-a/web-node-0-0-", "team-a/web-node-0-1-", "team-a/web-node-0-2-", "team-a/web-node-1-0-"],
            )
        ],
    ),
    "a LeaderWorkerSet": (
        leader_worker_set(),
        [
            (f"{LWS}.leaderTemplate", "leader", 2, ["team-a/web-0", "team-a/web-1"]),
            (f"{LWS}.workerTemplate", "worker", 4, [f"team-a/web-{each}" for each in ("0-1", "0-2", "1-1", "1-2")]),
        ],
    ),
    "a LeaderWorkerSet without a template for leaders": (
        leader_worker_set(with_leader=False),
        [
            (f"{LWS}.workerTemplate", "leader", 2, ["team-a/web-0", "team-a/web-1"]),
            (f"{LWS}.workerTemplate", "worker", 4, [f"team-a/web-{each}" for each in ("0-1", "0-2", "1-1", "1-2")]),
        ],
    ),
    "a Notebook": (
        workload("kubeflow.org/v1", "Notebook", {"template": {"spec": SPEC}}),
        [("spec.template", "", 1, ["team-a/web-0"])],
    ),
    "an InferenceService": (
        inference_service(minReplicas=2, containers=SPEC["containers"]),
        [("spec.predictor", "predictor", 2, ["team-a/web-predictor-"] * 2)],
    ),
    "a Knative Service": (
        workload("serving.knative.dev/v1", "Service", {"template": TEMPLATE}),
        [("spec.template", "", 1, ["team-a/web-00001-deployment-"])],
    ),
    "a Knative Service that keeps 3 pods": (
        workload(
            "serving.knative.dev/v1",
            "Service",
            {"template": {"metadata": {"annotations": {"autoscaling.knative.dev/min-scale": "3"}}, "spec": SPEC}},
        ),
        [("spec.template", "", 3, ["team-a/web-00001-deployment-"] * 3)],
    ),
    "a Knative Service that begins with 2 pods": (
        workload(
            "serving.knative.dev/v1",
            "Service",
            {"template": {"metadata": {"annotations": {"autoscaling.knative.dev/initial-scale": "2"}}, "spec": SPEC}},
        ),
        [("spec.template", "", 2, ["team-a/web-00001-deployment-"] * 2)],
    ),
    "a Rollout": (
        workload("argoproj.io/v1alpha1", "Rollout", {"replicas": 2, "template": TEMPLATE}),
        [("spec.template", "", 2, ["team-a/web-"] * 2)],
    ),
    "a Workflow": (
        workload(
            "argoproj.io/v1alpha1",
            "Workflow",
            {"templates": [{"name": "all", "steps": [[]]}, {"name": "train", "container": SPEC["containers"][0]}]},
        ),
        [("spec.templates[1]", "train", 1, ["team-a/web-train-"])],
    ),
}


@pytest.mark.parametrize(("content", "wanted"), CASES.values(), ids=CASES.keys())
def test_an_object_creates_the_pods_of_its_templates(
    content: dict[str, Any], wanted: list[tuple[str, str, int | None, list[str]]]
) -> None:
    assert described(content) == wanted


@pytest.mark.parametrize("content", [content for content, _ in CASES.values()], ids=CASES.keys())
def test_a_pod_has_the_spec_and_the_metadata_of_its_template(content: dict[str, Any]) -> None:
    before = repr(content)
    for found in sets_of(content):
        pod = found.pod
        assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
        assert pod["spec"]["containers"] == SPEC["containers"]
        assert pod["metadata"]["ownerReferences"][0]["controller"] is True
    assert repr(content) == before


# In test_platform_kinds.py.
LIKE_THEIR_JOBS = {("ray.io", "RayCronJob"), ("batch.volcano.sh", "CronJob"), ("flow.volcano.sh", "JobTemplate")}


def test_each_built_in_kind_with_templates_has_a_case() -> None:
    covered = {(content["apiVersion"].rpartition("/")[0], content["kind"]) for content, _ in CASES.values()}
    others = {"XGBoostJob", "PaddleJob", "JAXJob", "TrainingRuntime", "ClusterTrainingRuntime"}
    others |= {"WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow"}  # like those of their group

    elsewhere = {*PLATFORM_KINDS, *(each for each in BUILT_IN_KINDS if (each.group, each.kind) in LIKE_THEIR_JOBS)}
    kinds = [kind for kind in BUILT_IN_KINDS if kind.templates and kind not in elsewhere]
    assert {(kind.group, kind.kind) for kind in kinds if kind.kind not in others} == covered


@pytest.mark.parametrize(
    ("content", "label", "value"),
    [
        (apps("StatefulSet", replicas=2), "apps.kubernetes.io/pod-index", "1"),
        (job(parallelism=2), "batch.kubernetes.io/job-name", "web"),
        (kubeflow("PyTorchJob", "pytorchReplicaSpecs", Worker=2), "training.kubeflow.org/replica-type", "worker"),
        (leader_worker_set(), "leaderworkerset.sigs.k8s.io/group-index", "1"),
        (jobset(), "jobset.sigs.k8s.io/replicatedjob-name", "node"),
        (volcano({"name": "ps", "replicas": 2, "template": TEMPLATE}), "volcano.sh/task-spec", "ps"),
        (workload("serving.knative.dev/v1", "Service", {"template": TEMPLATE}), "serving.knative.dev/service", "web"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_pod_has_the_labels_that_its_controller_adds(content: dict[str, Any], label: str, value: str) -> None:
    labels = sets_of(content)[0].pod_at(1)["metadata"]["labels"]

    assert labels[label] == value
    assert labels["app"] == "web"


def test_a_label_of_the_controller_replaces_that_of_the_template() -> None:
    template = {**TEMPLATE, "metadata": {"labels": {"app": "web", "apps.kubernetes.io/pod-index": "7"}}}
    (found,) = sets_of(apps("StatefulSet", replicas=2, template=template))

    assert found.pod_at(1)["metadata"]["labels"] == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "1",
        "statefulset.kubernetes.io/pod-name": "web-1",
    }


def test_a_pod_is_itself() -> None:
    pod = make_pod("a").obj()
    (found,) = sets_of(pod)

    assert found.pod is pod
    assert found.pod_at(0) is pod
    assert (found.path, found.replicas, found.claims) == ("", 1, ())
    assert found.locate("spec.tolerations[0]") == "spec.tolerations[0]"


@pytest.mark.parametrize("kind", ["Service", "ConfigMap", "Node", "SomethingNew"])
def test_an_object_of_another_kind_creates_no_pod(kind: str) -> None:
    assert sets_of({"apiVersion": "v1", "kind": kind}) == ()


def test_a_deployment_of_another_group_is_another_kind() -> None:
    assert sets_of(workload("example.com/v1", "Deployment", {"template": TEMPLATE})) == ()


def test_a_deployment_does_not_give_its_pods_its_annotations() -> None:
    content = apps("Deployment")
    content["metadata"]["annotations"] = {"a": "b"}

    assert sets_of(content)[0].pod["metadata"]["annotations"] == {"team": "a"}


def test_a_configured_kind() -> None:
    template = PodTemplatePath("spec.groups.*.pod", (Count("spec.groups.*.size"),), name="{name}-{role}-")
    kinds = kinds_by_name((WorkloadKind("example.com", "FooJob", "foojobs", (template,)),))
    groups = {"a.b": {"size": 2, "pod": TEMPLATE}, "c": {"pod": TEMPLATE}}

    found = pod_sets(workload("example.com/v1", "FooJob", {"groups": groups}), kinds)

    assert [(each.path, each.role, each.replicas) for each in found] == [
        ("spec.groups[a.b].pod", "a.b", 2),
        ("spec.groups.c.pod", "c", 1),
    ]


def test_a_pod_spec_that_the_policy_describes_as_a_template_is_named() -> None:
    kinds = kinds_by_name((WorkloadKind("example.com", "FooJob", "foojobs", (PodTemplatePath("spec.pod"),)),))
    with pytest.raises(InvalidInput) as refused:
        pod_sets(workload("example.com/v1", "FooJob", {"pod": SPEC}), kinds)

    detail = "spec.pod is a PodSpec: set podSpec: true for it in spec.workloadKinds of the policy"
    assert str(refused.value) == f"spec.pod.spec: Required value: {detail}"


MALFORMED = [
    ({}, "kind: Required value"),
    ({"kind": ""}, "kind: Required value"),
    ({"kind": 7}, "kind: Required value"),
    ({"kind": "Deployment"}, "apiVersion: Required value"),
    (
        {**apps("Deployment"), "spec": None},
        "spec.template: Invalid value: null; must be the pod template of the Deployment",
    ),
    ({**apps("Deployment"), "spec": [1]}, "spec: Invalid value: [1]; must be an object"),
    ({**apps("Deployment"), "metadata": "x"}, 'metadata: Invalid value: "x"; must be an object'),
    ({**apps("Deployment"), "metadata": {"name": 7}}, "metadata.name: Invalid value: 7; must be text"),
    (job(template="x"), 'spec.template: Invalid value: "x"; must be the pod template of the Job'),
    (job(template={"metadata": [1]}), "spec.template.metadata: Invalid value: [1]; must be an object"),
    (apps("Deployment", replicas="3"), 'spec.replicas: Invalid value: "3"; must be an integer'),
    (apps("Deployment", replicas=-1), "spec.replicas: Invalid value: -1; must be an integer"),
    (apps("Deployment", replicas=True), "spec.replicas: Invalid value: true; must be an integer"),
    (apps("Deployment", replicas=1.5), "spec.replicas: Invalid value: 1.5; must be an integer"),
    (apps("Deployment", replicas=2**31), "spec.replicas: Invalid value: 2147483648; must be an integer"),
    (volcano(), "spec.tasks: Required value"),
    (volcano("x"), 'spec.tasks[0]: Invalid value: "x"; must be an object'),
    (volcano({"template": {}}, {}), "spec.tasks[1].template: Invalid value: null"),
    (volcano({"template": {}, "replicas": []}), "spec.tasks[0].replicas: Invalid value: []"),
    (
        workload("batch.volcano.sh/v1", "Job", {"tasks": "x"}),
        'spec.tasks: Invalid value: "x"; must be a list or an object',
    ),
    (workload("batch.volcano.sh/v1", "Job", None), "spec.tasks: Required value"),
    (apps("StatefulSet", volumeClaimTemplates={}), "spec.volumeClaimTemplates: Invalid value: {}; must be a list"),
    (apps("StatefulSet", volumeClaimTemplates=[None]), "spec.volumeClaimTemplates[0]: Invalid value: null"),
    (
        apps("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": 1}}]),
        "spec.volumeClaimTemplates[0]: Invalid value",
    ),
]


@pytest.mark.parametrize(("content", "wanted"), MALFORMED, ids=[wanted[:50] for _, wanted in MALFORMED])
def test_an_object_that_cannot_be_read_is_rejected_with_its_path(content: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        sets_of(content)

    assert str(refused.value).startswith(wanted)


def test_errors_are_bounded() -> None:
    with pytest.raises(InvalidInput) as refused:
        sets_of(volcano(*[{"template": None}] * 100_000))

    assert len(refused.value.errors) == 100


def test_every_error_is_reported() -> None:
    with pytest.raises(InvalidInput) as refused:
        sets_of(volcano({"template": {}, "replicas": -1}, {"template": 1}))

    assert [error.path for error in refused.value.errors] == ["spec.tasks[0].replicas", "spec.tasks[1].template"]


@given(data=st.data())
def test_any_json_is_read_or_rejected(data: st.DataObject) -> None:
    content = deepcopy(data.draw(st.sampled_from([content for content, _ in CASES.values()])))
    for _ in range(data.draw(st.integers(1, 3))):
        replace_somewhere(content, data)
    found: tuple[PodSet, ...] = ()
    errors: tuple[FieldError, ...] = ()
    try:
        found = sets_of(content)
    except InvalidInput as error:
        errors = error.errors

    assert len(errors) <= 100
    assert all(each.pod["kind"] == "Pod" and isinstance(each.claims_at(0), tuple) for each in found)


def with_spec(content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return content | {"spec": content["spec"] | fields}


SUSPENDED = [
    (apps("Deployment", paused=True), "spec.paused"),
    (job(suspend=True), "spec.suspend"),
    (workload("batch/v1", "CronJob", {"suspend": True, "jobTemplate": {"spec": job()["spec"]}}), "spec.suspend"),
    (with_spec(jobset(), suspend=True), "spec.suspend"),
    (
        with_spec(kubeflow("PyTorchJob", "pytorchReplicaSpecs", Worker=2), runPolicy={"suspend": True}),
        "spec.runPolicy.suspend",
    ),
    (with_spec(kubeflow("MPIJob", "mpiReplicaSpecs", Worker=2), runPolicy={"suspend": True}), "spec.runPolicy.suspend"),
    (workload("ray.io/v1", "RayCluster", {"suspend": True, **ray_cluster_spec()}), "spec.suspend"),
    (workload("argoproj.io/v1alpha1", "Rollout", {"paused": True, "template": TEMPLATE}), "spec.paused"),
    (
        workload("kubeflow.org/v1", "Notebook", {"template": TEMPLATE}, annotations={"kubeflow-resource-stopped": "x"}),
        "metadata.annotations[kubeflow-resource-stopped]",
    ),
]


@pytest.mark.parametrize(("content", "path"), SUSPENDED, ids=[content["kind"] for content, _ in SUSPENDED])
def test_an_object_that_creates_no_pods_now_says_so_and_counts_those_that_it_will_create(
    content: dict[str, Any], path: str
) -> None:
    found = sets_of(content)

    assert {each.suspended for each in found} == {path}
    assert all(each.replicas for each in found)


@pytest.mark.parametrize("value", [False, None])
def test_an_object_that_is_not_suspended_creates_its_pods(value: bool | None) -> None:
    assert [each.suspended for each in sets_of(job(suspend=value))] == [""]

"""A TrainJob of the Kubeflow trainer is evaluated with its runtime if the same file has it."""

from typing import Any

import pytest

from tests.support.admission import TYPE
from webhook.cli.inputs.train_jobs import Runtimes
from webhook.documents.documents import Document
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.policy.loader import built_in_policy

API = "trainer.kubeflow.org/v1alpha1"
GPU = "nvidia.com/gpu"
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def replicated(name: str, pod: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "template": {"metadata": {"labels": labels or {}}, "spec": {"template": {"spec": pod}}}}


def runtime(kind: str = "ClusterTrainingRuntime", **spec: Any) -> dict[str, Any]:
    node = {"containers": [{"name": "node", "image": "torch"}, {"name": "log", "image": "log"}]}
    jobs = [replicated("data", {"containers": [{"name": "data", "image": "data"}]}), replicated("node", node, STEP)]
    template = {"spec": {"replicatedJobs": jobs}}
    own = {"mlPolicy": {"numNodes": 2, "torch": {}}, "template": template, **spec}
    metadata = {"name": "torch", **({} if kind == "ClusterTrainingRuntime" else {"namespace": "ml"})}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": own}


def train_job(**spec: Any) -> dict[str, Any]:
    own = {"runtimeRef": {"name": "torch"}, **spec}
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": "llama", "namespace": "ml"}, "spec": own}


def pods_of(job: dict[str, Any], *runtimes: dict[str, Any]) -> tuple[PodSet, ...]:
    """Return the pods of the job, or none if they are not known."""
    documents = [Document("file", each) for each in (job, *runtimes)]
    found = Runtimes.of(documents).job_set_of(job)
    return pod_sets(found, built_in_policy().kinds) if found else ()


def test_the_nodes_and_their_resources_are_those_of_the_job() -> None:
    trainer = {"numNodes": 3, "resourcesPerNode": {"limits": {GPU: "8"}}}

    data, node = pods_of(train_job(trainer=trainer), runtime())

    assert (data.replicas, node.replicas, node.role) == (1, 3, "node")
    own, log = node.pod["spec"]["containers"]
    assert (own["image"], own["resources"]) == ("torch", {"limits": {GPU: "8"}})
    assert "resources" not in log


def test_the_number_of_nodes_of_the_runtime_is_the_default() -> None:
    assert [each.replicas for each in pods_of(train_job(), runtime())] == [1, 2]


TEMPLATE = {
    "metadata": {"annotations": {TYPE: "training"}},
    "spec": {"nodeSelector": {"zone": "a"}, "containers": [{"name": "node", "image": "other"}]},
}
PATCHED_JOB = {"name": "node", "template": {"spec": {"template": TEMPLATE}}}


@pytest.mark.parametrize(
    "changes",
    [
        {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], **TEMPLATE}]},
        {"runtimePatches": [{"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [PATCHED_JOB]}}}}]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_changes_of_pod_templates_are_merged_by_name(changes: dict[str, Any]) -> None:
    data, node = pods_of(train_job(**changes), runtime())

    assert node.pod["metadata"]["annotations"] == {TYPE: "training"}
    assert node.pod["spec"]["nodeSelector"] == {"zone": "a"}
    assert [each["image"] for each in node.pod["spec"]["containers"]] == ["other", "log"]
    assert not data.pod["metadata"].get("annotations")


def test_a_runtime_of_the_namespace_is_meant_if_its_kind_is_named() -> None:
    named = train_job(runtimeRef={"name": "torch", "kind": "TrainingRuntime"})

    assert pods_of(named, runtime("TrainingRuntime"))
    assert not pods_of(named, runtime())


@pytest.mark.parametrize(
    "other",
    [{"mlPolicy": {"mpi": {"runLauncherAsNode": True}}}, {"podGroupPolicy": {"coscheduling": {}}}],
    ids=["an MPI launcher", "a PodGroup"],
)
def test_pods_are_not_known_if_the_trainer_makes_more_of_them(other: dict[str, Any]) -> None:
    assert pods_of(train_job(), runtime(**other)) == ()

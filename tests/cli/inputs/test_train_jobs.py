"""A TrainJob of the Kubeflow trainer is evaluated with its runtime if the same file has it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import TYPE
from tests.support.objects.builders import make_node_object
from tests.support.programs.cluster_files import as_list
from tests.support.programs.command import Run
from webhook.cli.inputs.train_jobs import Runtimes, _job_set
from webhook.documents.documents import Document
from webhook.kube.workloads.pod_set import PodSet
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
    return Runtimes.of(Document("file", each) for each in (job, *runtimes)).pods_of(job, built_in_policy().kinds)


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


def test_a_patch_of_the_job_comes_before_the_metadata_of_the_runtime() -> None:
    key, other = "alpha.jobset.sigs.k8s.io/exclusive-topology", "example.com/note"
    template = {"metadata": {"annotations": {key: "rack", other: "kept"}}, "spec": {"replicatedJobs": [PATCHED_JOB]}}
    patches = [{"trainingRuntimeSpec": {"template": {"metadata": {"annotations": {key: each}}}}} for each in ("a", "b")]

    found = _job_set(train_job(runtimePatches=patches), runtime(template=template))

    assert found is not None
    assert found["metadata"]["annotations"] == {key: "b", other: "kept"}


def test_a_runtime_of_the_namespace_is_meant_if_its_kind_is_named() -> None:
    named = train_job(runtimeRef={"name": "torch", "kind": "TrainingRuntime"})

    assert pods_of(named, runtime("TrainingRuntime"))
    assert not pods_of(named, runtime())


NOT_KNOWN = {
    "an MPI launcher": (train_job(), runtime(mlPolicy={"mpi": {"runLauncherAsNode": True}})),
    "a PodGroup": (train_job(), runtime(podGroupPolicy={"coscheduling": {}})),
    "nodes without a policy for them": (train_job(trainer={"numNodes": 2}), runtime(mlPolicy=None)),
    "a policy that is no object": (train_job(), runtime(mlPolicy=3)),
    "a template that is no object": (train_job(), runtime(template="x")),
    "nodes that are no number": (train_job(trainer={"numNodes": "x"}), runtime()),
    "no replicated jobs": (train_job(), runtime(template={"spec": {}})),
    "a directive": (train_job(podTemplateOverrides=[{"spec": {"nodeSelector": {"$patch": "replace"}}}]), runtime()),
    "a directive beside a value": (
        train_job(podTemplateOverrides=[{"spec": {"nodeSelector": {"zone": "a", "$patch": "replace"}}}]),
        runtime(),
    ),
    "a directive for jobs that are named": (
        train_job(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"a": {"$patch": "delete"}}}]),
        runtime(),
    ),
    "a directive in a list": (
        train_job(podTemplateOverrides=[{"spec": {"tolerations": [{"key": "a"}, {"$patch": "replace"}]}}]),
        runtime(),
    ),
    "a runtime of another group": (train_job(), {**runtime(), "apiVersion": "example.com/v1"}),
    "a job of another group": ({**train_job(), "apiVersion": "example.com/v1"}, runtime()),
    "an object of another kind with a runtime": ({**train_job(), "kind": "InferJob"}, runtime()),
    "a list with another key": (train_job(podTemplateOverrides=[{"spec": {"hostAliases": []}}]), runtime()),
    "metadata that are no object": ({**train_job(), "metadata": "x"}, runtime()),
}


@pytest.mark.parametrize(("job", "other"), NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_pods_that_are_not_certain_are_not_known(job: dict[str, Any], other: dict[str, Any]) -> None:
    assert pods_of(job, other) == ()


def test_resources_that_releases_of_the_trainer_combine_differently_are_not_known() -> None:
    own = {"name": "node", "image": "torch", "resources": {"limits": {GPU: "8"}}}
    of_runtime = {"spec": {"replicatedJobs": [replicated("node", {"containers": [own]}, STEP)]}}
    more = train_job(trainer={"resourcesPerNode": {"limits": {"cpu": "4"}}})
    same = train_job(trainer={"resourcesPerNode": {"limits": {GPU: "4"}}})

    assert pods_of(more, runtime(template=of_runtime)) == ()
    (node,) = pods_of(same, runtime(template=of_runtime))
    assert node.pod["spec"]["containers"][0]["resources"] == {"limits": {GPU: "4"}}


def test_without_a_policy_the_runtime_has_the_number_of_pods() -> None:
    job = replicated("node", {"containers": [{"name": "node", "image": "torch"}]}, STEP)
    job["template"]["spec"] |= {"parallelism": 4, "completions": 4}

    (node,) = pods_of(train_job(), runtime(mlPolicy=None, template={"spec": {"replicatedJobs": [job]}}))

    assert node.replicas == 4


def test_the_runtime_of_a_job_is_not_checked_by_itself(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("n1", capacity={GPU: 8})))

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(train_job(), runtime()))

    names = [json.loads(line)["pod"] for line in outcome.output.splitlines()]
    assert names == ["ml/llama-data-0-0-", "ml/llama-node-0-0-"]


@pytest.mark.parametrize(("suspend", "field"), [(True, "spec.suspend"), (False, ""), (None, "")])
def test_a_job_that_is_suspended_creates_no_pods_yet(suspend: bool | None, field: str) -> None:
    given = {} if suspend is None else {"suspend": suspend}
    assert {each.suspended for each in pods_of(train_job(**given), runtime())} == {field}


def test_check_reports_that_a_suspended_job_creates_no_pods(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("n1", capacity={GPU: 8})))
    given = ("check", "-f", "-", "--cluster", cluster, "-o", "json")

    suspended, running = (run(*given, stdin=as_list(train_job(suspend=each), runtime())) for each in (True, False))

    for outcome, is_suspended in ((suspended, True), (running, False)):
        assert [json.loads(line)["suspended"] for line in outcome.output.splitlines()] == [is_suspended] * 2


def test_resources_of_a_runtime_without_the_container_of_the_trainer_stay_as_they_are() -> None:
    own = {"name": "main", "image": "torch", "resources": {"limits": {GPU: "8"}}}
    of_runtime = {"spec": {"replicatedJobs": [replicated("node", {"containers": [own]}, STEP)]}}
    job = train_job(trainer={"resourcesPerNode": {"limits": {GPU: "4"}}})

    (node,) = pods_of(job, runtime(template=of_runtime))

    assert node.pod["spec"]["containers"] == [own]


def test_the_container_of_the_trainer_need_not_be_the_first() -> None:
    side = {"name": "log", "image": "log", "resources": {"limits": {"cpu": "1"}}}
    of_runtime = {"spec": {"replicatedJobs": [replicated("node", {"containers": [side, {"name": "node"}]}, STEP)]}}
    job = train_job(trainer={"resourcesPerNode": {"limits": {GPU: "4"}}})

    (node,) = pods_of(job, runtime(template=of_runtime))

    assert [each["resources"] for each in node.pod["spec"]["containers"]] == [side["resources"], {"limits": {GPU: "4"}}]


@pytest.mark.parametrize("part", ["metadata", "spec"])
def test_a_part_of_a_template_can_be_changed_alone(part: str) -> None:
    changes = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"a": "b"}}}
    override = {"targetJobs": [{"name": "node"}], part: changes[part]}

    data, node = pods_of(train_job(podTemplateOverrides=[override]), runtime())

    assert (node.pod["spec"].get("nodeSelector") == {"a": "b"}) is (part == "spec")
    assert (node.pod["metadata"]["labels"].get("a") == "b") is (part == "metadata")
    assert "nodeSelector" not in data.pod["spec"]

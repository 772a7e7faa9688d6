"""The size of a gang is read of the job, where each operator reads it."""

from typing import Any

import pytest

from webhook.documents.field import InvalidInput
from webhook.kube.workloads.pod_template_path import gang_size
from webhook.kube.workloads.workload_kinds import kinds_by_name

KINDS = kinds_by_name()


def policy(least: object) -> dict[str, Any]:
    return {"runPolicy": {"schedulingPolicy": {"minAvailable": least}}}


@pytest.mark.parametrize(
    ("group", "kind", "spec", "size"),
    [
        ("batch.volcano.sh", "Job", {"minAvailable": 3}, 3),
        ("batch.volcano.sh", "Job", {}, 8),
        ("kubeflow.org", "TFJob", {}, 8),
        ("kubeflow.org", "TFJob", policy(5), 5),
        ("kubeflow.org", "MPIJob", policy(5), 5),
        ("kubeflow.org", "MPIJob", {}, 8),
        ("kubeflow.org", "PyTorchJob", {"elasticPolicy": {"minReplicas": 2}}, 2),
        ("kubeflow.org", "PyTorchJob", {"elasticPolicy": {"minReplicas": 2}, **policy(5)}, 5),
        ("kubeflow.org", "PyTorchJob", {}, 8),
        # One pod is no gang, and more than all pods cannot be meant.
        ("batch.volcano.sh", "Job", {"minAvailable": 1}, None),
        ("batch.volcano.sh", "Job", {"minAvailable": 9}, None),
        ("apps", "Deployment", {}, None),
        ("batch", "Job", {}, None),
    ],
)
def test_size_is_what_the_job_states_else_all_its_pods(
    group: str, kind: str, spec: dict[str, Any], size: int | None
) -> None:
    assert gang_size({"spec": spec}, KINDS[group, kind], 8) == size


@pytest.mark.parametrize(
    ("groups", "least"),
    [
        ([], 1),
        ([{}], 1),
        ([{"replicas": 3}], 4),
        ([{"minReplicas": 2, "replicas": 3}], 3),
        ([{"minReplicas": 5, "replicas": 3}], 6),
        ([{"minReplicas": 0, "replicas": 3}], 4),
        ([{"replicas": 2, "numOfHosts": 3}], 7),
        ([{"replicas": 2, "numOfHosts": 0}], 1),
        ([{"minReplicas": 1, "replicas": 3, "numOfHosts": 2}, {"replicas": 4}], 7),
    ],
)
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_ray_cluster_that_kai_starts_needs_its_head_and_the_least_of_each_group(
    groups: list[dict[str, int]], least: int, more: int
) -> None:
    content, kind, pods = {"spec": {"workerGroupSpecs": groups}}, KINDS["ray.io", "RayCluster"], least + more
    expected = least if 1 < least <= pods else None

    assert gang_size(content, kind, pods, is_grouped=True) == expected
    assert gang_size(content, kind, pods) is None


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"spec": {"leaderWorkerTemplate": {"size": 4}}}, ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")),
        ({"spec": {"minAvailable": 4}}, ("batch.volcano.sh", "Job")),
        ({"spec": policy(4)}, ("kubeflow.org", "TFJob")),
    ],
)
@pytest.mark.parametrize(("pods", "size"), [(3, None), (4, 4), (5, 4)])
def test_a_gang_is_at_most_all_pods(
    content: dict[str, Any], kind: tuple[str, str], pods: int, size: int | None
) -> None:
    assert gang_size(content, KINDS[kind], pods) == size


TASKS = [
    {"replicas": 3},
    {"replicas": 5, "minAvailable": 2},
    {"replicas": 4, "minAvailable": 0},
    {"replicas": 9, "partitionPolicy": {"minPartitions": 2, "partitionSize": 3}},
    {"replicas": 7, "partitionPolicy": {"partitionSize": 3}},
]


@pytest.mark.parametrize("stated", [None, 0, 9])
def test_a_volcano_job_that_states_no_size_needs_the_least_of_each_task(stated: int | None) -> None:
    """Source: volcano.sh/volcano/pkg/webhooks/admission/jobs/mutate/mutate_job.go: 0 counts as not stated."""
    content = {"spec": {"tasks": TASKS, **({} if stated is None else {"minAvailable": stated})}}

    assert gang_size(content, KINDS["batch.volcano.sh", "Job"], 28) == (stated or 3 + 2 + 0 + 6 + 7)


def test_malformed_size_names_its_field() -> None:
    with pytest.raises(InvalidInput, match=r"spec\.runPolicy\.schedulingPolicy\.minAvailable"):
        gang_size({"spec": policy("many")}, KINDS["kubeflow.org", "TFJob"], 8)

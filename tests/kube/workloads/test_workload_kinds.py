"""The table of the kinds that create pods."""

import pytest

from webhook.kube.workloads.pod_template_path import PodTemplatePath, WorkloadKind, group_of
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS, creates_no_pods, kinds_by_name

PATHS = [
    pytest.param(kind, template, id=f"{kind.kind}.{kind.group} {template.template}")
    for kind in BUILT_IN_KINDS
    for template in kind.templates
]


def test_the_kinds_that_people_use_are_built_in() -> None:
    assert {f"{kind.kind}.{kind.group}" for kind in BUILT_IN_KINDS} >= {
        *("Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps", "DaemonSet.apps", "Job.batch", "CronJob.batch"),
        *("ReplicationController.", "PodTemplate.", "Job.batch.volcano.sh", "Notebook.kubeflow.org"),
        *("PyTorchJob.kubeflow.org", "TFJob.kubeflow.org", "MPIJob.kubeflow.org", "TrainJob.trainer.kubeflow.org"),
        *("RayCluster.ray.io", "RayJob.ray.io", "RayService.ray.io", "JobSet.jobset.x-k8s.io"),
        *("LeaderWorkerSet.leaderworkerset.x-k8s.io", "InferenceService.serving.kserve.io"),
        *("SparkApplication.sparkoperator.k8s.io", "LLMInferenceService.serving.kserve.io", "PodCliqueSet.grove.io"),
        *("DynamoGraphDeployment.nvidia.com", "NIMService.apps.nvidia.com", "AppWrapper.workload.codeflare.dev"),
        *("RayCronJob.ray.io", "CronJob.batch.volcano.sh", "JobFlow.flow.volcano.sh", "JobTemplate.flow.volcano.sh"),
        *("Service.serving.knative.dev", "Rollout.argoproj.io", "Workflow.argoproj.io"),
    }


def test_a_kind_of_a_group_is_in_the_table_once() -> None:
    assert len(kinds_by_name()) == len(BUILT_IN_KINDS)
    assert len({(kind.group, kind.resource) for kind in BUILT_IN_KINDS}) == len(BUILT_IN_KINDS)


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        ("scheduling.run.ai", "Queue", True),
        ("resource.nvidia.com", "ComputeDomain", True),
        ("k8s.cni.cncf.io", "NetworkAttachmentDefinition", True),
        ("kubeflow.org", "PodDefault", True),
        ("kubeflow.org", "Experiment", False),
        ("", "Service", True),
        ("serving.knative.dev", "Service", False),
    ],
)
def test_objects_that_create_no_pods_are_known(group: str, kind: str, *, expected: bool) -> None:
    assert creates_no_pods(group, kind) == expected


def test_a_kind_without_templates_says_why() -> None:
    assert all(kind.templates or kind.note or kind.wrapped for kind in BUILT_IN_KINDS)


@pytest.mark.parametrize(("kind", "template"), PATHS)
def test_a_star_of_a_count_is_a_star_of_its_template(kind: WorkloadKind, template: PodTemplatePath) -> None:
    for count in template.counts:
        for path in (count.path, *count.at_least, count.at_most, count.start):
            assert "*" not in path or template.template.startswith(path[: path.rindex("*") + 1]), kind


@pytest.mark.parametrize(("kind", "template"), PATHS)
def test_a_name_has_an_index_for_each_count_or_a_random_end(kind: WorkloadKind, template: PodTemplatePath) -> None:
    indices = sum(f"{{{number}}}" in template.name for number in range(len(template.counts)))

    assert template.name.endswith(("-", "head")) or indices >= len([each for each in template.counts if each.path]), (
        kind
    )


def test_a_configured_kind_takes_the_place_of_a_built_in_one() -> None:
    mine = WorkloadKind("apps", "Deployment", "deployments", (PodTemplatePath("spec.mine"),))
    new = WorkloadKind("example.com", "FooJob", "foojobs", (PodTemplatePath("spec.pods.*.template"),))

    found = kinds_by_name((mine, new))

    assert found["apps", "Deployment"] is mine
    assert found["example.com", "FooJob"] is new
    assert len(found) == len(BUILT_IN_KINDS) + 1


@pytest.mark.parametrize(
    ("api_version", "group"),
    [("v1", ""), ("apps/v1", "apps"), ("batch.volcano.sh/v1alpha1", "batch.volcano.sh"), (None, ""), (7, ""), ("", "")],
)
def test_the_group_of_an_api_version(api_version: object, group: str) -> None:
    assert group_of(api_version) == group

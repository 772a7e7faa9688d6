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


def test_malformed_size_names_its_field() -> None:
    with pytest.raises(InvalidInput, match=r"spec\.runPolicy\.schedulingPolicy\.minAvailable"):
        gang_size({"spec": policy("many")}, KINDS["kubeflow.org", "TFJob"], 8)

"""The pods of objects of KubeRay."""

from typing import Any

import pytest

from tests.kube.workloads.reading import sets_of
from tests.support.objects.workload_objects import (
    TEMPLATE,
    ray_cluster_spec,
    workload,
)


@pytest.mark.parametrize("ignored", [{}, {"rayClusterSpec": ray_cluster_spec()}], ids=["alone", "with a spec"])
def test_a_ray_job_on_a_ray_cluster_that_exists_makes_only_its_submitter(ignored: dict[str, Any]) -> None:
    spec = {"clusterSelector": {"ray.io/cluster": "shared"}, **ignored}
    (found,) = sets_of(workload("ray.io/v1", "RayJob", spec))

    assert (found.role, found.replicas) == ("submitter", 1)
    assert found.locate("metadata.annotations") == "spec.submitterPodTemplate.metadata.annotations"
    (container,) = found.pod["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "200Mi"}


@pytest.mark.parametrize(
    ("mode", "has_submitter"),
    [(None, True), ("", True), ("K8sJobMode", True), ("HTTPMode", False), ("InteractiveMode", False), ("New", False)],
)
@pytest.mark.parametrize("template", [None, TEMPLATE], ids=["default", "own"])
def test_a_ray_job_has_a_submitter_only_in_the_mode_of_a_kubernetes_job(
    template: dict[str, Any] | None, mode: str | None, has_submitter: bool
) -> None:
    spec = {"clusterSelector": {"a": "b"}, "submitterPodTemplate": template, "submissionMode": mode}

    found = sets_of(workload("ray.io/v1", "RayJob", {key: each for key, each in spec.items() if each is not None}))

    assert [each.role for each in found] == ["submitter"] * has_submitter


def test_a_suspended_group_of_a_ray_cluster_has_no_pods() -> None:
    spec = ray_cluster_spec()
    spec["workerGroupSpecs"].append(spec["workerGroupSpecs"][0] | {"groupName": "idle", "suspend": True})

    head, busy, idle = sets_of(workload("ray.io/v1", "RayCluster", spec))

    assert [(each.role, each.replicas) for each in (head, busy, idle)] == [("head", 1), ("gpu", 4), ("idle", 0)]

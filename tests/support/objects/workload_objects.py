"""Objects of each kind that creates pods, as small as they can be."""

from typing import Any

from tests.support.objects.builders import make_pod

TEMPLATE = make_pod().annotate("team", "a").label("app", "web").template()
SPEC = TEMPLATE["spec"]


def workload(api_version: str, kind: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    """Return an object `web` in the namespace `team-a`."""
    content = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "team-a", **metadata}}
    return {**content, "spec": spec}


def apps(kind: str, **spec: Any) -> dict[str, Any]:
    """Return an object of the group apps with the template TEMPLATE."""
    return workload("apps/v1", kind, {"template": TEMPLATE, **spec})


def job(**spec: Any) -> dict[str, Any]:
    """Return a Job."""
    return workload("batch/v1", "Job", {"template": TEMPLATE, **spec})


def kubeflow(kind: str, specs: str, version: str = "v1", **replicas: int) -> dict[str, Any]:
    """Return a job of the Kubeflow training operator or the MPI operator with so many replicas by role."""
    of_roles = {role: {"replicas": number, "template": TEMPLATE} for role, number in replicas.items()}
    return workload(f"kubeflow.org/{version}", kind, {specs: of_roles})


def volcano(*tasks: Any, **spec: Any) -> dict[str, Any]:
    """Return a Volcano Job."""
    return workload("batch.volcano.sh/v1alpha1", "Job", {"tasks": list(tasks), **spec})


def ray_cluster_spec() -> dict[str, Any]:
    """Return the spec of a RayCluster: a head and 2 workers of 2 hosts each."""
    workers = {"groupName": "gpu", "replicas": 1, "minReplicas": 2, "numOfHosts": 2, "template": TEMPLATE}
    return {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [workers]}


def jobset() -> dict[str, Any]:
    """Return a JobSet of 2 Jobs with 3 pods each."""
    replicated = {"name": "node", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": TEMPLATE}}}
    return workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [replicated]})


def leader_worker_set(*, with_leader: bool = True) -> dict[str, Any]:
    """Return a LeaderWorkerSet of 2 groups of 3 pods."""
    templates: dict[str, Any] = {"workerTemplate": TEMPLATE, "size": 3}
    if with_leader:
        templates["leaderTemplate"] = TEMPLATE
    return workload(
        "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": templates}
    )


def inference_service(**predictor: Any) -> dict[str, Any]:
    """Return a KServe InferenceService with this predictor."""
    return workload("serving.kserve.io/v1beta1", "InferenceService", {"predictor": predictor})

"""Objects of every kind that creates pods, and minimal CustomResourceDefinitions of those that are not built in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.controlplane.control_plane import ControlPlane
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS

Object = dict[str, Any]

APP = {"app": "web"}


def _controller(template: Object, replicas: int) -> Object:
    return {"replicas": replicas, "selector": {"matchLabels": APP}, "template": template}


def _job(template: Object, replicas: int) -> Object:
    return {"parallelism": replicas, "template": _of_job(template)}


def _of_job(template: Object) -> Object:
    return template | {"spec": template["spec"] | {"restartPolicy": "Never"}}


def _replica_specs(field: str, role: str = "Worker") -> Callable[[Object, int], Object]:
    return lambda template, replicas: {field: {role: {"replicas": replicas, "template": template}}}


def _ray_cluster(template: Object, replicas: int) -> Object:
    workers = {"groupName": "gpu", "replicas": replicas, "minReplicas": 0, "maxReplicas": 100, "template": template}
    return {"headGroupSpec": {"template": _PLAIN}, "workerGroupSpecs": [workers]}


def _job_set(template: Object, replicas: int) -> Object:
    return {"replicatedJobs": [{"name": "workers", "template": {"spec": _job(template, replicas)}}]}


_PLAIN: Object = {"spec": {"containers": [{"name": "main", "image": "plain"}]}}


@dataclass(frozen=True, slots=True)
class Sample:
    """A kind with its version; `spec` returns the spec of an object with a pod template and a number of replicas.

    `annotations` is the path of the annotations of the pods; of a Notebook, they are those of the object.
    `counts_replicas`: the number is not part of the template.
    """

    group: str
    version: str
    kind: str
    annotations: str
    spec: Callable[[Object, int], Object]
    counts_replicas: bool = True

    @property
    def api_version(self) -> str:
        """Return group and version."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_built_in(self) -> bool:
        """Return whether every API server serves the kind."""
        return self.group in ("", "apps", "batch")

    def object(self, template: Object, replicas: int = 1, name: str = "web") -> Object:
        """Return an object of the kind."""
        metadata: Object = {"name": name}
        if self.annotations == "metadata.annotations":
            metadata["annotations"] = template["metadata"].get("annotations", {})
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": metadata,
            "spec": self.spec(template, replicas),
        }


SAMPLES = (
    Sample("apps", "v1", "Deployment", "spec.template.metadata.annotations", _controller),
    Sample(
        "apps",
        "v1",
        "StatefulSet",
        "spec.template.metadata.annotations",
        lambda t, n: _controller(t, n) | {"serviceName": "web"},
    ),
    Sample("apps", "v1", "ReplicaSet", "spec.template.metadata.annotations", _controller),
    Sample("batch", "v1", "Job", "spec.template.metadata.annotations", _job),
    Sample(
        "batch",
        "v1",
        "CronJob",
        "spec.jobTemplate.spec.template.metadata.annotations",
        lambda t, n: {"schedule": "0 0 * * *", "jobTemplate": {"spec": _job(t, n)}},
    ),
    Sample(
        "",
        "v1",
        "ReplicationController",
        "spec.template.metadata.annotations",
        lambda t, n: _controller(t, n) | {"selector": APP},
    ),
    Sample(
        "batch.volcano.sh",
        "v1alpha1",
        "Job",
        "spec.tasks[0].template.metadata.annotations",
        lambda t, n: {"tasks": [{"name": "worker", "replicas": n, "template": t}]},
    ),
    *(
        Sample("kubeflow.org", "v1", kind, f"spec.{field}.Worker.template.metadata.annotations", _replica_specs(field))
        for kind, field in (
            ("PyTorchJob", "pytorchReplicaSpecs"),
            ("TFJob", "tfReplicaSpecs"),
            ("XGBoostJob", "xgbReplicaSpecs"),
            ("PaddleJob", "paddleReplicaSpecs"),
            ("JAXJob", "jaxReplicaSpecs"),
        )
    ),
    Sample(
        "kubeflow.org",
        "v2beta1",
        "MPIJob",
        "spec.mpiReplicaSpecs.Worker.template.metadata.annotations",
        _replica_specs("mpiReplicaSpecs"),
    ),
    Sample("ray.io", "v1", "RayCluster", "spec.workerGroupSpecs[0].template.metadata.annotations", _ray_cluster),
    Sample(
        "ray.io",
        "v1",
        "RayJob",
        "spec.rayClusterSpec.workerGroupSpecs[0].template.metadata.annotations",
        lambda t, n: {"rayClusterSpec": _ray_cluster(t, n)},
    ),
    Sample(
        "ray.io",
        "v1",
        "RayService",
        "spec.rayClusterConfig.workerGroupSpecs[0].template.metadata.annotations",
        lambda t, n: {"rayClusterConfig": _ray_cluster(t, n)},
    ),
    Sample(
        "jobset.x-k8s.io",
        "v1alpha2",
        "JobSet",
        "spec.replicatedJobs[0].template.spec.template.metadata.annotations",
        _job_set,
    ),
    Sample(
        "leaderworkerset.x-k8s.io",
        "v1",
        "LeaderWorkerSet",
        "spec.leaderWorkerTemplate.workerTemplate.metadata.annotations",
        lambda t, n: {
            "replicas": 1,
            "leaderWorkerTemplate": {"size": n + 1, "leaderTemplate": _PLAIN, "workerTemplate": t},
        },
    ),
    Sample(
        "kubeflow.org",
        "v1",
        "Notebook",
        "metadata.annotations",
        lambda t, _: {"template": {"spec": t["spec"]}},
        counts_replicas=False,
    ),
    Sample(
        "serving.kserve.io",
        "v1beta1",
        "InferenceService",
        "spec.predictor.annotations",
        lambda t, n: {"predictor": {"minReplicas": n, "annotations": t["metadata"].get("annotations", {})} | t["spec"]},
        counts_replicas=False,
    ),
    Sample(
        "serving.knative.dev",
        "v1",
        "Service",
        "spec.template.metadata.annotations",
        lambda t, n: {
            "template": t
            | {
                "metadata": t["metadata"]
                | {"annotations": t["metadata"].get("annotations", {}) | {"autoscaling.knative.dev/min-scale": str(n)}}
            }
        },
        counts_replicas=False,
    ),
    Sample("argoproj.io", "v1alpha1", "Rollout", "spec.template.metadata.annotations", _controller),
    Sample(
        "argoproj.io",
        "v1alpha1",
        "Workflow",
        "spec.templates[0].metadata.annotations",
        lambda t, _: {
            "entrypoint": "main",
            "templates": [{"name": "main", "metadata": t["metadata"], "container": t["spec"]["containers"][0]}],
        },
        counts_replicas=False,
    ),
)

_SERVED = {(sample.group, sample.kind): sample.version for sample in SAMPLES}


def minimal_crd(kind: WorkloadKind, version: str = "v1") -> Object:
    """Return a CustomResourceDefinition with the group and names of `kind`, whose objects hold anything.

    `version` is that of a kind that is not in SAMPLES.
    """
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = _SERVED.get((kind.group, kind.kind), version)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Without this, groups below k8s.io are refused.
        "metadata": {
            "name": f"{kind.resource}.{kind.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": kind.group,
            "names": {"kind": kind.kind, "plural": kind.resource, "singular": kind.kind.lower()},
            "scope": "Namespaced",
            "versions": [{"name": served, "served": True, "storage": True, "schema": schema}],
        },
    }


def custom_kinds() -> list[WorkloadKind]:
    """Return the kinds of SAMPLES that need a CustomResourceDefinition."""
    names = {(sample.group, sample.kind) for sample in SAMPLES if not sample.is_built_in}
    return [kind for kind in BUILT_IN_KINDS if (kind.group, kind.kind) in names]


def serve_custom_kinds(control_plane: ControlPlane) -> None:
    """Let the API server serve every kind of SAMPLES, until it ends."""
    client = control_plane.client
    names = [client.create(minimal_crd(kind)).object["metadata"]["name"] for kind in custom_kinds()]
    crds = [f"crd/{name}" for name in names]
    control_plane.kubectl("wait", "--for=condition=Established", *crds, "--timeout=60s")

"""The kinds of KubeRay."""

from webhook.kube.workloads.pod_template_path import Count, PodTemplatePath, WorkloadKind


def _ray(
    kind: str, resource: str, spec: str, cluster: str, *more: PodTemplatePath, selector: str = "", note: str = ""
) -> WorkloadKind:
    """Return a kind of KubeRay. The name of the RayCluster of a RayJob or RayService has a random suffix.

    `selector` is the path of the labels of an existing RayCluster. If it is set, the object runs on this cluster.

    Source: github.com/ray-project/kuberay, ray-operator/controllers/ray/utils/util.go, PodName,
    GetWorkerGroupDesiredReplicas
    """
    group = f"{spec}.workerGroupSpecs.*"
    is_cluster = kind == "RayCluster"
    labels = (("ray.io/cluster", "{name}"),) if is_cluster else ()
    head = PodTemplatePath(
        f"{spec}.headGroupSpec.template",
        role="head",
        name=cluster + ("head" if is_cluster else ""),
        labels=(*labels, ("ray.io/node-type", "head"), ("ray.io/group", "headgroup")),
        owner_kind="RayCluster",
        unless=selector,
    )
    workers = PodTemplatePath(
        f"{group}.template",
        (
            Count(f"{group}.replicas", 0, at_least=(f"{group}.minReplicas",), at_most=f"{group}.maxReplicas"),
            Count(f"{group}.numOfHosts"),
        ),
        name=cluster + ("{role}-worker-" if is_cluster else ""),
        labels=(*labels, ("ray.io/node-type", "worker"), ("ray.io/group", "{role}")),
        owner_kind="RayCluster",
        is_optional=True,
        unless=selector,
        suspended=f"{group}.suspend",
    )
    templates = (head, workers, *more)
    return WorkloadKind("ray.io", kind, resource, templates, note, suspended="spec.suspend", worker_groups=group)


def _ray_job(kind: str, resource: str, spec: str) -> WorkloadKind:
    """Return a kind with the spec of a RayJob at `spec`.

    Source: github.com/ray-project/kuberay, ray-operator/apis/ray/v1/rayjob_types.go, raycronjob_types.go
    """
    selector = f"{spec}.clusterSelector"
    submitter = PodTemplatePath(
        f"{spec}.submitterPodTemplate",
        role="submitter",
        owner_kind="Job",
        or_else=selector,
        is_optional=True,
        shape="RaySubmitter",
    )
    note = f"this {kind} runs on the RayCluster that {selector} names; check that object"
    return _ray(kind, resource, f"{spec}.rayClusterSpec", "{name}-", submitter, selector=selector, note=note)


RAY_KINDS: tuple[WorkloadKind, ...] = (
    _ray("RayCluster", "rayclusters", "spec", "{name}-"),
    _ray_job("RayJob", "rayjobs", "spec"),
    _ray_job("RayCronJob", "raycronjobs", "spec.jobTemplate"),
    _ray("RayService", "rayservices", "spec.rayClusterConfig", "{name}-"),
)

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
            Count(f"{group}.replicas", 0, at_least=f"{group}.minReplicas", at_most=f"{group}.maxReplicas"),
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


_SELECTOR = "spec.clusterSelector"

RAY_KINDS: tuple[WorkloadKind, ...] = (
    _ray("RayCluster", "rayclusters", "spec", "{name}-"),
    _ray(
        "RayJob",
        "rayjobs",
        "spec.rayClusterSpec",
        "{name}-",
        PodTemplatePath(
            "spec.submitterPodTemplate",
            role="submitter",
            owner_kind="Job",
            or_else=_SELECTOR,
            is_optional=True,
            shape="RaySubmitter",
        ),
        selector=_SELECTOR,
        note="this RayJob runs on the RayCluster that spec.clusterSelector names; check that object",
    ),
    _ray("RayService", "rayservices", "spec.rayClusterConfig", "{name}-"),
)

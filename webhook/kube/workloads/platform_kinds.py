"""The kinds of serving platforms, Spark and AppWrappers, whose pods are partly written without pod templates."""

from webhook.kube.workloads.pod_template_path import Count, PodTemplatePath, WorkloadKind


def _llm(prefix: str, role: str) -> tuple[PodTemplatePath, PodTemplatePath]:
    """Return the pods of a workload of an LLMInferenceService; with `worker`, those of a LeaderWorkerSet.

    Source: github.com/kserve/kserve, pkg/apis/serving/v1alpha1/llm_inference_service_types.go, WorkloadSpec
    """
    replicas = Count(f"{prefix}.replicas")
    labels = (("app.kubernetes.io/name", "{name}"), ("app.kubernetes.io/part-of", "llminferenceservice"))
    beside = f"{prefix}.annotations"
    main = PodTemplatePath(
        f"{prefix}.template",
        (replicas,),
        role,
        name=f"{{name}}-kserve-{role}-",
        labels=labels,
        owner_kind="ReplicaSet",
        is_optional=True,
        part=prefix if role == "prefill" else "",
        annotations=beside,
        shape="PodSpec",
    )
    workers = PodTemplatePath(
        f"{prefix}.worker",
        (replicas, Count(f"{prefix}.parallelism.pipeline", skipped=1)),
        f"{role}-worker",
        name=f"{{name}}-kserve-{role}-worker-",
        labels=labels,
        owner_kind="StatefulSet",
        is_optional=True,
        annotations=beside,
        shape="PodSpec",
    )
    return main, workers


def _spark(kind: str, resource: str, spec: str) -> WorkloadKind:
    """Return a kind of the Spark operator, whose submission makes the pods of driver and executors.

    Source: github.com/kubeflow/spark-operator/api/v1beta2/sparkapplication_types.go, defaults.go;
    internal/webhook/sparkpod_defaulter.go; github.com/apache/spark/core/src/main/scala/org/apache/spark/util/
    Utils.scala, getDynamicAllocationInitialExecutors
    """

    def part(role: str, counts: tuple[Count, ...]) -> PodTemplatePath:
        return PodTemplatePath(
            f"{spec}.{role}",
            counts,
            role,
            name=f"{{name}}-{role}" if role == "driver" else "{name}-exec-",
            labels=(("sparkoperator.k8s.io/app-name", "{name}"), ("spark-role", role)),
            owner_kind="SparkApplication" if role == "driver" else "Pod",
            annotations=f"{spec}.{role}.annotations",
            shape="SparkPod",
        )

    executors = Count(
        f"{spec}.executor.instances",
        at_least=tuple(f"{spec}.dynamicAllocation.{each}Executors" for each in ("min", "initial")),
        least_if=f"{spec}.dynamicAllocation.enabled",
    )
    return WorkloadKind(
        "sparkoperator.k8s.io",
        kind,
        resource,
        (part("driver", (Count(""),)), part("executor", (executors,))),
        suspended="spec.suspend",
        spec_defaults=(("schedulerName", f"{spec}.batchScheduler", ""),),
        queue=f"{spec}.batchSchedulerOptions.queue",
    )


_CLIQUE = "spec.template.cliques.*"
_COMPONENT = "spec.components.*"
_WRAPPED = "spec.components.*.template"

PLATFORM_KINDS: tuple[WorkloadKind, ...] = (
    _spark("SparkApplication", "sparkapplications", "spec"),
    _spark("ScheduledSparkApplication", "scheduledsparkapplications", "spec.template"),
    WorkloadKind(
        "serving.kserve.io",
        "LLMInferenceService",
        "llminferenceservices",
        (*_llm("spec", "decode"), *_llm("spec.prefill", "prefill")),
        note="the pods of this LLMInferenceService come from the LLMInferenceServiceConfigs that spec.baseRefs names",
        caveats=tuple(
            (f"{each}.worker", "the size of its groups follows from spec.parallelism")
            for each in ("spec", "spec.prefill")
        ),
    ),
    WorkloadKind(
        # Source: github.com/ai-dynamo/grove/operator/api/core/v1alpha1/podcliqueset.go, podclique.go;
        # operator/internal/webhook/admission/pcs/defaulting/podcliqueset.go, defaultPodCliqueTemplateSpecs
        "grove.io",
        "PodCliqueSet",
        "podcliquesets",
        (
            PodTemplatePath(
                f"{_CLIQUE}.spec.podSpec",
                (Count("spec.replicas"), Count(f"{_CLIQUE}.spec.replicas")),
                name="{name}-{0}-{role}-",
                labels=(("app.kubernetes.io/part-of", "{name}"), ("grove.io/podcliqueset-replica-index", "{0}")),
                owner_kind="PodClique",
                owner_name="{name}-{0}-{role}",
                annotations=f"{_CLIQUE}.annotations",
                shape="PodSpec",
            ),
        ),
        caveats=(("spec.template.podCliqueScalingGroups", "each replica of a scaling group repeats its cliques"),),
    ),
    WorkloadKind(
        # Source: github.com/ai-dynamo/dynamo/deploy/operator/api/v1beta1/dynamocomponentdeployment_types.go, common.go
        "nvidia.com",
        "DynamoGraphDeployment",
        "dynamographdeployments",
        (
            PodTemplatePath(
                f"{_COMPONENT}.podTemplate",
                (Count(f"{_COMPONENT}.replicas"), Count(f"{_COMPONENT}.multinode.nodeCount")),
                name="{name}-{role}-",
                labels=(("nvidia.com/dynamo-graph-deployment-name", "{name}"),),
                owner_kind="PodClique",
                is_optional=True,
                part=_COMPONENT,
                shape="AddedTemplate",
            ),
        ),
        note="this DynamoGraphDeployment has no podTemplate; one of v1alpha1 is written as v1beta1 to be checked",
    ),
    WorkloadKind(
        # Source: github.com/NVIDIA/k8s-nim-operator/api/apps/v1alpha1/nimservice_types.go, GetDeploymentParams
        "apps.nvidia.com",
        "NIMService",
        "nimservices",
        (
            PodTemplatePath(
                "spec",
                (Count("spec.replicas", at_least=("spec.scale.hpa.minReplicas",)),),
                labels=(("app.kubernetes.io/name", "{name}"), ("app.kubernetes.io/part-of", "nim-service")),
                owner_kind="ReplicaSet",
                shape="InlineContainer",
            ),
        ),
        caveats=(
            ("spec.multiNode", "its groups of pods follow from spec.multiNode.parallelism"),
            ("spec.draResources", "its resource claims come from spec.draResources"),
            ("spec.podAffinity", "spec.podAffinity is added to its affinity"),
        ),
    ),
    WorkloadKind(
        # Source: github.com/project-codeflare/appwrapper, api/v1beta2/appwrapper_types.go, AppWrapperComponent
        "workload.codeflare.dev",
        "AppWrapper",
        "appwrappers",
        (),
        suspended="spec.suspend",
        wrapped=_WRAPPED,
    ),
)

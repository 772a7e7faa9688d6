"""The kinds of batch schedulers, operators and serving platforms that create pods."""

from functools import partial
from typing import Any

from webhook.kube.workloads.exclusive_topology import JOBS_AND_SET, JOBSET_EXCLUSIVE, LWS_EXCLUSIVE
from webhook.kube.workloads.platform_kinds import PLATFORM_KINDS
from webhook.kube.workloads.pod_template_path import STATEFUL_SET_LABELS, Count, PodTemplatePath, WorkloadKind
from webhook.kube.workloads.ray_kinds import RAY_KINDS
from webhook.kube.workloads.volcano_kinds import VOLCANO_KINDS


def _kubeflow(kind: str, resource: str, specs: str) -> WorkloadKind:
    """Return a kind of the Kubeflow training operator.

    Source: github.com/kubeflow/training-operator (release-1.9), pkg/controller.v1/common/pod.go, createNewPod;
    pkg/apis/kubeflow.org/v1
    """
    template = PodTemplatePath(
        f"spec.{specs}.*.template",
        (Count(f"spec.{specs}.*.replicas"),),
        name="{name}-{role}-{0}",
        labels=(*_KUBEFLOW_LABELS, ("training.kubeflow.org/replica-index", "{0}")),
    )
    return _OF_KUBEFLOW(kind, resource, (template,), gang=_KUBEFLOW_GANG)


# Source: github.com/NVIDIA/KAI-scheduler, pkg/podgrouper/podgrouper/plugins/kubeflow/distributed_common.go and pytorch
_KUBEFLOW_GANG = ("spec.runPolicy.schedulingPolicy.minAvailable", "spec.elasticPolicy.minReplicas")
# Source: github.com/kubeflow/training-operator (release-1.9), pkg/controller.v1/common/job.go, ReconcileJobs
_OF_KUBEFLOW = partial(
    WorkloadKind, "kubeflow.org", suspended="spec.runPolicy.suspend", queue="spec.runPolicy.schedulingPolicy.queue"
)
_KUBEFLOW_LABELS = (("training.kubeflow.org/job-name", "{name}"), ("training.kubeflow.org/replica-type", "{role}"))


def _mpi(role: str, replicas: int, **more: Any) -> PodTemplatePath:
    """Return a template of an MPIJob. Its launcher is a Job, except in the version kubeflow.org/v1.

    Source: github.com/kubeflow/mpi-operator, pkg/controller/mpi_job_controller.go, newWorker, newLauncherJob,
    defaultLabels; pkg/apis/kubeflow/v2beta1/default.go
    """
    spec = f"spec.mpiReplicaSpecs.{role}"
    labels = (("training.kubeflow.org/job-name", "{name}"), ("training.kubeflow.org/job-role", "{role}"))
    return PodTemplatePath(
        f"{spec}.template", (Count(f"{spec}.replicas", replicas),), role, labels=labels, is_optional=True, **more
    )


def _jobset_template(spec: str, name: str, labels: tuple[tuple[str, str], ...] = ()) -> PodTemplatePath:
    """Return the templates of the jobs of a JobSet, which are Indexed.

    Source: sigs.k8s.io/jobset, pkg/controllers/jobset_controller.go, constructJob, labelAndAnnotateObject;
    pkg/webhooks/jobset_webhook.go; pkg/util/placement/placement.go
    """
    job = f"{spec}.replicatedJobs.*"
    return PodTemplatePath(
        f"{job}.template.spec.template",
        (
            Count(f"{job}.replicas"),
            Count(f"{job}.template.spec.parallelism", at_most=f"{job}.template.spec.completions"),
        ),
        name=name,
        labels=labels,
        owner_kind="Job",
        owner_name="{name}-{role}-{0}",
    )


def _component(role: str) -> PodTemplatePath:
    """Return a component of an InferenceService, which is a PodSpec with additional fields.

    Source: github.com/kserve/kserve, pkg/apis/serving/v1beta1/component.go, predictor.go
    """
    labels = (("serving.kserve.io/inferenceservice", "{name}"), ("component", role))
    return PodTemplatePath(
        f"spec.{role}",
        (Count(f"spec.{role}.minReplicas"),),
        role,
        name=f"{{name}}-{role}-",
        labels=labels,
        owner_kind="ReplicaSet",
        is_optional=role != "predictor",
        shape="Component",
    )


def _workflow(kind: str, resource: str, spec: str) -> WorkloadKind:
    """Return a kind of Argo Workflows. Each template that runs a container creates a pod for each step.

    Source: github.com/argoproj/argo-workflows, workflow/controller/workflowpod.go, build; workflow/util/pod_name.go
    """
    found = PodTemplatePath(
        f"{spec}.templates.*",
        name="{name}-{role}-",
        labels=(("workflows.argoproj.io/workflow", "{name}"),) if kind == "Workflow" else (),
        owner_kind="Workflow",
        shape="WorkflowTemplate",
    )
    note = f"the pods of this {kind} come from the WorkflowTemplate that it refers to; check that object"
    suspended = "spec.suspend" if kind in ("Workflow", "CronWorkflow") else ""
    return WorkloadKind("argoproj.io", kind, resource, (found,), note, suspended=suspended)


def _trainer(kind: str, resource: str) -> WorkloadKind:
    """Return a kind of training runtime of the Kubeflow trainer.

    Source: github.com/kubeflow/trainer, pkg/apis/trainer/v1alpha1/trainingruntime_types.go
    """
    return WorkloadKind("trainer.kubeflow.org", kind, resource, (_jobset_template("spec.template.spec", "{name}-"),))


_SCALE = "spec.template.metadata.annotations[autoscaling.knative.dev"
_LWS = "spec.leaderWorkerTemplate"
_LWS_LABELS = (
    ("leaderworkerset.sigs.k8s.io/name", "{name}"),
    ("leaderworkerset.sigs.k8s.io/group-index", "{0}"),
    ("leaderworkerset.sigs.k8s.io/worker-index", "{1}"),
)
_JOBSET_LABELS = (
    ("jobset.sigs.k8s.io/jobset-name", "{name}"),
    ("jobset.sigs.k8s.io/replicatedjob-name", "{role}"),
    ("jobset.sigs.k8s.io/job-index", "{0}"),
)
_BY_SCRIPT = "the controller adds a selector for nodes that a script labels for each job"
_TRAIN_JOB = (
    "the pods of a TrainJob come from the runtime that spec.runtimeRef names; check the TrainingRuntime or "
    "ClusterTrainingRuntime together with it, and annotate its pod templates"
)

OPERATOR_KINDS: tuple[WorkloadKind, ...] = (
    *VOLCANO_KINDS,
    _kubeflow("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs"),
    _kubeflow("TFJob", "tfjobs", "tfReplicaSpecs"),
    _kubeflow("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    _kubeflow("PaddleJob", "paddlejobs", "paddleReplicaSpecs"),
    _kubeflow("JAXJob", "jaxjobs", "jaxReplicaSpecs"),
    _OF_KUBEFLOW(
        "MPIJob",
        "mpijobs",
        (
            _mpi("Launcher", 1, name="{name}-launcher-", owner_kind="Job", owner_name="{name}-launcher"),
            _mpi("Worker", 0, name="{name}-worker-{0}"),
        ),
        gang=_KUBEFLOW_GANG[:1],
    ),
    WorkloadKind(
        # Source: github.com/kubeflow/trainer, pkg/apis/trainer/v1alpha1/trainjob_types.go
        "trainer.kubeflow.org",
        "TrainJob",
        "trainjobs",
        (),
        note=_TRAIN_JOB,
        passed_on=(
            "spec.podTemplateOverrides.*",
            "spec.runtimePatches.*.trainingRuntimeSpec.template.spec.replicatedJobs.*.template.spec.template",
        ),
    ),
    _trainer("TrainingRuntime", "trainingruntimes"),
    _trainer("ClusterTrainingRuntime", "clustertrainingruntimes"),
    *RAY_KINDS,
    WorkloadKind(
        "jobset.x-k8s.io",
        "JobSet",
        "jobsets",
        (_jobset_template("spec", "{name}-{role}-{0}-{1}-", _JOBSET_LABELS),),
        suspended="spec.suspend",
        caveats=tuple(
            (f"{each}metadata.annotations[alpha.jobset.sigs.k8s.io/node-selector]", _BY_SCRIPT) for each in JOBS_AND_SET
        ),
        exclusive=JOBSET_EXCLUSIVE,
    ),
    WorkloadKind(
        # Source: sigs.k8s.io/lws, api/leaderworkerset/v1/leaderworkerset_types.go
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "leaderworkersets",
        (
            PodTemplatePath(
                f"{_LWS}.leaderTemplate",
                (Count("spec.replicas"), Count("")),
                role="leader",
                name="{name}-{0}",
                labels=_LWS_LABELS,
                owner_kind="StatefulSet",
                or_else=f"{_LWS}.workerTemplate",
                claims=f"{_LWS}.volumeClaimTemplates",
            ),
            PodTemplatePath(
                f"{_LWS}.workerTemplate",
                (Count("spec.replicas"), Count(f"{_LWS}.size", skipped=1)),
                role="worker",
                name="{name}-{0}-{1}",
                labels=_LWS_LABELS,
                owner_kind="StatefulSet",
                owner_name="{name}-{0}",
                claims=f"{_LWS}.volumeClaimTemplates",
            ),
        ),
        exclusive=LWS_EXCLUSIVE,
        group_size=f"{_LWS}.size",
    ),
    WorkloadKind(
        # Source: github.com/kubeflow/kubeflow, before 4bf108b41, notebook-controller/controllers/notebook_controller.go
        "kubeflow.org",
        "Notebook",
        "notebooks",
        (
            PodTemplatePath(
                "spec.template",
                name="{name}-{0}",
                labels=(("statefulset", "{name}"), ("notebook-name", "{name}"), *STATEFUL_SET_LABELS),
                owner_kind="StatefulSet",
                annotations="metadata.annotations",
            ),
        ),
        suspended="metadata.annotations[kubeflow-resource-stopped]",
        copies_metadata=True,
    ),
    WorkloadKind(
        "serving.kserve.io",
        "InferenceService",
        "inferenceservices",
        (_component("predictor"), _component("transformer"), _component("explainer")),
        copies_metadata=True,
    ),
    WorkloadKind(
        # Source: knative.dev/serving, pkg/reconciler/revision/resources/{deploy,meta}.go;
        # pkg/reconciler/configuration/resources/revision.go
        "serving.knative.dev",
        "Service",
        "services",
        (
            PodTemplatePath(
                "spec.template",
                (Count(f"{_SCALE}/initial-scale]", at_least=(f"{_SCALE}/min-scale]",)),),
                name="{name}-00001-deployment-",
                labels=(("serving.knative.dev/service", "{name}"), ("serving.knative.dev/configuration", "{name}")),
                owner_kind="ReplicaSet",
            ),
        ),
    ),
    WorkloadKind(
        # Source: github.com/argoproj/argo-rollouts, rollout/sync.go; pkg/apis/rollouts/v1alpha1/types.go
        "argoproj.io",
        "Rollout",
        "rollouts",
        (PodTemplatePath("spec.template", (Count("spec.replicas"),), owner_kind="ReplicaSet", is_optional=True),),
        note="the pods of this Rollout come from the object that spec.workloadRef names; check that object",
        suspended="spec.paused",
    ),
    _workflow("Workflow", "workflows", "spec"),
    _workflow("WorkflowTemplate", "workflowtemplates", "spec"),
    _workflow("ClusterWorkflowTemplate", "clusterworkflowtemplates", "spec"),
    _workflow("CronWorkflow", "cronworkflows", "spec.workflowSpec"),
    *PLATFORM_KINDS,
)

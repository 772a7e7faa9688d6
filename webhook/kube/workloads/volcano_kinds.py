"""The kinds of Volcano."""

from typing import Any

from webhook.kube.names import VOLCANO_DEFAULT_QUEUE
from webhook.kube.workloads.pod_template_path import Count, PodTemplatePath, WorkloadKind

_OF_PARTS = "Volcano keeps each of its partitions within a domain of its network topology"


def _volcano(group: str, kind: str, resource: str, spec: str, **more: Any) -> WorkloadKind:
    """Return a kind with the spec of Volcano's Job at `spec`.

    Source: volcano.sh/volcano, pkg/controllers/job/job_controller_util.go, createJobPod;
    pkg/webhooks/admission/jobs/mutate/mutate_job.go; volcano.sh/apis, pkg/apis/batch/v1alpha1/job.go, CronJobSpec;
    pkg/apis/flow/v1alpha1/jobflow_types.go, jobtemplate_types.go
    """
    template = PodTemplatePath(
        f"{spec}.tasks.*.template",
        (Count(f"{spec}.tasks.*.replicas", 0),),
        name="{name}-{role}-{0}",
        labels=(("volcano.sh/job-name", "{name}"), ("volcano.sh/task-spec", "{role}")),
        owner_kind="Job",
        unnamed="default",
    )
    return WorkloadKind(
        group,
        kind,
        resource,
        (template,),
        spec_defaults=(
            ("schedulerName", f"{spec}.schedulerName", "volcano"),
            ("priorityClassName", f"{spec}.priorityClassName", ""),
        ),
        caveats=() if kind == "Job" else ((f"{spec}.tasks.*.partitionPolicy.networkTopology", _OF_PARTS),),
        gang=(f"{spec}.minAvailable",),
        tasks=f"{spec}.tasks.*",
        queue=f"{spec}.queue",
        default_queue=VOLCANO_DEFAULT_QUEUE,
        **more,
    )


VOLCANO_KINDS: tuple[WorkloadKind, ...] = (
    _volcano("batch.volcano.sh", "Job", "jobs", "spec"),
    _volcano("batch.volcano.sh", "CronJob", "cronjobs", "spec.jobTemplate.spec", suspended="spec.suspend"),
    _volcano("flow.volcano.sh", "JobTemplate", "jobtemplates", "spec"),
    WorkloadKind(
        "flow.volcano.sh",
        "JobFlow",
        "jobflows",
        (),
        note="the pods of a JobFlow come from the JobTemplates that spec.flows names; check those objects",
        passed_on=("spec.flows.*.patch.jobSpec.tasks.*.template",),
    ),
)

"""The table of the kinds that create pods."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from webhook.kube.operator_kinds import OPERATOR_KINDS
from webhook.kube.pod_template_path import STATEFUL_SET_LABELS, Count, PodTemplatePath, WorkloadKind


def _controller(kind: str, resource: str, suspended: str = "", **template: Any) -> WorkloadKind:
    found = PodTemplatePath("spec.template", (Count("spec.replicas"),), **template)
    return WorkloadKind("apps", kind, resource, (found,), suspended=suspended)


def _job(kind: str, resource: str, spec: str) -> WorkloadKind:
    labels = (("batch.kubernetes.io/job-name", "{name}"), ("job-name", "{name}")) if kind == "Job" else ()
    template = PodTemplatePath(
        f"{spec}.template",
        (Count(f"{spec}.parallelism", at_most=f"{spec}.completions"),),
        labels=labels,
        owner_kind="Job",
        completion_mode=f"{spec}.completionMode",
        # The name of a CronJob's Job ends with the time of its schedule.
        indexed_name="{name}-{0}-" if kind == "Job" else "",
    )
    return WorkloadKind("batch", kind, resource, (template,), suspended="spec.suspend")


BUILT_IN_KINDS: tuple[WorkloadKind, ...] = (
    _controller("Deployment", "deployments", "spec.paused", owner_kind="ReplicaSet"),
    WorkloadKind(
        "apps",
        "StatefulSet",
        "statefulsets",
        (
            PodTemplatePath(
                "spec.template",
                (Count("spec.replicas", start="spec.ordinals.start"),),
                name="{name}-{0}",
                labels=STATEFUL_SET_LABELS,
                claims="spec.volumeClaimTemplates",
            ),
        ),
    ),
    _controller("ReplicaSet", "replicasets"),
    WorkloadKind("apps", "DaemonSet", "daemonsets", (PodTemplatePath("spec.template"),), is_per_node=True),
    _job("Job", "jobs", "spec"),
    _job("CronJob", "cronjobs", "spec.jobTemplate.spec"),
    replace(_controller("ReplicationController", "replicationcontrollers"), group=""),
    WorkloadKind("", "PodTemplate", "podtemplates", (PodTemplatePath("template"),)),
    *OPERATOR_KINDS,
)

Kinds = Mapping[tuple[str, str], WorkloadKind]


def kinds_by_name(configured: Iterable[WorkloadKind] = ()) -> Kinds:
    """Return the built-in kinds by group and kind, with `configured` ones added or in place of equal names."""
    return {(each.group, each.kind): each for each in (*BUILT_IN_KINDS, *configured)}

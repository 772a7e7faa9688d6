"""Read the pod sets of objects."""

from typing import Any

from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import kinds_by_name

KINDS = kinds_by_name()


def sets_of(content: Any) -> tuple[PodSet, ...]:
    return pod_sets(content, KINDS)

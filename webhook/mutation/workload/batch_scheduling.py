"""Read the requests of a pod to a batch scheduler, and express them in the fields that the scheduler reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.backends.backend import (
    PREFERRED_NODE_AFFINITY,
    SPREAD_CONSTRAINTS,
    Backend,
    BatchRequest,
    Expressed,
    PodField,
)
from webhook.backends.kueue import NEEDS_QUEUE, QUEUE, Kueue
from webhook.backends.registry import backend_of, queueing_backend_of
from webhook.backends.volcano import JOB_LABEL, Volcano
from webhook.documents.documents import field
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.mutation.edits.node_edits import PREFERRED_NODES
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.mutation.edits.scheduling_edits import CONSTRAINTS
from webhook.mutation.workload.annotations import Annotations
from webhook.mutation.workload.spreading import Spreading
from webhook.policy.keys import NO_TOPOLOGY, Keys
from webhook.policy.policy import Policy
from webhook.policy.spec.accelerators import Accelerator
from webhook.policy.spec.schedulers import settings_of
from webhook.policy.spec.workloads import WorkloadType


@dataclass(frozen=True, slots=True)
class BatchScheduling:
    """The scheduler that the pod will have, the requests of the pod to it, and the fields that express the requests."""

    scheduler: str
    request: BatchRequest
    fields: tuple[PodField, ...]
    adds_packing_hint: bool


def read_batch_scheduling(
    annotations: Annotations,
    workload_type: WorkloadType,
    pod: Mapping[str, Any],
    scheduler: str | None,
    accelerators: Sequence[Accelerator],
    policy: Policy,
    warnings: list[str],
) -> BatchScheduling:
    """Return the batch scheduling of `pod`, for which the policy chooses `scheduler`.

    Errors in annotations are reported to `annotations`. Requests that the scheduler does not support are added to
    `warnings`.
    """
    own = pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
    name = own if own != DEFAULT_SCHEDULER else scheduler or DEFAULT_SCHEDULER
    request = _read_request(annotations, accelerators)
    labels = pod["metadata"].get("labels") or {}
    is_of_job = JOB_LABEL in labels and queueing_backend_of(policy.spec, name) is Volcano
    # The Job has a PodGroup, which no annotation needs to name.
    asked = replace(request, gang_size=None) if is_of_job else request
    expressed = [(backend, backend.express(part)) for backend, part in _parts(asked, name, policy)]
    warnings += _missing(annotations, workload_type, pod, expressed, name, policy)
    if request.queue is not None and is_of_job and annotations.is_own(policy.keys.queue):
        warnings.append(f"{policy.keys.queue} has no effect: the queue of a Volcano Job is its spec.queue")
    return BatchScheduling(
        name,
        request,
        tuple(field for _, each in expressed for field in each.fields),
        settings_of(policy.spec.schedulers, name).bin_packing_hint,
    )


def ignored_constraints(
    scheduler: str,
    workload_type: WorkloadType,
    spreading: Spreading | str,
    pod: Mapping[str, Any],
    policy: Policy,
) -> Iterator[str]:
    """Yield the warnings about constraints of the type or of `pod` that `scheduler` ignores."""
    ignores, shown = backend_of(policy.spec, scheduler).ignores, f"scheduler {cut(scheduler, LONGEST_SHOWN)} ignores"
    if PREFERRED_NODE_AFFINITY in ignores:
        pools = ", ".join(sorted(workload_type.node_usage.prefer))
        if pools:
            yield f"{shown} {PREFERRED_NODE_AFFINITY}: the preference for nodes of {pools} has no effect"
        if _has_own_preference(pod, policy.node_usage_key if pools else ""):
            yield f"{shown} {PREFERRED_NODE_AFFINITY}: the pod's own has no effect"
    if SPREAD_CONSTRAINTS in ignores and _has_hard_constraint(spreading, pod):
        yield f"{shown} {SPREAD_CONSTRAINTS}: the pods can run in one domain"


def _has_hard_constraint(spreading: Spreading | str, pod: Mapping[str, Any]) -> bool:
    settings = None if isinstance(spreading, str) else spreading.settings
    if settings is not None and settings.form == "topologySpread" and settings.mode == "required":
        return True
    return any(each.get("whenUnsatisfiable") == "DoNotSchedule" for each in pod["spec"].get(CONSTRAINTS[-1]) or ())


def _has_own_preference(pod: Mapping[str, Any], pool_key: str) -> bool:
    """Return whether the pod has a preferred node affinity term that is not only about the label `pool_key`."""
    for term in field(pod, *map(str, PREFERRED_NODES)) or ():
        preference = term.get("preference") or {}
        expressions = preference.get("matchExpressions") or ()
        if preference.get("matchFields") or any(each.get("key") != pool_key for each in expressions):
            return True
    return False


def _missing(
    annotations: Annotations,
    workload_type: WorkloadType,
    pod: Mapping[str, Any],
    expressed: Sequence[tuple[type[Backend], Expressed]],
    scheduler: str,
    policy: Policy,
) -> Iterator[str]:
    """Yield the warnings about requests that the scheduler does not support.

    There is no warning about a default of the namespace, because it is meant for pods of several schedulers.
    """
    for backend, each in expressed:
        holder = "Kueue" if backend is Kueue else f"scheduler {cut(scheduler, LONGEST_SHOWN)}"
        for attribute, missing in each.missing:
            is_name = attribute == "gang" and backend.keeps_by_affinity
            if is_name and _requests_domain(annotations, workload_type, policy):
                # It names the pods that pod affinity keeps together.
                continue
            key = policy.keys.of(getattr(Keys, attribute))
            if annotations.is_own(key) and not (missing == NEEDS_QUEUE and field(pod, "metadata", "labels", QUEUE)):
                yield f"{key} has no effect: {holder} {missing}"


def _requests_domain(annotations: Annotations, workload_type: WorkloadType, policy: Policy) -> bool:
    """Return whether the gang of a pod is to run within one domain, by its annotations or its type."""
    text = annotations.text(policy.keys.within)
    return workload_type.within.topology is not None if text is None else text.strip() != NO_TOPOLOGY


def _parts(request: BatchRequest, scheduler: str, policy: Policy) -> list[tuple[type[Backend], BatchRequest]]:
    backend = backend_of(policy.spec, scheduler)
    if request.is_empty:
        return []
    if policy.spec.queueing == "scheduler":
        return [(backend, request)]
    of_scheduler = replace(request, queue=None, gang=None, gang_size=None)
    return [(Kueue, request), (backend, of_scheduler)]


def _read_request(annotations: Annotations, accelerators: Sequence[Accelerator]) -> BatchRequest:
    preemptible = annotations.read(Keys.preemptible)
    return BatchRequest(
        annotations.read(Keys.queue),
        annotations.read(Keys.gang),
        annotations.read(Keys.gang_size),
        _read_fraction(annotations, accelerators),
        None if preemptible is None else preemptible == "true",
    )


def _read_fraction(annotations: Annotations, accelerators: Sequence[Accelerator]) -> str | None:
    fraction = annotations.read(Keys.gpu_fraction)
    if fraction is None or not accelerators:
        return fraction
    detail = f"the pod requests whole cards of {accelerators[0].name}: remove that request or this annotation"
    annotations.reject(Keys.gpu_fraction, detail)
    return None

"""Read what a pod requests of a batch scheduler, and express it in the terms of the scheduler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.backends.backend import PREFERRED_NODE_AFFINITY, Backend, BatchRequest, PodField
from webhook.backends.kueue import Kueue
from webhook.backends.registry import backend_of, queueing_backend_of
from webhook.backends.volcano import JOB_LABEL, Volcano
from webhook.kube.field import invalid
from webhook.kube.text import cut
from webhook.kube.wellknown import DEFAULT_SCHEDULER
from webhook.mutation.annotations import Annotations
from webhook.mutation.node_terms import LONGEST_SHOWN
from webhook.policy.accelerator import Accelerator
from webhook.policy.keys import Keys
from webhook.policy.policy import Policy
from webhook.policy.scheduler_settings import settings_of
from webhook.policy.workload_type import WorkloadType


@dataclass(frozen=True, slots=True)
class BatchScheduling:
    """The scheduler that the pod will have, what the pod requests of it, and the fields that express it."""

    scheduler: str
    request: BatchRequest
    fields: tuple[PodField, ...]
    schedules_gangs: bool
    """Whether the pods of a gang start together or not at all."""
    adds_packing_hint: bool


def read_batch_scheduling(
    annotations: Annotations,
    pod: Mapping[str, Any],
    scheduler: str | None,
    accelerators: Sequence[Accelerator],
    policy: Policy,
) -> BatchScheduling:
    """Return the batch scheduling of `pod`, for which the policy chooses `scheduler`.

    Errors of its annotations are reported to `annotations`.
    """
    own = pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
    name = own if own != DEFAULT_SCHEDULER else scheduler or DEFAULT_SCHEDULER
    request = _read_request(annotations, accelerators)
    backend = queueing_backend_of(policy.spec, name)
    return BatchScheduling(
        name,
        request,
        tuple(field for each, part in _parts(request, name, policy) for field in each.express(part).fields),
        backend.schedules_gangs,
        settings_of(policy.spec.schedulers, name).bin_packing_hint,
    )


def batch_warnings(
    annotations: Annotations,
    labels: Mapping[str, str],
    batch: BatchScheduling,
    workload_type: WorkloadType,
    policy: Policy,
) -> list[str]:
    """Return the warnings about what the scheduler cannot express or ignores, for a pod with `labels`.

    A default of the namespace is for pods of several schedulers, so there is none about it.
    """
    warnings = []
    scheduler = f"scheduler {cut(batch.scheduler, LONGEST_SHOWN)}"
    for backend, part in _parts(batch.request, batch.scheduler, policy):
        holder = "Kueue" if backend is Kueue else scheduler
        for attribute, missing in backend.express(part).missing:
            key = policy.keys.of(getattr(Keys, attribute))
            if annotations.is_own(key):
                warnings.append(f"{key} has no effect: {holder} {missing}")
        queue = policy.keys.of(Keys.queue)
        if backend is Volcano and part.queue is not None and annotations.is_own(queue) and JOB_LABEL in labels:
            warnings.append(f"{queue} has no effect: the queue of a Volcano Job is its spec.queue")
    if PREFERRED_NODE_AFFINITY in backend_of(policy.spec, batch.scheduler).ignores and workload_type.node_usage.prefer:
        preferred = ", ".join(workload_type.node_usage.prefer)
        ignored = f"the preference for nodes of {preferred} has no effect"
        warnings.append(f"{scheduler} ignores {PREFERRED_NODE_AFFINITY}: {ignored}")
    return warnings


def _parts(request: BatchRequest, scheduler: str, policy: Policy) -> list[tuple[type[Backend], BatchRequest]]:
    """Return the backends that read `request`, with the part that each reads."""
    backend = backend_of(policy.spec, scheduler)
    if request.is_empty:
        return []
    if policy.spec.queueing == "scheduler":
        return [(backend, request)]
    of_scheduler = replace(request, queue=None, gang=None, gang_size=None)
    of_queue = replace(request, gpu_fraction=None, preemptible=None)
    return [(Kueue, of_queue), (backend, of_scheduler)]


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
    annotations.reject(Keys.gpu_fraction, lambda path: invalid(path, fraction, detail))
    return None

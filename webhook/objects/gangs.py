"""The gang of a pod as it is written, and that of an object: as many of its pods as must run together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.backends.kueue import QUEUE, QUEUED_WHOLE
from webhook.backends.registry import backend_of, starts_whole
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_template_path import WorkloadKind, gang_size
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.gang.gang import GangRequest, most_possible
from webhook.placement.replicas.replicas import Replicas
from webhook.placement.scorer import PodSignature
from webhook.policy.keys import positive
from webhook.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Role:
    """A set of pods with the result of the policy for its pods."""

    pods: PodSet
    result: Mutated
    content: PodContent
    """The first pod as it is written."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A role, and how many of its replicas fit; `before` is the snapshot that the first one found."""

    role: Role
    found: Replicas
    before: Snapshot


_PREFIX = "placement check: "


def gang_of_pod(pod: Mapping[str, Any], policy: Policy) -> GangRequest | None:
    """Return the gang that the annotations of `pod` ask for; None without a valid size."""
    size, name = (field(pod, "metadata", "annotations", key) for key in (policy.keys.gang_size, policy.keys.gang))
    scheduler = field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
    if not isinstance(size, str) or not isinstance(scheduler, str):
        return None
    try:
        number = positive(size)
    except ValueError:
        return None
    name = name if isinstance(name, str) else ""
    return GangRequest(name, number, scheduler, starts_whole(pod, policy.spec, scheduler))


def gang_of_object(
    content: JsonObject,
    kind: WorkloadKind,
    requests: Sequence[GangRequest | None],
    pods: int,
    scheduler: str,
    is_whole: bool,
) -> GangRequest | None:
    """Return the gang of an object of `kind` with so many `pods`, whose templates ask for `requests`.

    Without an annotation it is as large as the object states, if it states that its pods run together. `is_whole`: each
    of its pods starts with the others or not at all.
    """
    annotated = [each for each in requests if each is not None]
    name = field(content, "metadata", "name")
    name = name if isinstance(name, str) else ""
    if annotated:
        largest = max(annotated, key=lambda each: each.size)
        is_whole = is_whole or largest.starts_whole
        return largest._replace(name=largest.name or name, starts_whole=is_whole) if largest.size > 1 else None
    try:
        size = gang_size(content, kind, pods)
    except InvalidInput:
        return None
    return None if size is None else GangRequest(name, size, scheduler, is_whole)


def object_starts_whole(
    content: JsonObject, kind: WorkloadKind, pods: Sequence[bool], scheduler: str, policy: Policy
) -> bool:
    """Return whether the pods of an object of `kind` start together or not at all.

    `pods` are the same for a pod of each template. KAI makes a gang of the pods of some kinds by itself, and Kueue
    suspends an object with the label of a queue until all of its pods have quota.
    """
    found = (kind.group, kind.kind)
    is_queued = found in QUEUED_WHOLE and bool(field(content, "metadata", "labels", QUEUE))
    return all(pods) or is_queued or found in backend_of(policy.spec, scheduler).gang_owners


def with_gang(
    advice: tuple[Placement, tuple[str, ...]],
    placed: Sequence[Placed],
    request: AdmissionRequest,
    kind: WorkloadKind,
    policy: Policy,
    schedulers: BackendSchedulers,
    base: Snapshot,
    expired: Expired,
) -> tuple[Placement, tuple[str, ...]]:
    """Return the placement of an object and its warnings, with those about pods that must run together.

    `advice` is the same without them, and `placed` are the roles on `base`. If the pods that must run together fit,
    nothing is added to the warnings.
    """
    injections, content = [each.role.result.injection for each in placed], request.object or {}
    pods, scheduler = sum(each.found.asked for each in placed), injections[0].references.scheduler
    pods_whole = [each.starts_whole for each in injections]
    is_whole = object_starts_whole(content, kind, pods_whole, scheduler, policy)
    gang = gang_of_object(content, kind, [each.gang for each in injections], pods, scheduler, is_whole)
    placement, warnings = advice
    if gang is None:
        return advice
    fit = fit_of_object(gang, [each.found for each in placed])
    if fit.fit == fit.size or not fit.is_complete or placement.verdict not in ("Waiting", "Infeasible"):
        return replace(placement, gang=fit), warnings
    signatures = [(each.role.result.signature, each.found.asked) for each in placed]
    is_open = placement.verdict == "Waiting" and not policy.spec.node_templates
    most = _most_possible(signatures, base, schedulers, expired) if is_open else None
    if most is not None and most < gang.size:
        fit = replace(fit, most=most)
        never = f"no more than {most} of the {gang.size} pods that must run together would fit on an empty cluster"
        reason = warnings[0].removeprefix(f"{_PREFIX}{placement.verdict}: ")
        warnings = (f"{_PREFIX}Infeasible: {never}; {reason}", *warnings[1:])
        placement = replace(placement, verdict="Infeasible")
        if any(each.gang and each.check_mode == "deny" for each in injections):
            warnings = (*warnings, f"{_PREFIX}such pods are refused: placement-check is deny")
    if partial := partial_start_of_object(gang, fit):
        warnings = (*warnings, f"{_PREFIX}{partial}")
    return replace(placement, gang=fit), warnings


def _most_possible(
    signatures: Sequence[tuple[PodSignature | str, int]],
    base: Snapshot,
    schedulers: BackendSchedulers,
    expired: Expired,
) -> int | None:
    """Return a number of pods that an empty cluster could not exceed; None if it is not known."""
    total = 0
    for signature, asked in signatures:
        try:
            if isinstance(signature, str):
                return None
            most = most_possible(schedulers.scheduler_of(signature), signature, base, expired)
        except DeadlineNearError:
            return None
        if most is None:
            return None
        total += min(asked, most)
    return total


def fit_of_object(gang: GangRequest, found: Sequence[Replicas]) -> GangFit:
    """Return how many pods of a gang fit now; `found` are the placed replicas of each template."""
    placed = sum(each.placed for each in found)
    is_complete = placed >= gang.size or all(each.is_complete for each in found)
    return GangFit(gang.name, gang.size, min(placed, gang.size), 0, is_complete)


def partial_start_of_object(gang: GangRequest, fit: GangFit) -> str:
    """Return the warning if only some pods of an object would start and wait for the others; else an empty text."""
    if gang.starts_whole or not fit.is_complete or not 0 < fit.fit < fit.size:
        return ""
    return (
        f"{fit.fit} of the {fit.size} pods that must run together would start and hold what they request while the "
        f"others wait, and two such jobs can deadlock: scheduler {gang.scheduler} starts pods one by one"
    )

"""The rules of the policy for one pod: what they inject, or why they leave the pod alone or deny it.

Nothing here depends on the cluster or a scheduler.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import orjson

from webhook.admission.pod_content import PodContent
from webhook.backends.backend import FieldPath
from webhook.backends.references import GangRequest, PodReferences, Within
from webhook.backends.registry import backend_of, batch_names_of, gang_key, starts_whole
from webhook.documents.documents import JsonObject
from webhook.documents.field import FieldError, lines_of
from webhook.kube.api.review_answer import Denial
from webhook.kube.names import DAEMON_SET, DEFAULT_NAMESPACE, DEFAULT_SCHEDULER, MIRROR_POD_ANNOTATION
from webhook.kube.pod.resources import requested_extended_resources
from webhook.kube.shape import check_pod
from webhook.mutation.edits.edits import PodTooLargeError
from webhook.mutation.mutate import Mutation, RuleOutcome, mutate
from webhook.mutation.rules import RULES
from webhook.mutation.withdrawal import tolerated, withdrawal
from webhook.mutation.workload.batch_scheduling import BatchScheduling
from webhook.mutation.workload.gathering import Gathering
from webhook.mutation.workload.workload import WorkloadReading, opts_out, read_workload
from webhook.policy.exempt import pod_exemption
from webhook.policy.policy import Policy, opt_out_namespaces
from webhook.policy.spec.admission import CheckMode
from webhook.policy.spec.field_types import matches_any


@dataclass(frozen=True, slots=True)
class Bypassed:
    """Allowed without evaluation; `reason` states why the policy does not apply."""

    reason: str
    warnings: tuple[str, ...] = ()
    workload_type: str | None = None
    outcome: Literal["Bypassed"] = "Bypassed"
    rules: ClassVar[tuple[RuleOutcome, ...]] = ()
    operations: ClassVar[Sequence[JsonObject]] = ()
    placement: ClassVar[None] = None


@dataclass(frozen=True, slots=True)
class Denied:
    """A denial. `errors` are set if annotations are the cause, `rules` if the placement check is the cause."""

    denial: Denial
    workload_type: str | None
    rules: tuple[RuleOutcome, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[FieldError, ...] = ()
    outcome: Literal["Denied"] = "Denied"
    operations: ClassVar[Sequence[JsonObject]] = ()


@dataclass(frozen=True, slots=True)
class Injection:
    """The changes that the policy injects into a pod. It holds no reference to the pod."""

    workload_type: str
    check_mode: CheckMode
    operations: list[JsonObject]
    patch: bytes
    """The operations as JSON."""
    rules: tuple[RuleOutcome, ...]
    warnings: tuple[str, ...]
    references: PodReferences
    """The names in the pod that are looked up in the view of the cluster."""
    gang: GangRequest | None = None
    starts_whole: bool = False
    """True if the pod starts with the others of its gang or not at all."""
    within: Within | None = None
    """The request that the gang of the pod runs within one topology domain, as its scheduler reads it."""
    of_owner: Sequence[tuple[FieldPath, Any]] = ()
    """The fields of the pod's top owner, by their paths, in which the scheduler reads the request."""


RulesResult = Bypassed | Denied | Injection


def apply_rules(content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> RulesResult:
    """Return the result of applying the rules of `policy` to the pod in `content`.

    The result depends only on the namespace, on `extended_resources` (the names of the extended resources that the pod
    requests), and on `content.data_without_containers`, or on `content.data` if the policy reads amounts.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    pod, defaults, namespace = content.pod, content.defaults, content.namespace or DEFAULT_NAMESPACE
    check_pod(pod)
    if reason := _bypass_reason(pod, namespace, defaults, policy):
        return Bypassed(reason)
    if policy.withheld is not None:
        handling, reason = policy.withheld
        return Bypassed(reason) if handling == "leave" else Denied(Denial(403, "Forbidden", reason), None)
    reading = read_workload(pod, namespace, defaults, policy, extended_resources)
    warnings = reading.warnings
    taken_back = withdrawal(pod, policy) if reading.is_forbidden else None
    if errors := (*reading.errors, *reading.denials):
        if policy.spec.invalid_annotations == "deny":
            denial = Denial(*((422, "Invalid") if reading.errors else (403, "Forbidden")), lines_of(errors))
            return Denied(denial, reading.type_name, warnings=warnings, errors=errors)
        warnings = (*map(str, errors), *warnings)
    workload = reading.workload
    if workload is None:
        return _without_workload(taken_back, reading, warnings)
    try:
        mutation = mutate(pod, workload, policy, RULES)
        if taken_back is not None:
            again = mutate(taken_back.pod, workload, policy, RULES)
            if tolerated(again.pod) != tolerated(mutation.pod):
                mutation = taken_back.followed_by(again)
    except PodTooLargeError as error:
        return Denied(Denial(422, "Invalid", str(error)), reading.type_name, warnings=warnings)
    scheduler = mutation.pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
    names = batch_names_of(mutation.pod, backend_of(policy.spec, scheduler))
    is_whole, domain = starts_whole(mutation.pod, names), _domain(workload.gathering, mutation.pod)
    return Injection(
        workload.type_name,
        workload.check_mode,
        mutation.operations,
        orjson.dumps(mutation.operations),
        mutation.rules,
        (*warnings, *mutation.warnings),
        PodReferences(
            workload.accelerator,
            workload.products,
            scheduler,
            workload.any_product.listed if workload.any_product is not None else None,
            mutation.pod["spec"].get("priorityClassName") or "",
            names,
            workload.amounts.facts,
        ),
        _gang(workload.batch, is_whole, domain[0], policy),
        is_whole,
        *domain,
    )


def _without_workload(
    mutation: Mutation | None, reading: WorkloadReading, warnings: tuple[str, ...]
) -> Bypassed | Injection:
    """Return the result for a pod into which nothing is injected."""
    if mutation is None:
        return Bypassed(reading.bypass_reason, warnings, reading.type_name)
    references = PodReferences(None, (), mutation.pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER)
    operations = mutation.operations
    return Injection(
        reading.type_name or "", "off", operations, orjson.dumps(operations), mutation.rules, warnings, references
    )


def _domain(gathering: Gathering | str, pod: JsonObject) -> tuple[Within | None, Sequence[tuple[FieldPath, Any]]]:
    """Return the request for a domain that is in force in the admitted `pod`, and the fields of its top owner."""
    return (None, ()) if isinstance(gathering, str) else (gathering.on(pod), gathering.of_owner)


def _gang(batch: BatchScheduling, is_whole: bool, within: Within | None, policy: Policy) -> GangRequest | None:
    """Return the requested gang, or None if neither its name nor its size is given."""
    request = batch.request
    if request.gang_size is None and request.gang is None:
        return None
    missing = "" if request.gang else gang_key(policy.keys.gang, policy.spec, batch.scheduler)
    size = request.gang_size or 0
    return GangRequest(request.gang or "", size, batch.scheduler, is_whole, missing=missing, within=within)


def inject(content: PodContent, policy: Policy) -> RulesResult:
    """Return the result of the rules of `policy` for the pod in `content`, without a cache.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    return apply_rules(content, requested_extended_resources(content.pod), policy)


def is_of_daemon_set(owners: Sequence[Any], policy: Policy) -> bool:
    """Return whether a DaemonSet of an API group in the policy, which was checked itself, owns the pod."""
    for owner in owners:
        if isinstance(owner, dict) and owner.get("kind") == DAEMON_SET:
            # The API server requires the version; manifests of the commands can lack it.
            group = str(owner.get("apiVersion") or "apps/v1").rpartition("/")[0]
            if (group, DAEMON_SET) in policy.kinds:
                return True
    return False


def _bypass_reason(pod: Mapping[str, Any], namespace: str, defaults: Mapping[str, str], policy: Policy) -> str | None:
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    if MIRROR_POD_ANNOTATION in annotations:
        return "mirror pod"
    if spec.get("nodeName"):
        return "spec.nodeName is set"
    if is_of_daemon_set(metadata.get("ownerReferences") or (), policy):
        # The DaemonSet controller has chosen the node already and does not know the injection (kubernetes#61886).
        return "pod of a DaemonSet"
    if policy.withheld is not None:
        # Neither exemptions nor opting out of the default policy hold where another one may be in force.
        return None
    if reason := pod_exemption(pod, namespace, policy.spec):
        return reason
    if opts_out(annotations, defaults, policy) and matches_any(namespace, opt_out_namespaces(policy.spec)):
        return f"{policy.keys.inject}: disabled"
    return None

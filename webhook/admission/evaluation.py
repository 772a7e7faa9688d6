"""Evaluates the policy for a pod, independently of the cluster. Pure: equal pods have equal results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from webhook.admission.mutated_pod import Injection, Mutated
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Bypassed, Denied
from webhook.backends.registry import backend_of, batch_names_of, starts_whole
from webhook.documents.field import lines_of
from webhook.kube.api.review_answer import Denial
from webhook.kube.deadline import Expired, never
from webhook.kube.names import DAEMON_SET, DEFAULT_NAMESPACE, DEFAULT_SCHEDULER, MIRROR_POD_ANNOTATION
from webhook.kube.pod.resources import requested_extended_resources
from webhook.kube.shape import check_pod
from webhook.mutation.edits.edits import PodTooLargeError
from webhook.mutation.mutate import Mutation, mutate
from webhook.mutation.rules import RULES
from webhook.mutation.withdrawal import tolerated, withdrawal
from webhook.mutation.workload.batch_scheduling import BatchScheduling
from webhook.mutation.workload.workload import WorkloadReading, opts_out, read_workload
from webhook.placement.reasons.cluster_warnings import PodReferences
from webhook.placement.reasons.gang_request import GangRequest
from webhook.policy.exempt import pod_exemption
from webhook.policy.policy import Policy, opt_out_namespaces
from webhook.policy.spec.fields import matches_any

RulesResult = Bypassed | Denied | Injection
PolicyResult = Bypassed | Denied | Mutated
ApplyRules = Callable[[PodContent, tuple[str, ...], Policy], RulesResult]


def apply_rules(content: PodContent, extended_resources: tuple[str, ...], policy: Policy) -> RulesResult:
    """Return the result of applying the rules of `policy` to the pod in `content`.

    It depends only on the namespace, `extended_resources`, the names of the extended resources that the pod requests,
    and `content.data_without_containers`, or `content.data` if the policy reads amounts.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    pod, defaults = content.pod, content.defaults
    check_pod(pod)
    namespace = content.namespace or DEFAULT_NAMESPACE
    if reason := _bypass_reason(pod, namespace, defaults, policy):
        return Bypassed(reason)
    if policy.withheld is not None:
        handling, reason = policy.withheld
        return Bypassed(reason) if handling == "leave" else Denied(Denial(403, "Forbidden", reason), None)
    reading = read_workload(pod, namespace, defaults, policy, extended_resources)
    warnings = reading.warnings
    taken_back = withdrawal(pod, policy) if reading.is_forbidden else None
    if reading.type_name is None and not reading.errors:
        return _without_workload(taken_back, reading, warnings)
    if errors := (*reading.errors, *reading.denials):
        if policy.spec.invalid_annotations == "deny":
            code, reason = (422, "Invalid") if reading.errors else (403, "Forbidden")
            denial = Denial(code, reason, lines_of(errors))
            return Denied(denial, reading.type_name, warnings=warnings, errors=errors)
        warnings = (*map(str, errors), *warnings)
    if reading.workload is None:
        return _without_workload(taken_back, reading, warnings)
    try:
        mutation = mutate(pod, reading.workload, policy, RULES)
        if taken_back is not None:
            again = mutate(taken_back.pod, reading.workload, policy, RULES)
            if tolerated(again.pod) != tolerated(mutation.pod):
                mutation = taken_back.followed_by(again)
    except PodTooLargeError as error:
        return Denied(Denial(422, "Invalid", str(error)), reading.type_name, warnings=warnings)
    scheduler = mutation.pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
    names = batch_names_of(mutation.pod, backend_of(policy.spec, scheduler))
    is_whole = starts_whole(mutation.pod, names)
    return Injection(
        reading.workload.type_name,
        reading.workload.check_mode,
        mutation.operations,
        orjson.dumps(mutation.operations),
        mutation.rules,
        (*warnings, *mutation.warnings),
        PodReferences(
            f"{reading.workload.accelerator.card}.product",
            reading.workload.products,
            scheduler,
            reading.workload.any_product.listed if reading.workload.any_product is not None else None,
            mutation.pod["spec"].get("priorityClassName") or "",
            names,
        ),
        _gang(reading.workload.batch, is_whole),
        is_whole,
    )


def _without_workload(
    mutation: Mutation | None, reading: WorkloadReading, warnings: tuple[str, ...]
) -> Bypassed | Injection:
    """Return the result for a pod into which nothing is injected; `mutation` takes back what was."""
    if mutation is None:
        return Bypassed(reading.bypass_reason, warnings, reading.type_name)
    references = PodReferences("", (), mutation.pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER)
    operations = mutation.operations
    return Injection(
        reading.type_name or "", "off", operations, orjson.dumps(operations), mutation.rules, warnings, references
    )


def _gang(batch: BatchScheduling, is_whole: bool) -> GangRequest | None:
    """Return the gang that is requested; None without a name and a size."""
    request = batch.request
    if request.gang_size is None and request.gang is None:
        return None
    return GangRequest(request.gang or "", request.gang_size or 0, batch.scheduler, is_whole)


def evaluate(
    content: PodContent, policy: Policy, expired: Expired = never, rules: ApplyRules = apply_rules
) -> PolicyResult:
    """Return the result of evaluating `policy` for the pod in `content`.

    Once `expired()` holds, reading the signature of the result stops; nothing else depends on it. `rules` is
    `apply_rules` or a cached version of it.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    if _is_bypassed_by_metadata(content, policy):
        # Most pods of a cluster: reading their resources would cost more than all the rest.
        result = rules(content, (), policy)
        if not isinstance(result, Injection):
            return result
    injection = rules(content, requested_extended_resources(content.pod), policy)
    return Mutated(injection, content, expired) if isinstance(injection, Injection) else injection


def inject(content: PodContent, policy: Policy) -> RulesResult:
    """Return what the rules of `policy` make of the pod in `content`, without a cache.

    Raises:
        InvalidInput: the pod cannot be read as a Pod.
    """
    return apply_rules(content, requested_extended_resources(content.pod), policy)


def _is_bypassed_by_metadata(content: PodContent, policy: Policy) -> bool:
    """Return true if the rules reject or bypass the pod with any requests; false if that is not certain."""
    metadata, spec = content.pod.get("metadata"), content.pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or spec.get("nodeName"):
        return True
    annotations, owners = metadata.get("annotations") or {}, metadata.get("ownerReferences") or []
    if not isinstance(annotations, dict) or not isinstance(owners, list):
        return True
    if policy.keys.workload_type not in annotations and policy.keys.workload_type not in content.defaults:
        return policy.spec.require_type is None
    return _is_of_daemon_set(owners, policy)


def _is_of_daemon_set(owners: Sequence[Any], policy: Policy) -> bool:
    """Return whether a DaemonSet owns the pod, of an API group that the policy knows: its object was checked."""
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
    if _is_of_daemon_set(metadata.get("ownerReferences") or (), policy):
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

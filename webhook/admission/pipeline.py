"""The steps of one request: parse, evaluate, mutate, predict, conclude. Pure: equal requests have equal verdicts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from webhook.admission.annotation_suggestions import as_annotation_changes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.evaluation import PolicyResult, evaluate
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.mutated_pod import Mutated
from webhook.admission.overdue_pods import with_overdue_pods
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Allowed, DeniedPlacement, Verdict
from webhook.backends.backend import BatchNames
from webhook.backends.references import GangRequest
from webhook.documents.documents import field as field_of
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.review_answer import Denial
from webhook.kube.deadline import Expired, never
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.placement.gang.gang import gang_of, gang_placement
from webhook.placement.gang.group_suggestions import group_of_gang
from webhook.placement.profiles.node_templates import template_nodes
from webhook.placement.reasons.batch_warnings import queue_warnings
from webhook.placement.reasons.cluster_warnings import (
    about_one_product,
    absent_scheduler,
    full_quotas,
    missing_priority_class,
    missing_product,
    unknown_products,
    unlabelled_amounts,
)
from webhook.placement.reasons.evictions import eviction_warning
from webhook.placement.reasons.gang_request import GangDemand, grouped, partial_start, pod_group_of
from webhook.placement.reasons.pod_group_start import as_grouped
from webhook.placement.scheduler import Placement, PodSignature
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import predict_placement
from webhook.policy.exempt import request_exemption
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

# The same objects each time, so that a decision on them is known to be the same.
_CHECK_IS_OFF = Placement.unknown("the placement check is off")
_NO_VIEW = Placement.unknown("no view of the cluster")

PodVerdict = Allowed | Denied


class Steps:
    """The steps of an admission that take time. A subclass can keep their results; the order is that of `admit`."""

    def evaluate(self, content: PodContent, policy: Policy, expired: Expired) -> PolicyResult:
        """Return what `policy` decides on the pod in `content`, independently of the cluster."""
        return evaluate(content, policy, expired)

    def cluster_warnings(self, result: Mutated, policy: Policy, cluster: ClusterView | None) -> tuple[str, ...]:
        """Return the warnings about names in the pod that the cluster does not have."""
        return cluster_warnings(result, policy, cluster)

    def predict(self, result: Mutated, policy: Policy, cluster: ClusterView | None, expired: Expired) -> Placement:
        """Return the placement of the mutated pod in `result`."""
        return predict(result, policy, cluster, expired)

    def conclude(self, result: Mutated, placement: Placement, of_cluster: tuple[str, ...]) -> PodVerdict:
        """Return the verdict on a pod with `placement`; `of_cluster` are the warnings about names in the pod."""
        return conclude(result, placement, of_cluster)


_STEPS = Steps()


def admit(
    request: AdmissionRequest,
    policy: Policy,
    cluster: ClusterView | None,
    expired: Expired = never,
    steps: Steps = _STEPS,
) -> Verdict:
    """Return the verdict on `request` under `policy`.

    The patch depends only on the pod, the defaults of its namespace and the policy. `cluster` provides these defaults
    and the placement check. The check stops with the verdict Unknown once `expired()` returns true.

    Raises:
        InvalidInput: the request's object cannot be read as a Pod.
    """
    if reason := not_a_pod_creation(request) or request_exemption(request, policy.spec):
        return Bypassed(reason)
    return admit_content(read_pod(request, cluster), policy, cluster, expired, steps)


def policy_for(request: AdmissionRequest, policies: PolicySet, cluster: ClusterView | None) -> Policy:
    """Return the policy for the namespace of `request` by its labels, for a Namespace by those in the request."""
    name = request.namespace or DEFAULT_NAMESPACE
    if request.kind == "Namespace":
        own = field_of(request.object or {}, "metadata", "labels")
        return policies.of_namespace(request.name or name, own if isinstance(own, dict) else {})
    known = cluster.snapshot.namespaces.get(name) if cluster else None
    return policies.of_namespace(name, known.labels if known else None)


def not_a_pod_creation(request: AdmissionRequest) -> str | None:
    """Return the reason to bypass `request` without reading its object, or None for the creation of a pod."""
    if request.operation != "CREATE":
        return f"operation {request.operation}"
    if request.subresource:
        return f"subresource {request.subresource}"
    if request.kind not in ("", "Pod") or request.resource not in ("", "pods"):
        return f"not a pod: {request.kind or request.resource}"
    return None


def read_pod(request: AdmissionRequest, cluster: ClusterView | None) -> PodContent:
    """Return the pod of `request`, with the annotations of its namespace."""
    namespace = request.namespace or DEFAULT_NAMESPACE
    return PodContent(request, cluster.snapshot.namespace_annotations(namespace) if cluster else {})


def admit_content(
    content: PodContent, policy: Policy, cluster: ClusterView | None, expired: Expired, steps: Steps = _STEPS
) -> Verdict:
    """Return the verdict on the creation of the pod in `content`; see `admit`."""
    try:
        result = steps.evaluate(content, policy, expired)
        if not isinstance(result, Mutated):
            return result
        of_cluster = steps.cluster_warnings(result, policy, cluster)
        return steps.conclude(result, steps.predict(result, policy, cluster, expired), of_cluster)
    except InvalidInput as error:
        raise under_object(error) from error


def predict(result: Mutated, policy: Policy, cluster: ClusterView | None, expired: Expired) -> Placement:
    """Return the placement of the mutated pod in `result` on `cluster`."""
    content = result.content
    if result.injection.check_mode == "off":
        return _CHECK_IS_OFF
    if cluster is None or cluster.scorer is None:
        return _NO_VIEW
    if cluster.stale_reason:
        return Placement.unknown(cluster.stale_reason)
    signature, scorer = result.signature, cluster.scorer
    if isinstance(signature, str):
        return Placement.unknown(signature, is_final=result.is_final)
    assumed: AssumedPods[Any] = AssumedPods(cluster.snapshot) if cluster.assumed is None else cluster.assumed
    placement = predict_placement(scorer, signature, assumed, _seed(content), expired)
    if placement.verdict == "Infeasible" and placement.total == 0:
        # Without nodes nothing can be predicted; a wrong cluster file must not deny every pod.
        return Placement.unknown("the view of the cluster has no node", is_final=placement.is_final)
    asked, names = result.injection.gang, result.injection.references.batch
    gang = asked and grouped(asked, names, signature.info.inter_pod.namespace, cluster.snapshot)
    if gang is not None and result.waiting is not None:
        placement = _in_gang(gang, policy, result, placement, assumed, cluster, expired)
    elif placement.verdict in ("Waiting", "Infeasible"):
        snapshot = assumed.before_pod(signature.info.preemption)
        placement = as_annotation_changes(
            content, policy, placement, snapshot, lambda pod: scorer.answer(pod.signature, snapshot, expired), expired
        )
        placement = with_overdue_pods(placement, signature, policy, cluster, assumed, expired)
    if gang is not None:
        group = gang.group
    else:
        named, namespace = [each for each in names if each.group], signature.info.inter_pod.namespace
        group = pod_group_of(named[-1], namespace, cluster.snapshot) if named else None
    if group is None:
        return placement
    return as_grouped(placement, group, signature.info, gang.size if gang else 0, cluster.snapshot)


def _in_gang(
    request: GangRequest,
    policy: Policy,
    result: Mutated,
    own: Placement,
    assumed: AssumedPods[Any],
    cluster: ClusterView,
    expired: Expired,
) -> Placement:
    """Return the placement of the gang of a pod that has the placement `own` by itself."""
    assert result.waiting is not None  # noqa: S101 - read
    pod = result.waiting[1]
    # That of the cluster view keeps answers for single pods. A suggestion for one more pod helps no gang.
    schedulers = scheduler_for(policy, cache_bytes=0, suggestions=0, profiles=cluster.profiles)
    gang = gang_of(request, pod, policy.spec)
    if own.suggestions:
        group = group_of_gang(gang, pod, schedulers.scheduler_of, assumed, expired)
        own = as_annotation_changes(result.content, policy, group.verified(own), group.snapshot, group.place, expired)
    placement = gang_placement(
        schedulers.scheduler_of(pod.signature),
        gang,
        pod,
        own,
        assumed,
        templates=template_nodes(policy.spec.node_templates),
        expired=expired,
    )
    is_waiting = placement.verdict == "Waiting"
    return with_overdue_pods(placement, pod.signature, policy, cluster, assumed, expired) if is_waiting else placement


def _seed(content: PodContent) -> str:
    """Return the seed that selects one of the nodes with equal scores. Each pod of a template has a different seed."""
    identity = content.request.identity
    name = identity.name or f"{identity.generate_name}/{identity.token_volume}"
    return f"{identity.namespace}/{name}"


def cluster_warnings(
    result: Mutated,
    policy: Policy,
    cluster: ClusterView | None,
    in_object: tuple[Sequence[BatchNames], GangDemand | None] | None = None,
) -> tuple[str, ...]:
    """Return the warnings about names in the pod that the cluster does not have, or none if there is no current view.

    `in_object` is set for a pod of an object: the queues and groups of the pod, and the gang that its pods form, if
    any.
    """
    if result.injection.check_mode == "off" or cluster is None or cluster.stale_reason:
        return ()
    spec, snapshot, references = policy.spec, cluster.snapshot, result.injection.references
    warnings = [*unknown_products(references, snapshot, spec.node_templates), *missing_product(references, snapshot)]
    if references.amounts:
        warnings += unlabelled_amounts(references, snapshot, spec.node_templates)
    if references.scheduler in spec.allowed_schedulers:
        warnings += absent_scheduler(references.scheduler, snapshot, spec.schedulers)
    warnings += missing_priority_class(references.priority_class, snapshot)
    if isinstance(result.signature, PodSignature):
        info = result.signature.info
        warnings += full_quotas(info.inter_pod, snapshot, spec.bin_packing, spec.key_domain)
        names, demand = in_object or (references.batch, None)
        if not in_object and names and result.injection.gang:
            gang = grouped(result.injection.gang, names, info.inter_pod.namespace, snapshot)
            demand = gang and GangDemand.of_pod(gang, info)
        warnings += queue_warnings(names, info, snapshot, demand)
    return tuple(warnings)


def conclude(result: Mutated, placement: Placement, of_cluster: tuple[str, ...]) -> PodVerdict:
    """Return the verdict on a pod with `placement`; `of_cluster` are the warnings about names in the pod."""
    injection = result.injection
    if of_cluster and placement.suggestions:
        of_cluster = about_one_product(of_cluster, placement.suggestions[0])
    rules, warnings = injection.rules, (*injection.warnings, *of_cluster)
    if placement.verdict == "Infeasible" and injection.check_mode == "deny" and not placement.deny_exemption:
        suggestion = "".join(f" Suggestion: {text}." for text in placement.suggestions[:1])
        reason = "no node of this cluster can take this pod as it is"
        if placement.gang is not None and placement.gang.most is not None:
            reason = "this cluster cannot run the pods of this gang together as they are"
        message = f"{reason}: {placement.message}{suggestion}"
        denial = Denial(403, "Forbidden", message)
        return DeniedPlacement(denial, injection.workload_type, rules, warnings, placement=placement)
    if placement.verdict in ("Infeasible", "Waiting") or placement.deny_exemption:
        # Warnings are truncated to the length that clients receive, so the suggestion is a warning of its own.
        suggestions = [f"placement check: suggestion: {text}" for text in placement.suggestions[:1]]
        if evicted := eviction_warning(placement, result.content.request.identity.namespace):
            # Evictions happen by themselves, and the first suggestion is the same.
            suggestions = [*(suggestions if placement.waits_for == "room" else ()), f"placement check: {evicted}"]
        is_exempt = placement.deny_exemption and injection.check_mode == "deny"
        exemptions = [f"placement check: not refused: {placement.deny_exemption}"] if is_exempt else []
        gang = placement.gang
        message = gang.warning if gang is not None and gang.next_message else placement.message
        in_part = partial_start(injection.gang, placement) if injection.gang else ()
        overdue = [f"placement check: {line}" for line in placement.overdue]
        verdict = f"placement check: {placement.verdict}: {message}"
        warnings = (*warnings, verdict, *in_part, *exemptions, *suggestions, *overdue)
    return Allowed(result, warnings, placement)


def under_object(error: InvalidInput) -> InvalidInput:
    """Return `error` with `request.object` before the paths of the invalid fields of the pod."""
    return InvalidInput(
        replace(each, path=f"request.object.{each.path}" if each.path else "request.object") for each in error.errors
    )

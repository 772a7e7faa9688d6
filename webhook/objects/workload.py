"""Evaluate the pod templates of a workload object when it is written, as its pods will be evaluated.

Each template goes through the same evaluation as a pod. The verdict is for the user of the object: invalid annotations
are denied with their paths in the object, and the placement of all replicas is one warning. An object is never denied
because of its placement: the pods are checked again when they are created, and the cluster may have changed by then.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from webhook.admission.cluster_view import ClusterView
from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pipeline import cluster_warnings
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Advised, ObjectVerdict
from webhook.documents.documents import JsonObject
from webhook.documents.documents import field as value_of
from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, lines_of
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.api.review_answer import Denial
from webhook.kube.deadline import BudgetSpentError, DeadlineNearError, Expired
from webhook.kube.names import DEFAULT_NAMESPACE, MANUAL_JOB, MANUAL_JOB_ANNOTATION
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import each_pod_set
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.kube.workloads.workload_kinds import PATCHED_TEMPLATES
from webhook.mutation.mutate import RuleOutcome
from webhook.mutation.workload.annotations import stray_keys
from webhook.objects.completed_role import completed_role, refusal_warning
from webhook.objects.doubts import advise_in_doubt
from webhook.objects.gangs import Role, WorkloadAdmission, queues_of
from webhook.objects.misplaced import keys_of, misplaced
from webhook.objects.per_node import per_node_errors
from webhook.objects.queues import queue_denials
from webhook.objects.split_job import split_of_roles
from webhook.objects.template_patch import owner_patch, template_patch
from webhook.placement.reasons.cluster_warnings import about_one_product
from webhook.policy.policy import Policy

MOST_TEMPLATES = 64
"""The number of pod templates that are evaluated. An object can have a hundred thousand."""


@dataclass(slots=True)
class _Findings:
    """The results of the templates of an object."""

    roles: list[Role] = field(default_factory=list)
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    workload_type: str | None = None
    bypass: str = "no workload type"
    pods: list[PodSet] = field(default_factory=list)
    is_cut: bool = False


def admit_workload(
    request: AdmissionRequest, kind: WorkloadKind, policy: Policy, cluster: ClusterView | None, expired: Expired
) -> ObjectVerdict:
    """Return the verdict on an object of `kind` that is created or updated."""
    namespace = request.namespace or DEFAULT_NAMESPACE
    workload = WorkloadAdmission(request, request.object or {}, namespace, kind, policy, cluster, expired)
    settings, content = policy.spec.workload_objects, in_namespace(request)
    if not settings.enabled:
        return Bypassed("the policy does not evaluate workload objects")
    if _has_controller(content) and not kind.is_per_node:
        return Bypassed("an object with a controller, which was evaluated itself")
    handling = settings.invalid_annotations or policy.spec.invalid_annotations
    defaults = namespace_defaults(request, policy, cluster)
    try:
        findings = _evaluated(content, workload, defaults)
    except InvalidInput as error:
        # Its own controller or the API server says so. A newer version of the kind may have other fields.
        return Bypassed(f"cannot be read as {kind.kind}: {error.errors[0]}")
    known = _known_errors(workload, defaults) if findings.errors else frozenset()
    new = [error for error in findings.errors if str(error) not in known]
    if new and handling == "deny":
        return _denied(new, findings)
    warnings = [*map(str, findings.errors), *findings.warnings, *misplaced(content, findings.pods, policy, kind.note)]
    if len(findings.pods) > 1:
        warnings += split_of_roles(findings.pods, findings.roles, policy)
    if findings.is_cut:
        warnings.append(f"placement check: only the first {MOST_TEMPLATES} pod templates, or fewer, were evaluated")
    if not findings.roles:
        return Bypassed(findings.bypass, tuple(dict.fromkeys(warnings)), findings.workload_type)
    if _has_same_pods(request, policy, expired):
        return Advised(findings.workload_type, tuple(dict.fromkeys(warnings)))
    rules, operations = _patch(workload, findings, warnings)
    of_cluster = [*_of_cluster(findings.roles, workload)]
    advice = advise_in_doubt(findings.roles, workload, defaults)
    placement = advice.placement if advice is not None else None
    if placement is not None and placement.suggestions:
        of_cluster = [*about_one_product(of_cluster, placement.suggestions[0])]
    # As for a pod: the causes before the verdict, which follows from them.
    warnings += [*of_cluster, *(advice.warnings if advice is not None else ())]
    return Advised(findings.workload_type, tuple(dict.fromkeys(warnings)), placement, rules, operations)


def _patch(
    workload: WorkloadAdmission, findings: _Findings, warnings: list[str]
) -> tuple[tuple[RuleOutcome, ...], tuple[JsonObject, ...]]:
    """Return the rules for the pods of the object, and the patch of its templates if the policy and the kind enable it.

    An update is only patched if it changes a template, because a change that only the webhook makes would replace
    running pods. The templates of an object without a name are not patched, because the injection can depend on the
    name.
    """
    kind, content = workload.kind, workload.content
    is_patched = workload.request.operation in PATCHED_TEMPLATES.get((kind.group, kind.kind), ())
    if not (workload.policy.spec.workload_objects.mutate_templates and is_patched):
        return (), ()
    roles = findings.roles if value_of(content, "metadata", "name") else []
    operations = template_patch(content, roles)
    if operations is None:
        warnings.append("the pod templates are not patched: the patch would be too large; the pods are")
        return (), ()
    of_owner, outcomes = owner_patch(content, findings.roles)
    rules = dict.fromkeys([*(rule for role in roles for rule in role.result.injection.rules), *outcomes])
    return tuple(rules), (*operations, *of_owner)


def _has_same_pods(request: AdmissionRequest, policy: Policy, expired: Expired) -> bool:
    """Return whether an update does not change the pod templates, such as an update of the object's own annotations."""
    if request.operation != "UPDATE" or request.old_object is None:
        return False
    try:
        before, after = (
            [each and each.common for each in _pod_sets(content or {}, policy, expired)]
            for content in (request.old_object, request.object)
        )
        is_same = before == after
    except (InvalidInput, RecursionError):
        # The parser accepts deeper nesting than the interpreter compares.
        return False
    return is_same


def _of_cluster(roles: list[Role], workload: WorkloadAdmission) -> Iterator[str]:
    cluster = workload.cluster
    if cluster is None:
        return
    for role in roles:
        if _is_over(workload.expired):
            return
        queues = queues_of(role, roles, workload, cluster.snapshot)
        yield from cluster_warnings(role.result, workload.policy, cluster, queues)
        yield from refusal_warning(role, cluster.snapshot)


def in_namespace(request: AdmissionRequest) -> JsonObject:
    """Return the object with the namespace of the request, as it will be stored."""
    content = request.object or {}
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace") or not request.namespace:
        return content
    return {**content, "metadata": {**metadata, "namespace": request.namespace}}


def _has_controller(content: JsonObject) -> bool:
    if value_of(content, "metadata", "annotations", MANUAL_JOB_ANNOTATION) == MANUAL_JOB:
        return False
    owners = value_of(content, "metadata", "ownerReferences")
    return isinstance(owners, list) and any(isinstance(each, Mapping) and each.get("controller") for each in owners)


def namespace_defaults(request: AdmissionRequest, policy: Policy, cluster: ClusterView | None) -> Mapping[str, str]:
    """Return the defaults of the namespace: those of its annotations that are keys of the policy."""
    annotations = cluster.snapshot.namespace_annotations(request.namespace) if cluster else {}
    return {key: annotations[key] for key in policy.keys if key in annotations}


def _evaluated(content: JsonObject, workload: WorkloadAdmission, defaults: Mapping[str, str]) -> _Findings:
    """Return the findings on the pod templates of `content`."""
    request, policy, expired = workload.request, workload.policy, workload.expired
    findings, pods = _Findings(), list(_pod_sets(content, policy, expired))
    findings.is_cut = bool(pods) and pods[-1] is None
    findings.pods = sets = [each for each in pods if each is not None]
    for each in _in_time(sets, findings, expired):
        keys = keys_of(each.common, policy)
        if each.replicas is None:
            if keys:
                verb = "have" if len(keys) > 1 else "has"
                listed = ", ".join(sorted(keys))
                findings.warnings.append(f"the pods of a DaemonSet are left alone: {listed} {verb} no effect")
            findings.bypass = "its pods run on every node and are left alone"
            if keys or defaults or policy.spec.require_type is not None:
                findings.errors += per_node_errors(each, request, defaults, policy)
        elif keys or defaults or policy.spec.require_type is not None or _has_stray_keys(each, policy):
            _evaluate(each, workload, defaults, findings, prefix=len(sets) > 1)
    if policy.spec.namespace_limits:
        findings.errors += queue_denials(content, request, policy, has_type=findings.workload_type is not None)
    return findings


def _pod_sets(content: JsonObject, policy: Policy, expired: Expired) -> Iterator[PodSet | None]:
    """Yield the sets of pods. Yield None at the end if there are more sets or no time is left."""
    try:
        for number, found in enumerate(each_pod_set(content, policy.kinds, expired)):
            if number == MOST_TEMPLATES:
                yield None
                return
            yield found
    except DeadlineNearError:
        yield None


def _in_time(sets: list[PodSet], findings: _Findings, expired: Expired) -> Iterator[PodSet]:
    for number, each in enumerate(sets):
        if number and _is_over(expired):
            findings.is_cut = True
            return
        yield each


def _is_over(expired: Expired) -> bool:
    try:
        return expired()
    except BudgetSpentError:
        return True


def _has_stray_keys(pods: PodSet, policy: Policy) -> bool:
    annotations, labels = (value_of(pods.common, "metadata", each) or {} for each in ("annotations", "labels"))
    if not isinstance(annotations, Mapping) or not isinstance(labels, Mapping):
        return False
    return bool(stray_keys(annotations, labels, policy))


def _evaluate(
    pods: PodSet, workload: WorkloadAdmission, defaults: Mapping[str, str], findings: _Findings, *, prefix: bool
) -> None:
    """Add the result for the pods of one template. The warnings of several templates begin with its path."""
    policy, expired = workload.policy, workload.expired
    content = PodContent(workload.request.with_object(pods.pod), defaults)
    try:
        result = evaluate(content, policy.with_invalid_annotations("deny"), expired)
        if isinstance(result, Denied) and result.errors:
            left = MOST_ERRORS - len(findings.errors)
            findings.errors += [replace(each, path=pods.locate(each.path)) for each in result.errors[:left]]
            result = evaluate(content, policy.with_invalid_annotations("warn"), expired)
            errors = {str(each) for each in findings.errors}
        else:
            errors = set()
    except InvalidInput:
        # The API server rejects such a pod.
        return
    warnings = result.injection.warnings if isinstance(result, Mutated) else result.warnings
    located = [text for text in (_located(each, pods) for each in warnings) if text not in errors]
    begin = f"{pods.path}: " if prefix else ""
    findings.warnings += [text if text.startswith(("metadata.", "spec.")) else begin + text for text in located]
    own_type = result.injection.workload_type if isinstance(result, Mutated) else result.workload_type
    findings.workload_type = findings.workload_type or own_type
    if isinstance(result, Mutated):
        findings.roles.append(completed_role(pods, result, workload, defaults))
    elif isinstance(result, Denied):
        findings.warnings.append(f"{pods.path}: such a pod is denied: {result.denial.message}")
    else:
        findings.bypass = result.reason


def _located(warning: str, pods: PodSet) -> str:
    """Return `warning`. If it begins with a field of the pod, replace the field by its path in the object."""
    path, colon, rest = warning.partition(": ")
    if colon and path.startswith(("metadata.", "spec.")) and " " not in path:
        return f"{pods.locate(path)}: {rest}"
    return warning


def _known_errors(workload: WorkloadAdmission, defaults: Mapping[str, str]) -> frozenset[str]:
    """Return the errors that the stored object already has, so that they do not block other changes."""
    before = workload.request.old_object
    if workload.request.operation != "UPDATE" or before is None:
        return frozenset()
    try:
        found = _evaluated(before, workload, defaults)
    except InvalidInput:
        return frozenset()
    return frozenset(map(str, found.errors))


def _denied(errors: list[FieldError], findings: _Findings) -> Denied:
    message = lines_of(errors)
    is_invalid = any(error.reason != "Forbidden" for error in errors)
    denial = Denial(422, "Invalid", message) if is_invalid else Denial(403, "Forbidden", message)
    return Denied(
        denial, findings.workload_type, warnings=tuple(dict.fromkeys(findings.warnings)), errors=tuple(errors)
    )

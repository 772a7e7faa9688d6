"""The pods of a template as the API server completes them with LimitRanges, priorities and RuntimeClasses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from webhook.admission.api_server.plugins import check_admitted, completed
from webhook.admission.evaluation import evaluate
from webhook.admission.mutated_pod import Mutated, as_created
from webhook.admission.pod_content import PodContent
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput
from webhook.kube.deadline import DeadlineNearError
from webhook.kube.workloads.pod_set import PodSet
from webhook.objects.gangs import Role, WorkloadAdmission
from webhook.placement.scorer import PodSignature


def completed_role(pods: PodSet, result: Mutated, workload: WorkloadAdmission, defaults: Mapping[str, str]) -> Role:
    """Return the role of `pods`, whose `result` and patch are those of the first pod as written."""
    request, cluster, role = workload.request, workload.cluster, Role(pods, result, result.content, result)
    if cluster is None or cluster.stale_reason or isinstance(result.signature, str):
        return role
    try:
        written = as_created(pods.pod, request.namespace)
        found = completed(written, cluster.snapshot, workload.expired)
        role = replace(role, unknown=found.unknown, doubts=found.doubts)
        if found.pod is not written:
            content = PodContent(request.with_object(found.pod), defaults)
            created = evaluate(content, workload.policy.with_invalid_annotations("warn"), workload.expired)
            role = replace(role, created=created if isinstance(created, Mutated) else result)
        if isinstance(role.created.signature, PodSignature):
            check_admitted(role.created.created, cluster.snapshot, workload.expired)
    except DeadlineNearError as error:
        return replace(role, unknown=str(error))
    except InvalidInput as error:
        return replace(role, refusal=str(error.errors[0]))
    return role


def refusal_warning(role: Role, snapshot: Snapshot) -> Iterator[str]:
    """Yield the warning about pods that the API server rejects. A missing PriorityClass has a separate warning."""
    if role.refusal and not snapshot.lacks_priority_class(role.result.injection.references.priority_class):
        yield f"{role.pods.path}: the API server refuses such a pod: {role.refusal}"


def unknown_reason(roles: Sequence[Role]) -> str:
    """Return the reason why the pods of a role cannot be evaluated, or "" if those of all roles can."""
    for role in roles:
        if role.pods.caveat:
            return role.pods.caveat
        if role.refusal or role.unknown:
            return role.refusal or role.unknown
        if isinstance(role.created.signature, str):
            return role.created.signature
    return ""

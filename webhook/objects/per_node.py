"""Check the pod template of a DaemonSet when the DaemonSet is written. Its pods are neither changed nor checked later.

The controller chooses the node of each pod and does not consider fields that admission adds. So a DaemonSet must itself
have the requirements on nodes that the policy would inject into its pods.
"""

from collections.abc import Mapping
from dataclasses import replace

from webhook.admission.evaluation import PolicyResult, evaluate
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import FieldError, InvalidInput, forbidden
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.names import MIRROR_POD_ANNOTATION
from webhook.kube.workloads.pod_set import PodSet
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import PodTooLargeError
from webhook.mutation.edits.node_edits import OR, REQUIRED_NODE, REQUIRES, RequireNode
from webhook.mutation.edits.node_terms import NodeLabelRequirement
from webhook.policy.policy import Policy


def per_node_errors(
    pods: PodSet, request: AdmissionRequest, defaults: Mapping[str, str], policy: Policy
) -> list[FieldError]:
    """Return the errors of the annotations of `pods`, their denials, and the requirements on nodes that they lack.

    Missing requirements and denials are only errors if a workload type is required, because users could otherwise omit
    the type.
    """
    is_optional = policy.keys.workload_type not in defaults and policy.spec.require_type in (None, "warn")
    path = pods.locate(".".join(map(str, REQUIRED_NODE)))
    try:
        result = _evaluated(_unbound(pods.pod), request, defaults, policy)
    except InvalidInput:
        # The API server rejects such a pod.
        return []
    except PodTooLargeError as error:
        return [] if is_optional else [forbidden(path, str(error))]
    if isinstance(result, Denied) and result.errors:
        return [replace(each, path=pods.locate(each.path)) for each in result.errors]
    if is_optional or isinstance(result, Bypassed):
        return []
    if isinstance(result, Denied):
        return [forbidden(path, result.denial.message)]
    missing = _missing(result)
    if not missing:
        return []
    detail = (
        "nothing is injected into the pods of a DaemonSet, so it must itself have what workload type "
        f'"{result.injection.workload_type}" requires: {", ".join(missing)}'
    )
    return [forbidden(path, detail)]


def _evaluated(pod: JsonObject, request: AdmissionRequest, defaults: Mapping[str, str], policy: Policy) -> PolicyResult:
    """Return the result for `pod`, whose `nodeSelector` counts as required affinity."""
    strict = policy.with_invalid_annotations("deny")
    result = evaluate(PodContent(request.with_object(pod), defaults), strict)
    missing = {each.partition(" ")[0] for text in _missing(result) for each in text.split(OR)}
    keys = missing.intersection(field(pod, "spec", "nodeSelector") or ())
    if not keys:
        return result
    editor = PodEditor(pod)
    for key in keys:
        value = pod["spec"]["nodeSelector"][key]
        RequireNode(NodeLabelRequirement(key, "In", (value,))).apply(editor)
    return evaluate(PodContent(request.with_object(editor.pod), defaults), strict)


def _missing(result: PolicyResult) -> list[str]:
    """Return the requirements on nodes that the rules add to the pod, each beginning with the key of the label."""
    if not isinstance(result, Mutated):
        return []
    edits = (edit for rule in result.injection.rules for edit in rule.edits)
    return [edit.removeprefix(REQUIRES) for edit in edits if edit.startswith(REQUIRES)]


def _unbound(pod: JsonObject) -> JsonObject:
    """Return `pod` without the fields that make the policy bypass a pod: owner, node, and the mark of a mirror pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    metadata = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    if isinstance(annotations := metadata.get("annotations"), dict):
        metadata["annotations"] = {key: text for key, text in annotations.items() if key != MIRROR_POD_ANNOTATION}
    if isinstance(spec, dict):
        spec = {key: value for key, value in spec.items() if key != "nodeName"}
    return {**pod, "metadata": metadata, "spec": spec}

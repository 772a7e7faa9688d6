"""Check the pods of a DaemonSet when the DaemonSet is written: they themselves are neither changed nor checked.

Its controller has chosen the node of each pod and does not know what admission adds. So a DaemonSet must have by itself
what the policy would require of its pods.
"""

from collections.abc import Mapping
from dataclasses import replace

from webhook.admission.evaluation import evaluate
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Denied
from webhook.documents.field import FieldError, InvalidInput, forbidden
from webhook.kube.api.admission import AdmissionRequest, JsonObject
from webhook.kube.names import MIRROR_POD_ANNOTATION
from webhook.kube.workloads.pod_set import PodSet
from webhook.mutation.edits.node_edits import REQUIRED_NODE, REQUIRES
from webhook.policy.policy import Policy


def per_node_errors(
    pods: PodSet, request: AdmissionRequest, defaults: Mapping[str, str], policy: Policy
) -> list[FieldError]:
    """Return the errors of the annotations of `pods`, their denials, and the requirements that they lack.

    Requirements are enforced where a workload type is required. Elsewhere users can leave the type out.
    """
    content = PodContent.of(request.with_object(_unbound(pods.pod)), defaults)
    try:
        result = evaluate(content, policy.with_invalid_annotations("deny"))
    except InvalidInput:
        # The API server rejects such a pod.
        return []
    if isinstance(result, Denied):
        return [replace(each, path=pods.locate(each.path)) for each in result.errors]
    is_optional = policy.keys.workload_type not in defaults and policy.spec.require_type in (None, "warn")
    if not isinstance(result, Mutated) or is_optional:
        return []
    edits = (edit for rule in result.injection.rules for edit in rule.edits)
    missing = [edit.removeprefix(REQUIRES) for edit in edits if edit.startswith(REQUIRES)]
    if not missing:
        return []
    detail = (
        "nothing is injected into the pods of a DaemonSet, so it must itself have what workload type "
        f'"{result.injection.workload_type}" requires: {", ".join(missing)}'
    )
    return [forbidden(pods.locate(".".join(map(str, REQUIRED_NODE))), detail)]


def _unbound(pod: JsonObject) -> JsonObject:
    """Return `pod` without what makes the policy leave a pod alone: owner, node, and the mark of a mirror pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    metadata = {key: value for key, value in metadata.items() if key != "ownerReferences"}
    if isinstance(annotations := metadata.get("annotations"), dict):
        metadata["annotations"] = {key: text for key, text in annotations.items() if key != MIRROR_POD_ANNOTATION}
    if isinstance(spec, dict):
        spec = {key: value for key, value in spec.items() if key != "nodeName"}
    return {**pod, "metadata": metadata, "spec": spec}

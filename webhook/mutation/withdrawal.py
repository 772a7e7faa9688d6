"""Take back what was injected into a pod template while its namespace might use it.

With `mutateTemplates`, the templates of workload objects have the tolerations that their pods get. A pod of such a
template, for whose type or products its namespace has lost the right, would keep them.
"""

from collections.abc import Mapping
from typing import Any

from webhook.kube.pod.taints import NO_SCHEDULE
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import SetAnnotation
from webhook.mutation.mutate import JsonObject, Mutation, RuleOutcome
from webhook.policy.policy import Policy

_NAME = "Withdrawal"


def withdrawal(pod: JsonObject, policy: Policy) -> Mutation | None:
    """Return the mutation of `pod` without the tolerations of node pools and cards; None if nothing was injected.

    The annotation with the rules, which the webhook has written, tells them from those of a user.
    """
    annotations: Mapping[str, Any] = pod["metadata"].get("annotations") or {}
    if not annotations.get(policy.rules_annotation):
        return None
    keys = {policy.node_usage_key, *(f"{each.card}.product" for each in policy.spec.accelerators)}
    tolerations = pod["spec"].get("tolerations") or []
    kept = [each for each in tolerations if each.get("key") not in keys or each.get("effect") != NO_SCHEDULE]
    editor = PodEditor(pod)
    if len(kept) < len(tolerations):
        editor.set(kept, "spec", "tolerations")
    SetAnnotation(policy.rules_annotation, "").apply(editor)
    edit = f"remove {len(tolerations) - len(kept)} tolerations of node pools and cards"
    return Mutation(editor.pod, editor.operations, (RuleOutcome(_NAME, (edit,)),), ())

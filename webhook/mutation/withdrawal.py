"""Remove tolerations that were injected into a pod template before its namespace lost the right to them.

With `mutateTemplates`, the tolerations of the pods are written to the templates of workload objects. A pod of such a
template would keep them after its namespace has lost the right to the workload type or the products.
"""

from collections.abc import Mapping
from typing import Any

from webhook.documents.documents import JsonObject
from webhook.kube.pod.taints import NO_SCHEDULE, Toleration
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import SetAnnotation
from webhook.mutation.mutate import Mutation, RuleOutcome
from webhook.policy.policy import WITHDRAWAL, Policy


def withdrawal(pod: JsonObject, policy: Policy) -> Mutation | None:
    """Return the mutation of `pod` without the tolerations of node pools and cards, or None if nothing was injected.

    The annotation with the rules, which the webhook writes, distinguishes injected tolerations from those of a user.
    Tolerations that this revision of the policy has written are kept, because a lost right changes the revision.
    Required affinity is kept, because it only restricts the pod.
    """
    annotations: Mapping[str, Any] = pod["metadata"].get("annotations") or {}
    rules = annotations.get(policy.rules_annotation) or ""
    is_own = annotations.get(policy.policy_annotation) == policy.identity
    if not rules or is_own or rules.startswith(WITHDRAWAL):
        return None
    keys = {policy.node_usage_key, *(each.product_taint for each in policy.spec.accelerators)}
    tolerations = pod["spec"].get("tolerations") or []
    kept = [each for each in tolerations if each.get("key") not in keys or each.get("effect") != NO_SCHEDULE]
    editor = PodEditor(pod)
    if len(kept) < len(tolerations):
        editor.set(kept, "spec", "tolerations")
    SetAnnotation(policy.rules_annotation, WITHDRAWAL).apply(editor)
    edit = f"remove {len(tolerations) - len(kept)} injected tolerations of node pools and cards"
    return Mutation(editor.pod, editor.operations, (RuleOutcome(WITHDRAWAL, (edit,)),), ())


def tolerated(pod: JsonObject) -> frozenset[Toleration]:
    """Return the tolerations of `pod`."""
    return frozenset(map(Toleration.of, pod["spec"].get("tolerations") or ()))

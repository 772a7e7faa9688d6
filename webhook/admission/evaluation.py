"""Evaluate the policy for a pod, independently of the cluster. Pure: equal pods have equal results."""

from collections.abc import Callable

from webhook.admission.injection import Bypassed, Denied, Injection, RulesResult, apply_rules, is_of_daemon_set
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.kube.deadline import Expired, never
from webhook.kube.pod.resources import requested_extended_resources
from webhook.policy.policy import Policy

PolicyResult = Bypassed | Denied | Mutated
ApplyRules = Callable[[PodContent, tuple[str, ...], Policy], RulesResult]


def evaluate(
    content: PodContent, policy: Policy, expired: Expired = never, rules: ApplyRules = apply_rules
) -> PolicyResult:
    """Return the result of evaluating `policy` for the pod in `content`.

    `expired` only limits the time to read the signature of the result. `rules` is `apply_rules` or a cached version of
    it.

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


def _is_bypassed_by_metadata(content: PodContent, policy: Policy) -> bool:
    """Return true if the rules reject or bypass the pod whatever it requests, and false if they may not."""
    metadata, spec = content.pod.get("metadata"), content.pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or spec.get("nodeName"):
        return True
    annotations, owners = metadata.get("annotations") or {}, metadata.get("ownerReferences") or []
    if not isinstance(annotations, dict) or not isinstance(owners, list):
        return True
    if policy.keys.workload_type not in annotations and policy.keys.workload_type not in content.defaults:
        return policy.spec.require_type is None
    return is_of_daemon_set(owners, policy)

"""Pods that the policy concerns, to judge by what becomes of them. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

import orjson

from webhook.doctor.installation import JsonObject
from webhook.evaluation import evaluate
from webhook.kube.field import InvalidInput
from webhook.kube.json_patch import patched
from webhook.placement.pod_signature import PodSignature
from webhook.pod_content import PodContent
from webhook.policy.policy import Policy, allows_namespace
from webhook.verdict import Bypassed, Denied

# LimitRanges of users seldom require more.
_AMOUNTS = {"cpu": "100m", "memory": "64Mi"}


class Judged(NamedTuple):
    """A sample pod as the policy admits it: the `pod` and its `signature`, or the reason why it does not."""

    pod: JsonObject | None
    signature: PodSignature | None
    reason: str = ""


def sample_pod(policy: Policy, workload_type: str, resource: str | None = None) -> JsonObject:
    """Return the smallest pod of `workload_type` with one card of `resource`, as the restricted standard allows it."""
    amounts = _AMOUNTS | ({resource: "1"} if resource else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "placement-webhook-doctor-",
            "annotations": {policy.keys.workload_type: workload_type},
        },
        "spec": {
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": amounts, "limits": amounts},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }


def judge(pod: JsonObject, namespace: str, policy: Policy, defaults: dict[str, str] | None = None) -> Judged:
    """Return what `policy` makes of `pod` in `namespace`, whose annotations are `defaults`."""
    content = PodContent(namespace, pod, defaults or {}, orjson.dumps(pod), b"")
    try:
        result = evaluate(content, policy)
    except InvalidInput as error:
        return Judged(None, None, str(error.errors[0]))
    if isinstance(result, Denied):
        return Judged(None, None, result.denial.message)
    if isinstance(result, Bypassed):
        return Judged(None, None, result.reason)
    if not isinstance(result.signature, PodSignature):
        return Judged(None, None, result.signature)
    return Judged(patched(pod, result.injection.operations), result.signature)


def types_of(policy: Policy, namespace: str) -> Iterator[str]:
    """Yield the workload types that pods of `namespace` may use."""
    return (name for name, each in policy.spec.workload_types.items() if allows_namespace(each, namespace))

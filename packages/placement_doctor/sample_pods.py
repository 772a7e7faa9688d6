"""Sample pods of the policy: their expected result, and whether the policy is enforced for them. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pod_content import PodContent
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import pod_request
from webhook.kube.api.json_patch import patched
from webhook.placement.scorer import PodSignature
from webhook.policy.exempt import pod_exemption, request_exemption, shadow_reason
from webhook.policy.policy import Policy, allows_namespace

# LimitRanges of users seldom require more.
_AMOUNTS = {"cpu": "100m", "memory": "64Mi"}
# With a canary of 1 %, a hundred names have about one in it.
_MOST_NAMES = 2000


class User(NamedTuple):
    """A user of the API server."""

    name: str = ""
    groups: tuple[str, ...] = ()


NO_USER = User()


class Judged(NamedTuple):
    """A sample pod as the policy admits it: the `pod` and its `signature`, or the reason why it is not admitted."""

    pod: JsonObject | None
    signature: PodSignature | None
    reason: str = ""


def sample_pod(policy: Policy, workload_type: str, resource: str | None = None) -> JsonObject:
    """Return the smallest pod of `workload_type` with one card of `resource`.

    It meets the restricted Pod Security Standard.
    """
    amounts = _AMOUNTS | ({resource: "1"} if resource else {})
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    annotations = {policy.keys.workload_type: workload_type}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "placement-webhook-doctor-", "annotations": annotations},
        "spec": {
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


def named_resource(policy: Policy) -> str | None:
    """Return the first resource of the policy's first accelerator that is not a pattern, or None."""
    return next((each for each in policy.spec.accelerators[0].resources if "*" not in each), None)


def judge(pod: JsonObject, namespace: str, policy: Policy) -> Judged:
    """Return the result of `policy` for `pod` in `namespace`."""
    try:
        result = evaluate(PodContent(pod_request(pod, namespace), {}), policy)
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


def reason_not_enforced(policy: Policy, pod: JsonObject, namespace: str, user: User = NO_USER) -> str | None:
    """Return why `policy` is not enforced for `pod` of `user` (shadow mode, canary, exemption), or None if it is."""
    request = pod_request(pod, namespace, user=user.name, groups=user.groups)
    spec = policy.spec
    return shadow_reason(request, spec) or request_exemption(request, spec) or pod_exemption(pod, namespace, spec)


def named_in_the_canary(policy: Policy, pod: JsonObject, namespace: str) -> JsonObject:
    """Return `pod` with a generateName in the canary of `policy`, or `pod` itself if there is no such name."""
    prefix = pod["metadata"]["generateName"]
    for number in range(_MOST_NAMES if policy.spec.canary_percent else 0):
        name = f"{prefix}{number}-" if number else prefix
        named = {**pod, "metadata": {**pod["metadata"], "generateName": name}}
        if shadow_reason(pod_request(named, namespace), policy.spec) is None:
            return named
    return pod

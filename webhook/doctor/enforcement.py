"""Whether the policy is enforced for a pod: not in shadow mode, outside of the canary, or for an exempt user. Pure."""

from typing import NamedTuple

from webhook.doctor.installation import JsonObject
from webhook.kube.admission import pod_request
from webhook.policy.canary import shadow_reason
from webhook.policy.exempt import pod_exemption, request_exemption
from webhook.policy.policy import Policy

# With a canary of 1 %, a hundred names have about one in it.
_MOST_NAMES = 2000


class User(NamedTuple):
    """A user of the API server."""

    name: str = ""
    groups: tuple[str, ...] = ()


NO_USER = User()


def reason_not_enforced(policy: Policy, pod: JsonObject, namespace: str, user: User = NO_USER) -> str | None:
    """Return why `policy` is not enforced for `pod`, created by `user`; None if it is."""
    request = pod_request(pod, namespace, user=user.name, groups=user.groups)
    spec = policy.spec
    return shadow_reason(request, spec) or request_exemption(request, spec) or pod_exemption(pod, namespace, spec)


def named_in_the_canary(policy: Policy, pod: JsonObject, namespace: str) -> JsonObject:
    """Return `pod` with a generateName for which the canary of `policy` enforces it; as it is if there is none."""
    for number in range(_MOST_NAMES if policy.spec.canary_percent else 0):
        name = f"{pod['metadata']['generateName']}{number}-" if number else pod["metadata"]["generateName"]
        named = {**pod, "metadata": {**pod["metadata"], "generateName": name}}
        if shadow_reason(pod_request(named, namespace), policy.spec) is None:
            return named
    return pod

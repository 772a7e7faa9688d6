"""Find missed pods: pods that the policy applies to and that were stored without its mark. Pure.

Such a pod was created while no replica answered and `failurePolicy` was `Ignore`, or before the webhook was registered.
The mark is the annotation with name and revision of the policy (`Policy.policy_annotation`), which each admission
writes.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pod_content import PodContent
from webhook.admission.registered_selection import Selection
from webhook.documents.documents import field
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import pod_request
from webhook.kube.names import DEFAULT_NAMESPACE, ENDED_PHASES
from webhook.kube.pod.top_controller import top_controller
from webhook.policy.exempt import pod_shadow_reason
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

JsonObject = Mapping[str, Any]

_RESTARTED_BY_ROLLOUT = ("Deployment", "StatefulSet")
_REPLACES_PODS = ("ReplicaSet", "ReplicationController")


class Owner(NamedTuple):
    """The controller of a pod; the Deployment itself for a pod of its ReplicaSet."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class MissedPod:
    """A missed pod, and the `policy` that was not applied to it.

    `created` is its creation time in RFC 3339, or empty if it is not known. `rules` are the rules that would change the
    pod. `denial` is the message if the policy denies the pod, or empty if it does not.
    """

    namespace: str
    name: str
    owner: Owner | None
    created: str
    policy: Policy
    workload_type: str = ""
    rules: tuple[str, ...] = ()
    denial: str = ""

    @property
    def remedy(self) -> str:
        """Return the command, or the instruction, that replaces the pod by one that the webhook admits.

        For a pod that the policy denies there is no command: its replacement would be denied, too.

        Names are quoted for a shell, because the API server does not validate the names of owners.
        """
        if self.denial:
            return "mend the pod template or the policy first: a pod in its place would be denied"
        pod = f"{shlex.quote(f'pod/{self.name}')} -n {shlex.quote(self.namespace)}"
        if self.owner is None:
            return f"delete and create again: {pod}"
        owner = f"{shlex.quote(f'{self.owner.kind.lower()}/{self.owner.name}')} -n {shlex.quote(self.namespace)}"
        if self.owner.kind in _RESTARTED_BY_ROLLOUT:
            return f"kubectl rollout restart {owner}"
        if self.owner.kind in _REPLACES_PODS:
            return f"kubectl delete {pod}"
        return f"delete and create again: {owner}"


class Scope(NamedTuple):
    """A namespace: the annotations that its pods have as defaults, and its labels."""

    annotations: Mapping[str, str]
    labels: Mapping[str, str]


NO_SCOPE = Scope({}, {})


def is_candidate(pod: JsonObject, policy: Policy, scope: Scope) -> bool:
    """Return whether `pod`, in the namespace `scope`, can be a missed pod. This check is cheap and excludes most pods.

    It is none if it has the mark or no workload type, has ended, is being deleted, or was created on a node.
    """
    metadata = pod.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(pod.get("spec"), dict):
        return False
    annotations, type_key = metadata.get("annotations") or {}, policy.keys.workload_type
    if not isinstance(annotations, dict) or policy.policy_annotation in annotations:
        return False
    if type_key not in annotations and type_key not in scope.annotations:
        return False
    is_ending = metadata.get("deletionTimestamp") or field(pod, "status", "phase") in ENDED_PHASES
    return not is_ending and not created_on_node(pod)


def created_on_node(pod: JsonObject) -> bool:
    """Return whether the creator of `pod` set its node, so that no scheduler was asked.

    The API server records the creator of `spec.nodeName` in managedFields; a binding leaves no trace there. Without
    managedFields, as in the output of kubectl, this is false.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/storage/storage.go, assignPod
    """
    entries = field(pod, "metadata", "managedFields")
    if not field(pod, "spec", "nodeName") or not isinstance(entries, list):
        return False
    fields = (field(each, "fieldsV1", "f:spec") for each in entries)
    return any(isinstance(each, dict) and "f:nodeName" in each for each in fields)


def missed_pod(
    pod: JsonObject, policies: PolicySet, selection: Selection, scopes: Mapping[str, Scope]
) -> MissedPod | None:
    """Return `pod`, a raw API object, as a missed pod, or None if it has the mark or the policy would not change it.

    `scopes` are the known namespaces.
    """
    namespace = str(field(pod, "metadata", "namespace") or DEFAULT_NAMESPACE)
    known, scope = scopes.get(namespace), scopes.get(namespace, NO_SCOPE)
    policy = policies.of_namespace(namespace, None if known is None else scope.labels)
    if not is_candidate(pod, policy, scope) or not selection.covers(namespace, scope.labels):
        return None
    # A pod for which the policy is not enforced gets no mark.
    is_enforced = pod_shadow_reason(pod, namespace, policy.spec) is None
    if not (is_enforced and selection.selects(pod) and selection.meets_conditions(pod)):
        return None
    created = {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}
    try:
        result = evaluate(PodContent(pod_request(created, namespace), scope.annotations), policy)
    except InvalidInput:
        return None
    if isinstance(result, Bypassed):
        return None
    metadata = pod["metadata"]
    name, created_at = str(metadata.get("name") or ""), str(metadata.get("creationTimestamp") or "")
    found = MissedPod(namespace, name, owner_of(pod), created_at, policy)
    if isinstance(result, Denied):
        return replace(found, workload_type=result.workload_type or "", denial=result.denial.message)
    rules = tuple(rule.name for rule in result.injection.rules if rule.edits)
    return replace(found, workload_type=result.injection.workload_type, rules=rules)


def owner_of(pod: JsonObject) -> Owner | None:
    """Return the controller of `pod` that a user changes (`top_controller`), or None without a controller."""
    found = top_controller(pod)
    return Owner(found.kind, found.name) if found else None

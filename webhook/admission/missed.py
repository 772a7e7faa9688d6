"""Find missed pods: pods that the policy concerns and that were stored without its marks. Pure.

Such a pod was created while no replica answered and `failurePolicy` was `Ignore`, or before the webhook was registered.
The mark is the annotation with name and revision of the policy (`Policy.policy_annotation`), which each admission
writes. `missed_pod` judges one pod. Judging many again and again needs less: `Candidates` finds the few that can be
missed, `created_pod` keeps of each what `missed` judges by.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Denied
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.admission.registered_selection import Selection
from webhook.documents.documents import field
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import pod_request
from webhook.kube.names import DEFAULT_NAMESPACE, ENDED_PHASES
from webhook.kube.pod.stored_pod import StoredPod
from webhook.policy.exempt import owner_bucket, pod_shadow_reason
from webhook.policy.policy import Policy

JsonObject = Mapping[str, Any]

_TEMPLATE_HASH = "pod-template-hash"
_RESTARTED_BY_ROLLOUT = ("Deployment", "StatefulSet")
_REPLACES_PODS = ("ReplicaSet", "ReplicationController")
# No annotation has this key, so the bucket is that of the controller or the name.
_NO_GANG = ""


class Owner(NamedTuple):
    """The controller of a pod; the Deployment itself for a pod of its ReplicaSet."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class MissedPod:
    """A missed pod: `created` is its creation time in RFC 3339, empty if it is not known.

    `rules` are the rules that would change the pod. `denial` is the message if the policy denies the pod; empty if it
    does not.
    """

    namespace: str
    name: str
    owner: Owner | None
    created: str
    workload_type: str
    rules: tuple[str, ...] = ()
    denial: str = ""

    @property
    def remedy(self) -> str:
        """Return the command after which a pod in its place is admitted, or an instruction.

        There is no command for a pod that the policy denies: it may run, and none would take its place.

        Names are quoted for a shell: the API server does not validate those of owners.
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


class Candidates(NamedTuple):
    """The pods of a namespace that can be missed under one policy: without its mark, and with a workload type.

    `mark` and `type_key` are annotations. `has_default_type`: the namespace has a default workload type, or is not
    known.
    """

    mark: str
    type_key: str
    has_default_type: bool

    @classmethod
    def of(cls, policy: Policy, scope: Scope | None) -> "Candidates":
        """Return the candidates of `policy` in the namespace `scope`; None: it is not known."""
        type_key = policy.keys.workload_type
        return cls(policy.policy_annotation, type_key, scope is None or type_key in scope.annotations)

    def include(self, pod: JsonObject) -> bool:
        """Return false if `pod` is certainly not missed. This is cheap: most pods are not candidates.

        A pod that has ended, is being deleted or was created on a node is not missed.
        """
        metadata = pod.get("metadata")
        if not isinstance(metadata, dict) or not isinstance(pod.get("spec"), dict):
            return False
        annotations = metadata.get("annotations") or {}
        if not isinstance(annotations, dict) or self.mark in annotations or metadata.get("deletionTimestamp"):
            return False
        if self.type_key not in annotations and not self.has_default_type:
            return False
        return field(pod, "status", "phase") not in ENDED_PHASES and not created_on_node(pod)

    def are_within(self, others: "Candidates") -> bool:
        """Return whether each of them is one of `others`."""
        return self[:2] == others[:2] and (others.has_default_type or not self.has_default_type)


def created_on_node(pod: JsonObject) -> bool:
    """Return whether the creator of `pod` set its node, so that no scheduler was asked.

    The API server records the creator of `spec.nodeName` in managedFields; a binding leaves no trace there. Without
    managedFields, as in the output of kubectl, this is false.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/storage/storage.go, assignPod
    """
    entries = field(pod, "metadata", "managedFields")
    if not field(pod, "spec", "nodeName") or not isinstance(entries, list):
        return False
    fields = (field(each, "fieldsV1", "f:spec") for each in entries if isinstance(each, dict))
    return any(isinstance(each, dict) and "f:nodeName" in each for each in fields)


class CreatedPod(NamedTuple):
    """The part of a pod that its judgement depends on, as it was sent: before it was bound and had a status.

    `data` is JSON that is equal for the pods of one template. `name` is the generateName or the name. It matters only
    for a pod without a controller, by `bucket`: the number by which a canary that knows no gangs includes it.
    """

    namespace: str
    data: bytes
    name: str
    bucket: int


def created_pod(pod: JsonObject) -> CreatedPod | None:
    """Return the pod as it was created; None if it is malformed."""
    stored, metadata = StoredPod.of(pod), pod["metadata"]
    if stored is None:
        return None
    view = stored.view
    data = replace(view, spec=replace(view.spec, node_name=None)).created()
    namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE)
    name = str(metadata.get("generateName") or metadata.get("name") or "")
    return CreatedPod(namespace, data, name, owner_bucket(pod, namespace, _NO_GANG))


class Missed(NamedTuple):
    """What a missed pod lacks, as in `MissedPod`."""

    workload_type: str
    rules: tuple[str, ...] = ()
    denial: str = ""


def missed(created: CreatedPod, scope: Scope, policy: Policy, selection: Selection) -> Missed | None:
    """Return what a candidate that meets the conditions of `selection` lacks of `policy`; None if it is not missed.

    `scope` is its namespace. Pods with equal `data` and `bucket` in one namespace have the same result.
    """
    if not selection.covers(created.namespace, scope.labels):
        return None
    pod = orjson.loads(created.data)
    named = {"metadata": {**pod["metadata"], "name": created.name}}
    # A pod for which the policy is not enforced gets no mark.
    if not selection.selects(pod) or pod_shadow_reason(named, created.namespace, policy.spec) is not None:
        return None
    content = PodContent(pod_request(pod, created.namespace), scope.annotations)
    try:
        result = evaluate(content, policy)
    except InvalidInput:
        return None
    if isinstance(result, Mutated):
        rules = tuple(rule.name for rule in result.injection.rules if rule.edits)
        return Missed(result.injection.workload_type, rules)
    if isinstance(result, Denied):
        return Missed(result.workload_type or "", denial=result.denial.message)
    return None


def missed_pod(pod: JsonObject, scope: Scope, policy: Policy, selection: Selection) -> MissedPod | None:
    """Return `pod`, a raw API object, if it was missed; None if it has the mark, or is none that the policy changes.

    `scope` is its namespace.
    """
    if not Candidates.of(policy, scope).include(pod) or not selection.meets_conditions(pod):
        return None
    created = created_pod(pod)
    lacks = missed(created, scope, policy, selection) if created is not None else None
    if created is None or lacks is None:
        return None
    metadata = pod["metadata"]
    return MissedPod(
        created.namespace,
        str(metadata.get("name") or ""),
        owner_of(pod),
        str(metadata.get("creationTimestamp") or ""),
        *lacks,
    )


def owner_of(pod: JsonObject) -> Owner | None:
    """Return the controller of `pod`, None without one.

    A ReplicaSet with the name of a Deployment and the hash of its template belongs to that Deployment.
    Source: k8s.io/kubernetes/pkg/controller/deployment/sync.go, getNewReplicaSet
    """
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences")
    for each in owners if isinstance(owners, list) else ():
        if not isinstance(each, dict) or each.get("controller") is not True:
            continue
        kind, name = str(each.get("kind") or ""), str(each.get("name") or "")
        suffix = f"-{field(metadata, 'labels', _TEMPLATE_HASH)}"
        if kind == "ReplicaSet" and name.endswith(suffix):
            return Owner("Deployment", name.removesuffix(suffix))
        return Owner(kind, name)
    return None

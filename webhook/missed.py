"""Find missed pods: pods that the policy concerns and that were stored without its marks. Pure.

Such a pod was created while no replica answered and `failurePolicy` was `Ignore`, or before the webhook was registered.
The mark is the annotation with name and revision of the policy (`Policy.policy_annotation`), which each admission
writes. `missed_pod` judges one pod; `Selection` says which pods a MutatingWebhookConfiguration sends.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from webhook.evaluation import Mutated, evaluate
from webhook.kube.cel.expression import compiled
from webhook.kube.documents import field
from webhook.kube.field import InvalidInput
from webhook.kube.label_selector import LabelRequirement, LabelSelector, read_label_selector, selector_matches
from webhook.kube.reader import Reader
from webhook.kube.wellknown import DEFAULT_NAMESPACE, ENDED_PHASES
from webhook.pod_content import PodContent, fields_read
from webhook.policy.canary import pod_shadow_reason
from webhook.policy.policy import Policy
from webhook.verdict import Denied

JsonObject = Mapping[str, Any]

_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_TEMPLATE_HASH = "pod-template-hash"
_RESTARTED_BY_ROLLOUT = ("Deployment", "StatefulSet")
_REPLACES_PODS = ("ReplicaSet", "ReplicationController")
_SYSTEM_NAMESPACE = "kube-system"


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


@dataclass(frozen=True, slots=True)
class Selection:
    """The pods that the API server sends to a webhook: its selectors, and names and expressions of matchConditions."""

    namespaces: LabelSelector
    pods: LabelSelector = ()
    conditions: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, webhook: JsonObject, known_conditions: Iterable[str] = ()) -> "Selection":
        """Return the selection of `webhook`, one entry of a MutatingWebhookConfiguration.

        `known_conditions` are expressions that the policy repeats, so that they need no evaluation.

        Raises:
            InvalidInput: a selector or a condition is malformed.
        """
        reader = Reader()
        namespaces, pods = (
            read_label_selector(reader, webhook.get(name) or {}, name) or ()
            for name in ("namespaceSelector", "objectSelector")
        )
        known = set(known_conditions)
        conditions = tuple(
            (str(each.get("name")), str(each.get("expression")))
            for _, each in reader.objects(webhook.get("matchConditions"), "matchConditions")
            if each.get("expression") not in known
        )
        reader.finish()
        return cls(namespaces, pods, conditions)

    @classmethod
    def shipped(cls, own_namespace: str) -> "Selection":
        """Return the selection of `deploy/base`: all namespaces but kube-system and that of the webhook."""
        values = (_SYSTEM_NAMESPACE, own_namespace)
        return cls((LabelRequirement(_NAMESPACE_NAME, "NotIn", values),))

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether pods of a namespace with these labels are sent."""
        return selector_matches(self.namespaces, {_NAMESPACE_NAME: namespace, **labels})

    def sends(self, pod: JsonObject) -> bool:
        """Return whether `pod` of a covered namespace is sent; a condition that cannot be evaluated counts as true.

        Source: k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go
        """
        labels = field(pod, "metadata", "labels")
        if not selector_matches(self.pods, labels if isinstance(labels, dict) else {}):
            return False
        return all(holds is not False for _, holds in self._evaluated(pod))

    def undecided(self, pod: JsonObject) -> tuple[str, ...]:
        """Return the names of the conditions that cannot be evaluated for `pod`."""
        return tuple(name for name, holds in self._evaluated(pod) if holds is None)

    def _evaluated(self, pod: JsonObject) -> Iterator[tuple[str, bool | None]]:
        variables = {"object": pod, "oldObject": None, "request": {"operation": "CREATE", "dryRun": False}}
        return ((name, compiled(expression).holds(variables)) for name, expression in self.conditions)


def is_candidate(pod: JsonObject, policy: Policy, *, has_default_type: bool) -> bool:
    """Return false if `pod` is certainly not missed: it has a mark, no workload type, has ended or is being deleted.

    `has_default_type`: its namespace has a default workload type, or is not known. This is cheap: most pods are not
    candidates.
    """
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or metadata.get("deletionTimestamp"):
        return False
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict) or policy.policy_annotation in annotations:
        return False
    if policy.keys.workload_type not in annotations and not has_default_type:
        return False
    if field(pod, "status", "phase") in ENDED_PHASES or created_on_node(pod):
        return False
    # A pod for which the policy is not enforced gets no mark.
    return pod_shadow_reason(pod, str(metadata.get("namespace") or DEFAULT_NAMESPACE), policy.spec) is None


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
    """The part of a pod that its evaluation depends on, as it was sent: before it was bound and had a status.

    `data` is JSON that is equal for the pods of one template.
    """

    namespace: str
    data: bytes


def created_pod(pod: JsonObject) -> CreatedPod | None:
    """Return the pod as it was created; None if it is nested too deeply to be serialised."""
    metadata, spec = pod["metadata"], pod["spec"]
    if spec.get("nodeName") is not None:
        pod = {**pod, "spec": {key: value for key, value in spec.items() if key != "nodeName"}}
    read = fields_read(dict(pod))
    read.policy["metadata"].pop("resourceVersion", None)
    read.policy["metadata"].pop("generation", None)
    try:
        data = orjson.dumps({"metadata": read.policy["metadata"], "spec": {**read.policy["spec"], **read.containers}})
    except orjson.JSONEncodeError:
        return None
    return CreatedPod(str(metadata.get("namespace") or DEFAULT_NAMESPACE), data)


class Missed(NamedTuple):
    """What a missed pod lacks, as in `MissedPod`."""

    workload_type: str
    rules: tuple[str, ...] = ()
    denial: str = ""


def missed(created: CreatedPod, defaults: Mapping[str, str], policy: Policy) -> Missed | None:
    """Return what an unmarked pod lacks of `policy`; None if the policy leaves it alone.

    `defaults` are the annotations of its namespace.
    """
    pod = orjson.loads(created.data)
    content = PodContent(created.namespace, pod, defaults, created.data, b"")
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

    `scope` is its namespace. A pod that has ended, is being deleted or was created on a node is not missed.
    """
    has_default_type = policy.keys.workload_type in scope.annotations
    if not is_candidate(pod, policy, has_default_type=has_default_type):
        return None
    metadata = pod["metadata"]
    namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE)
    if not selection.covers(namespace, scope.labels) or not selection.sends(pod):
        return None
    created = created_pod(pod)
    lacks = missed(created, scope.annotations, policy) if created is not None else None
    if lacks is None:
        return None
    return MissedPod(
        namespace,
        str(metadata.get("name") or ""),
        owner_of(pod),
        str(metadata.get("creationTimestamp") or ""),
        lacks.workload_type,
        lacks.rules,
        lacks.denial,
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

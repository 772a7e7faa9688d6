"""Counts the missed pods of a live view, from the objects that arrive for the cache.

A pod with the mark of the policy, or without a workload type, costs a few lookups. The others are kept by template: of
the pods of one template, the content is kept and evaluated once. They are evaluated a few milliseconds at a time, once
all pods and namespaces have been listed and both the policies in force and the registered webhook are known; and again
when one of them changes. Until then a template counts by its last evaluation.

Two changes need pods that are not kept: a namespace gets a default workload type or a policy with another key domain,
or the contents of templates take more memory than their bound. Then the pods are listed again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from webhook.admission.missed import NO_SCOPE, Candidates, CreatedPod, Scope, created_pod, missed
from webhook.admission.registered_selection import Selection
from webhook.cluster.cache.object_key import Key
from webhook.documents import documents
from webhook.kube.pod.stored_pod import StoredPod
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

_TURN_SECONDS = 0.005
# The contents of templates. Without its content, a template is evaluated when a pod of it arrives.
_MOST_BYTES = 16 * 1024 * 1024
_HASH_BYTES = 16
# A list of all pods is expensive, and users can change the defaults of their namespaces.
_LIST_AGAIN_SECONDS = 600.0


@dataclass(slots=True, eq=False)
class _Namespace:
    """A namespace with its policy and its templates by hash; `scope` is None while it is not known.

    `candidates` are those of its pods that are kept. `others` are those that are not, of a namespace that is not known:
    it is forgotten without pods.
    """

    name: str
    policy: Policy
    candidates: Candidates
    scope: Scope | None = None
    templates: "dict[bytes, _Template]" = field(default_factory=dict)
    others: set[Key] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Template:
    """The pods with equal content; `content` is None beyond the bound. `is_missed` is false until it is evaluated.

    `is_stale`: it is to be evaluated.
    """

    namespace: _Namespace
    hash: bytes
    content: CreatedPod | None
    pods: int = 0
    is_missed: bool = False
    is_stale: bool = True


class MissedPods:
    """Keeps the number of missed pods in `count`. Not thread-safe.

    `policies` returns the policies in force, and `is_policy_known` whether their source has been read. `list_again` is
    called when all pods have to be noted again.
    """

    def __init__(
        self,
        policies: Callable[[], PolicySet],
        monotonic_seconds: Callable[[], float],
        is_policy_known: Callable[[], bool] = lambda: True,
        list_again: Callable[[], None] = lambda: None,
    ) -> None:
        self.count = 0
        self._policies = policies
        self._monotonic_seconds = monotonic_seconds
        self._is_policy_known = is_policy_known
        self._list_again = list_again
        self._in_force = policies()
        self._selection: Selection | None = None
        self._is_ready = False
        self._namespaces: dict[str, _Namespace] = {}
        self._template_of: dict[Key, _Template] = {}
        self._stale_namespaces: dict[_Namespace, None] = {}
        self._waiting: dict[_Template, None] = {}
        self._kept_bytes = 0
        self._lacks_pods = False
        self._list_after_seconds = 0.0

    def select(self, selection: Selection) -> None:
        """Take the pods that are sent to the webhook."""
        before, self._selection = self._selection, selection
        if selection == before:
            return
        # The conditions can read any part of a pod, so they are evaluated when it arrives.
        self._lacks_pods |= selection.conditions != (before.conditions if before else ())
        for namespace in self._namespaces.values():
            self._wait(namespace)

    def note(self, kind: str, key: Key, content: Mapping[str, Any] | None) -> None:
        """Take an object of the cache; None: it was deleted. Kinds other than pods and namespaces are ignored."""
        if kind == "Namespace":
            self._note_namespace(key.name, content)
        elif kind == "Pod":
            template = None if content is None else self._template(key.namespace, content)
            known = self._template_of.get(key)
            self._note_other(key, is_other=content is not None and template is None)
            if template is not known:
                self._move(key, known, template)

    def work(self) -> None:
        """Evaluate templates for some milliseconds; to be called once all pods and namespaces have been listed."""
        end_seconds = self._monotonic_seconds() + _TURN_SECONDS
        self._is_ready = self._is_ready or (self._selection is not None and self._is_policy_known())
        if not self._is_ready:
            return
        policies = self._policies()
        if policies is not self._in_force:
            self._in_force = policies
            self._stale_namespaces = dict.fromkeys(self._namespaces.values())
        while (self._stale_namespaces or self._waiting) and self._monotonic_seconds() < end_seconds:
            if self._stale_namespaces:
                self._choose_policy(next(iter(self._stale_namespaces)))
                continue
            template = next(iter(self._waiting))
            del self._waiting[template]
            if template.content is None:
                self._lacks_pods = True
            else:
                self._evaluate(template, template.content)
        if self._lacks_pods and end_seconds >= self._list_after_seconds:
            self._lacks_pods = False
            self._list_after_seconds = end_seconds + _LIST_AGAIN_SECONDS
            self._list_again()

    def _evaluate(self, template: _Template, created: CreatedPod) -> None:
        namespace = template.namespace
        if self._selection is None:
            return
        is_missed = missed(created, namespace.scope or NO_SCOPE, namespace.policy, self._selection) is not None
        self.count += template.pods * (is_missed - template.is_missed)
        template.is_missed, template.is_stale = is_missed, False

    def _note_namespace(self, name: str, content: Mapping[str, Any] | None) -> None:
        scope = None if content is None else _scope(content)
        namespace = self._namespaces.get(name)
        if namespace is None:
            if scope is not None:
                self._add_namespace(name, scope)
            return
        if namespace.scope != scope:
            namespace.scope = scope
            self._wait(namespace)
            self._stale_namespaces[namespace] = None
        if scope is not None:
            namespace.others.clear()
        self._forget_unknown(namespace)

    def _note_other(self, pod: Key, *, is_other: bool) -> None:
        """Take a pod of a namespace that is not known; `is_other`: it exists, but is not kept."""
        namespace = self._namespaces.get(pod.namespace)
        if namespace is None or namespace.scope is not None:
            return
        if is_other:
            namespace.others.add(pod)
        else:
            namespace.others.discard(pod)
        self._forget_unknown(namespace)

    def _add_namespace(self, name: str, scope: Scope | None) -> _Namespace:
        policy = self._policy_of(name, scope)
        namespace = self._namespaces[name] = _Namespace(name, policy, Candidates.of(policy, scope), scope)
        return namespace

    def _policy_of(self, name: str, scope: Scope | None) -> Policy:
        return self._in_force.of_namespace(name, None if scope is None else scope.labels)

    def _choose_policy(self, namespace: _Namespace) -> None:
        """Choose the policy of a namespace whose labels, or the policies in force, have changed."""
        del self._stale_namespaces[namespace]
        policy = self._policy_of(namespace.name, namespace.scope)
        candidates = Candidates.of(policy, namespace.scope)
        self._lacks_pods |= not candidates.are_within(namespace.candidates)
        if policy is not namespace.policy:
            self._wait(namespace)
        namespace.policy, namespace.candidates = policy, candidates

    def _wait(self, namespace: _Namespace) -> None:
        for template in namespace.templates.values():
            template.is_stale = True
            self._waiting[template] = None

    def _template(self, name: str, pod: Mapping[str, Any]) -> _Template | None:
        """Return the template of a pod, None if it is certainly not missed; a new one waits to be evaluated."""
        namespace = self._namespaces.get(name) or self._add_namespace(name, None)
        if isinstance(pod, StoredPod) and pod.view.has_annotation(namespace.candidates.mark):
            return None
        pod = dict(pod)
        if not namespace.candidates.include(pod):
            return None
        if self._selection is not None and not self._selection.meets_conditions(pod):
            return None
        created = created_pod(pod)
        if created is None:
            return None
        hashed = blake2b(created.data, key=bytes((created.bucket,)), digest_size=_HASH_BYTES).digest()
        template = namespace.templates.get(hashed)
        if template is None:
            template = namespace.templates[hashed] = _Template(namespace, hashed, self._kept(created))
            self._waiting[template] = None
        if template.is_stale and template.content is None and self._is_ready:
            if namespace in self._stale_namespaces:
                self._choose_policy(namespace)
            self._waiting.pop(template, None)
            template.content = self._kept(created)
            self._evaluate(template, created)
        return template

    def _kept(self, created: CreatedPod) -> CreatedPod | None:
        if self._kept_bytes + len(created.data) > _MOST_BYTES:
            return None
        self._kept_bytes += len(created.data)
        return created

    def _move(self, pod: Key, before: _Template | None, after: _Template | None) -> None:
        """Count `pod` for another template than before; None: it is no candidate."""
        if before is not None:
            del self._template_of[pod]
            before.pods -= 1
            self.count -= before.is_missed
            if not before.pods:
                self._forget(before)
        if after is not None:
            self._template_of[pod] = after
            after.pods += 1
            self.count += after.is_missed

    def _forget(self, template: _Template) -> None:
        del template.namespace.templates[template.hash]
        self._waiting.pop(template, None)
        if template.content is not None:
            self._kept_bytes -= len(template.content.data)
        self._forget_unknown(template.namespace)

    def _forget_unknown(self, namespace: _Namespace) -> None:
        """Forget a namespace that was deleted or never known, and has no pod left."""
        if namespace.scope is None and not namespace.templates and not namespace.others:
            self._namespaces.pop(namespace.name, None)
            self._stale_namespaces.pop(namespace, None)


def _scope(content: Mapping[str, Any]) -> Scope:
    annotations, labels = (documents.field(content, "metadata", each) for each in ("annotations", "labels"))
    return Scope(annotations if isinstance(annotations, dict) else {}, labels if isinstance(labels, dict) else {})

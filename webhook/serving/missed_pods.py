"""Counts the missed pods of a live view, from the objects that arrive for the cache.

A pod with the mark of the policy, or without a workload type, costs two lookups. The others are kept by template: pods
of one template are evaluated once, a few milliseconds at a time, after the first lists. A pod is judged by the defaults
of its namespace and the policy in force for it when the pod is first seen, or after the first lists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from webhook.cluster.cache.object_key import PENDING_PODS, Key
from webhook.kube.documents import field
from webhook.missed import NO_SCOPE, CreatedPod, Scope, Selection, created_pod, is_candidate, missed
from webhook.policy.policy_set import PolicySet

_TURN_SECONDS = 0.005
# The templates that wait to be evaluated; beyond that, one is evaluated as it arrives.
_MOST_BYTES = 16 * 1024 * 1024
_HASH_BYTES = 16


@dataclass(slots=True, eq=False)
class _Template:
    """The pods with equal content, of which only the hash is kept; `is_missed` is false until it is evaluated."""

    hash: bytes
    pods: int = 0
    is_missed: bool = False


class MissedPods:
    """Keeps the number of missed pods in `count`. An instance is for one thread.

    `policies` returns the policies in force, `selection` has the pods that are sent to the webhook.
    """

    def __init__(
        self, policies: Callable[[], PolicySet], selection: Selection, monotonic_seconds: Callable[[], float]
    ) -> None:
        self.count = 0
        self._policies = policies
        self._selection = selection
        self._monotonic_seconds = monotonic_seconds
        self._scopes: dict[str, Scope] = {}
        self._template_of: dict[tuple[str, Key], _Template] = {}
        self._templates: dict[bytes, _Template] = {}
        self._waiting: dict[_Template, CreatedPod] = {}
        self._waiting_bytes = 0

    def note(self, kind: str, key: Key, content: Mapping[str, Any] | None) -> None:
        """Take an object of the cache; None: it was deleted. Kinds other than pods and namespaces are ignored."""
        if kind == "Namespace":
            self._note_namespace(key.name, content)
        elif kind in ("Pod", PENDING_PODS):
            created = None if content is None else self._candidate(key, content)
            template, known = self._template(created), self._template_of.get((kind, key))
            if template is not known:
                self._move((kind, key), known, template)

    def work(self) -> None:
        """Evaluate templates that wait, for some milliseconds."""
        end_seconds = self._monotonic_seconds() + _TURN_SECONDS
        while self._waiting and self._monotonic_seconds() < end_seconds:
            template = next(iter(self._waiting))
            created = self._waiting.pop(template)
            self._waiting_bytes -= len(created.data)
            if template.pods:
                template.is_missed = self._is_missed(created)
                self.count += template.pods * template.is_missed

    def _is_missed(self, created: CreatedPod) -> bool:
        scope = self._scopes.get(created.namespace, NO_SCOPE)
        policy = self._policies().of_namespace(created.namespace, scope.labels)
        return missed(created, scope.annotations, policy) is not None

    def _note_namespace(self, name: str, content: Mapping[str, Any] | None) -> None:
        if content is None:
            self._scopes.pop(name, None)
            return
        annotations, labels = (field(content, "metadata", each) for each in ("annotations", "labels"))
        self._scopes[name] = Scope(
            annotations if isinstance(annotations, dict) else {}, labels if isinstance(labels, dict) else {}
        )

    def _candidate(self, key: Key, pod: Mapping[str, Any]) -> CreatedPod | None:
        scope = self._scopes.get(key.namespace)
        policy = self._policies().of_namespace(key.namespace, scope.labels if scope else {})
        has_default_type = scope is None or policy.keys.workload_type in scope.annotations
        if not is_candidate(pod, policy, has_default_type=has_default_type):
            return None
        if not self._selection.covers(key.namespace, {}) or not self._selection.sends(pod):
            return None
        return created_pod(pod)

    def _template(self, created: CreatedPod | None) -> _Template | None:
        """Return the template of a pod; a new one waits to be evaluated."""
        if created is None:
            return None
        hashed = blake2b(created.data, key=created.namespace.encode()[:64], digest_size=_HASH_BYTES).digest()
        template = self._templates.get(hashed)
        if template is None:
            template = self._templates[hashed] = _Template(hashed)
            if self._waiting_bytes + len(created.data) > _MOST_BYTES:
                template.is_missed = self._is_missed(created)
            else:
                self._waiting[template] = created
                self._waiting_bytes += len(created.data)
        return template

    def _move(self, pod: tuple[str, Key], before: _Template | None, after: _Template | None) -> None:
        """Count `pod` for another template than before; None: it is no candidate."""
        if before is not None:
            del self._template_of[pod]
            before.pods -= 1
            self.count -= before.is_missed
            if not before.pods:
                del self._templates[before.hash]
        if after is not None:
            self._template_of[pod] = after
            after.pods += 1
            self.count += after.is_missed

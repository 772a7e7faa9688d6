"""Count the missed pods of a live view, from the objects that arrive for the cache.

Most pods have the mark of the policy or no workload type, which takes a few lookups to find. The other pods are
evaluated for a few milliseconds at a time, once all pods and namespaces have been listed and the policies in force and
the registered webhook are known. Pods are not stored. When the policies, the namespace or the registration change, all
pods are listed again.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from webhook.admission.missed import NO_SCOPE, Scope, is_candidate, missed_pod
from webhook.admission.registered_selection import Selection
from webhook.cluster.cache.object_key import Key
from webhook.documents.documents import field
from webhook.kube.pod.stored_pod import StoredPod
from webhook.policy.policy_set import PolicySet

_TURN_SECONDS = 0.005
# Users decide how large a pod is. Beyond this, pods are judged at once, or listed again.
_MOST_WAITING_BYTES = 8 * 1024 * 1024
_ENTRY_BYTES = 256
_MOST_UNKNOWN = 1000
# A list of all pods is expensive, and users can change the defaults of their namespaces.
_LIST_AGAIN_SECONDS = 600.0


class MissedPods:
    """Keeps the number of missed pods by the policies in force, once they are known. Not thread-safe."""

    def __init__(
        self,
        policies: Callable[[], PolicySet],
        monotonic_seconds: Callable[[], float],
        is_policy_known: Callable[[], bool] = lambda: True,
    ) -> None:
        self._policies = policies
        self._monotonic_seconds = monotonic_seconds
        self._is_policy_known = is_policy_known
        self._judged_by = policies()
        self._selection: Selection | None = None
        self._is_ready = False
        self._scopes: dict[str, Scope] = {}
        # Namespaces that are not known, with a pod.
        self._unknown = set[str]()
        self._missed = set[Key]()
        # The JSON of each pod.
        self._waiting: dict[Key, bytes] = {}
        self._waiting_bytes = 0
        self._lacks_pods = False
        self._list_after_seconds = 0.0

    @property
    def count(self) -> int:
        """Return the number of missed pods."""
        return len(self._missed)

    def select(self, selection: Selection) -> None:
        """Set the selection of the pods that are sent to the webhook."""
        self._lacks_pods |= self._is_ready and selection != self._selection
        self._selection = selection

    def note(self, kind: str, key: Key, content: Mapping[str, Any] | None) -> None:
        """Record an object of the cache, or its deletion if `content` is None. Only pods and namespaces are used."""
        if kind == "Namespace":
            self._note_namespace(key.name, content)
        elif kind == "Pod":
            self._note_pod(key, content)

    def work(self) -> bool:
        """Evaluate listed pods for some milliseconds. Return whether all must be noted again."""
        end_seconds = self._monotonic_seconds() + _TURN_SECONDS
        policies, before = self._policies(), self._judged_by
        if self._selection is None or not self._is_policy_known():
            return False
        # Until the first turn, a pod was only looked at for annotations with the key domain of its policy.
        domains = {each.spec.key_domain for each in (*policies, *before)}
        self._lacks_pods |= policies is not before if self._is_ready else len(domains) > 1
        self._judged_by, self._is_ready = policies, True
        while self._waiting and self._monotonic_seconds() < end_seconds:
            key = next(iter(self._waiting))
            self._judge(key, orjson.loads(self._take(key)), self._selection)
        if not self._lacks_pods or end_seconds < self._list_after_seconds:
            return False
        self._lacks_pods = False
        self._list_after_seconds = end_seconds + _LIST_AGAIN_SECONDS
        return True

    def _note_namespace(self, name: str, content: Mapping[str, Any] | None) -> None:
        if content is None:
            # Its pods were deleted before.
            self._scopes.pop(name, None)
            return
        has_pods, before = name in self._unknown or name in self._scopes, self._judged_in(name)
        self._scopes[name] = _scope(content)
        self._unknown.discard(name)
        self._lacks_pods |= has_pods and self._judged_in(name) != before

    def _judged_in(self, name: str) -> tuple[object, ...]:
        """Return the inputs to evaluate pods of a namespace: policy, defaults, and whether the webhook gets them."""
        scope = self._scopes.get(name)
        policy = self._judged_by.of_namespace(name, None if scope is None else scope.labels)
        annotations, labels = scope or NO_SCOPE
        defaults = {key: value for key, value in annotations.items() if key.startswith(f"{policy.spec.key_domain}/")}
        is_sent = self._selection is not None and self._selection.covers(name, labels)
        return policy.identity, policy.withheld, defaults, is_sent

    def _note_pod(self, key: Key, content: Mapping[str, Any] | None) -> None:
        if key in self._waiting:
            self._take(key)
        scope = self._scopes.get(key.namespace)
        if scope is None and content is not None:
            if len(self._unknown) >= _MOST_UNKNOWN:
                self._unknown.clear()
                self._lacks_pods = True
            self._unknown.add(key.namespace)
        policy = self._judged_by.of_namespace(key.namespace, None if scope is None else scope.labels)
        is_marked = isinstance(content, StoredPod) and content.view.has_annotation(policy.policy_annotation)
        pod = None if content is None or is_marked else dict(content)
        if pod is None or not is_candidate(pod, policy, scope or NO_SCOPE):
            self._missed.discard(key)
        elif self._waiting_bytes < _MOST_WAITING_BYTES:
            self._keep(key, pod)
        elif self._is_ready and self._selection is not None:
            self._judge(key, pod, self._selection)
        else:
            self._lacks_pods = True

    def _keep(self, key: Key, pod: dict[str, Any]) -> None:
        try:
            data = orjson.dumps(pod)
        except orjson.JSONEncodeError:  # nested more deeply than any pod that can be judged
            self._missed.discard(key)
            return
        self._waiting[key] = data
        self._waiting_bytes += _ENTRY_BYTES + len(data)

    def _take(self, key: Key) -> bytes:
        """Remove the pod `key`, which waits for its evaluation, and return its JSON, or b"" if it does not wait."""
        data = self._waiting.pop(key, b"")
        self._waiting_bytes -= _ENTRY_BYTES + len(data) if data else 0
        return data

    def _judge(self, key: Key, pod: dict[str, Any], selection: Selection) -> None:
        if missed_pod(pod, self._judged_by, selection, self._scopes) is None:
            self._missed.discard(key)
        else:
            self._missed.add(key)


def _scope(content: Mapping[str, Any]) -> Scope:
    annotations, labels = (field(content, "metadata", each) for each in ("annotations", "labels"))
    return Scope(annotations if isinstance(annotations, dict) else {}, labels if isinstance(labels, dict) else {})

"""Keys of cached objects."""

from collections.abc import Mapping
from sys import intern
from typing import Any, NamedTuple

from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.stored_pod import StoredPod

# The name in the cache of pods that are not bound.
PENDING_PODS = "Pod, pending"


class Key(NamedTuple):
    """The namespace and name of an object; the namespace of cluster-scoped objects is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(kind: str, content: Mapping[str, Any]) -> Key:
    """Return the key of a raw API object."""
    if isinstance(content, StoredPod):
        return Key(intern(content.namespace), content.metadata.name or "")
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping):
        metadata = {}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if kind in ("Pod", PENDING_PODS):
        namespace = namespace or DEFAULT_NAMESPACE
    return Key(intern(namespace) if isinstance(namespace, str) else "", name if isinstance(name, str) else "")

"""Keys of cached objects."""

from collections.abc import Mapping
from sys import intern
from typing import Any, NamedTuple

from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.stored_pod import StoredPod


class Key(NamedTuple):
    """The namespace and name of an object. The namespace of cluster-scoped objects is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(kind: str, content: Mapping[str, Any]) -> Key:
    """Return the key of a raw API object."""
    if isinstance(content, StoredPod):
        return Key(intern(content.namespace), content.view.metadata.name or "")
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping):
        metadata = {}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if kind == "Pod":
        namespace = namespace or DEFAULT_NAMESPACE
    return Key(intern(namespace) if isinstance(namespace, str) else "", name if isinstance(name, str) else "")

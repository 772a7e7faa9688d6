"""Keys of cached objects."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.documents import field
from webhook.kube.wellknown import DEFAULT_NAMESPACE

# The name in the cache of pending pods with a nominated node.
NOMINATED_PODS = "Pod, nominated"


class Key(NamedTuple):
    """The namespace and name of an object; the namespace of cluster-scoped objects is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(kind: str, content: Mapping[str, Any]) -> Key:
    """Return the key of a raw API object."""
    name, namespace = field(content, "metadata", "name"), field(content, "metadata", "namespace")
    if kind in ("Pod", NOMINATED_PODS):
        namespace = namespace or DEFAULT_NAMESPACE
    return Key(namespace if isinstance(namespace, str) else "", name if isinstance(name, str) else "")

"""Objects by name."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.documents import field
from webhook.kube.wellknown import DEFAULT_NAMESPACE

# What the cache calls the pods that wait for the node that they are nominated to.
NOMINATED_PODS = "Pod, nominated"


class Key(NamedTuple):
    """An object among those of its kind; the namespace of nodes and namespaces is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(kind: str, content: Mapping[str, Any]) -> Key:
    """The key of a raw object of the API."""
    name, namespace = field(content, "metadata", "name"), field(content, "metadata", "namespace")
    if kind in ("Pod", NOMINATED_PODS):
        namespace = namespace or DEFAULT_NAMESPACE
    return Key(namespace if isinstance(namespace, str) else "", name if isinstance(name, str) else "")

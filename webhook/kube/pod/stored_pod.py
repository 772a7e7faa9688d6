"""A pod from the API server. Only the fields that are read are decoded."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Raw, Struct
from msgspec.json import Decoder

from webhook.documents.documents import field
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.pod_status import NO_STATUS
from webhook.kube.pod.pod_view import NOT_A_POD, PodView


class _Event(Struct, frozen=True, gc=False):
    type: str
    object: PodView


_EVENTS: Final = Decoder(_Event)
_PODS: Final = Decoder(PodView)


class StoredPod(Mapping[str, Any]):
    """A well-formed pod with its `view`. As a mapping, it is the raw API object, which is decoded on first use."""

    __slots__ = ("_content", "_json", "_place", "namespace", "node_name", "phase", "view")

    def __init__(
        self, view: PodView, json: bytes | Raw = b"", place: str = "", content: Mapping[str, Any] | None = None
    ) -> None:
        """Create the pod from its `content`, or from `json`, which contains it at `place`."""
        self._json, self._place, self._content = json, place, content
        self.view = view
        self.namespace = view.metadata.namespace or DEFAULT_NAMESPACE
        self.phase = (view.status or NO_STATUS).phase or ""
        self.node_name = view.spec.node_name or ""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "StoredPod | None":
        """Return the pod with `content`, a raw API object, or None if it is malformed."""
        if isinstance(content, cls):
            return content
        view = PodView.of(content)
        return None if view is None else cls(view, content=content)

    @classmethod
    def in_list(cls, item: Raw) -> "StoredPod":
        """Return an item of a list of pods.

        Raises:
            ValidationError: the pod is malformed.
        """
        return cls(_PODS.decode(item), item)

    @classmethod
    def in_event(cls, event: bytes) -> "tuple[str, StoredPod] | None":
        """Return the type and the pod of a watch event, or None if the event is malformed or not about a pod."""
        try:
            found = _EVENTS.decode(event)
            return found.type, cls(found.object, event, "object")
        except NOT_A_POD:
            return None

    @property
    def identity(self) -> PodIdentity:
        """Return the identity of the pod."""
        return PodIdentity.of_view(self.view, self.namespace)

    def __getitem__(self, key: str) -> Any:
        return self._decoded[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded)

    def __len__(self) -> int:
        return len(self._decoded)

    @property
    def _decoded(self) -> Mapping[str, Any]:
        if self._content is None:
            content = orjson.loads(bytes(self._json))
            self._content = content[self._place] if self._place else content
        return self._content


class Binding(NamedTuple):
    """A bound pod: its identity, its node, and its creationTimestamp, or empty if it has none."""

    identity: PodIdentity
    node: str
    created: str

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "Binding":
        """Return the binding of `pod`, a raw API object. A StoredPod is read fastest."""
        if isinstance(pod, StoredPod):
            return cls(pod.identity, pod.node_name, pod.view.metadata.creation_timestamp or "")
        node, created = field(pod, "spec", "nodeName"), field(pod, "metadata", "creationTimestamp")
        return cls(PodIdentity.of(pod), str(node), str(created))


def node_and_phase(pod: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the node and the phase of `pod`, a raw API object. They can have any type if the pod is malformed."""
    if isinstance(pod, StoredPod):
        return pod.node_name, pod.phase
    return field(pod, "spec", "nodeName"), field(pod, "status", "phase")

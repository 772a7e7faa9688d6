"""A pod from the API server. Only the fields that are read are decoded."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson
from msgspec import DecodeError as JsonError
from msgspec import Raw, Struct, ValidationError
from msgspec.json import Decoder

from webhook.documents.documents import field
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.raw_pod import NO_RAW_VOLUMES, RawPod, RawVolumes, controller_uid

NULL: Final = b"null"


class _Event(Struct, frozen=True, gc=False):
    type: str
    object: RawPod


_EVENTS: Final = Decoder(_Event)
_PODS: Final = Decoder(RawPod)
_FIELDS: Final = Decoder(dict[str, Raw] | None)
_TEXTS: Final = Decoder(str | None)
_INVALID = (JsonError, ValidationError, UnicodeError, RecursionError)


class StoredPod(Mapping[str, Any]):
    """A pod whose metadata, spec and status are objects, and whose names are texts.

    `metadata`, `spec` and `status` have its fields as JSON. As a mapping, it is the raw API object, which is decoded on
    first use.
    """

    __slots__ = (
        "_content",
        "_json",
        "_place",
        "metadata",
        "namespace",
        "node_name",
        "phase",
        "spec",
        "status",
        "volumes",
    )

    def __init__(
        self, pod: RawPod, json: bytes | Raw = b"", place: str = "", content: Mapping[str, Any] | None = None
    ) -> None:
        """Create the pod with the parts `pod`, from its `content` or from `json`, which has it at `place`.

        Raises:
            ValidationError: a part has the wrong type.
        """
        metadata, spec = pod.metadata, pod.spec
        self._json, self._place, self._content = json, place, content
        self.metadata, self.spec = metadata, spec
        self.namespace = metadata.namespace or DEFAULT_NAMESPACE
        self.status = (_FIELDS.decode(pod.status) if pod.status else None) or {}
        self.phase = (_TEXTS.decode(self.status["phase"]) if "phase" in self.status else None) or ""
        self.node_name = (_TEXTS.decode(spec["nodeName"]) if "nodeName" in spec else None) or ""
        self.volumes = RawVolumes.of(spec["volumes"]) if "volumes" in spec else NO_RAW_VOLUMES

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "StoredPod | None":
        """Return the pod with `content`, a raw API object; None if it is malformed."""
        if isinstance(content, cls):
            return content
        try:
            return cls(_PODS.decode(orjson.dumps(content)), content=content)
        except (*_INVALID, orjson.JSONEncodeError):
            return None

    @classmethod
    def in_list(cls, item: Raw) -> "StoredPod":
        """Return an item of a list of pods.

        Raises:
            ValidationError: it is malformed.
        """
        return cls(_PODS.decode(item), item)

    @classmethod
    def in_event(cls, event: bytes) -> "tuple[str, StoredPod] | None":
        """Return the type and the pod of an event of a watch; None if it is none of a pod, or malformed."""
        try:
            found = _EVENTS.decode(event)
            return found.type, cls(found.object, event, "object")
        except _INVALID:
            return None

    @property
    def identity(self) -> PodIdentity:
        """Return what identifies the pod."""
        metadata = self.metadata
        controller = controller_uid(metadata.owner_references)
        texts = metadata.name or "", metadata.generate_name or "", controller, self.volumes.token
        return PodIdentity.of_texts(self.namespace, *texts)

    @property
    def is_terminating(self) -> bool:
        """Return whether the pod is being deleted."""
        deleted = self.metadata.deletion_timestamp
        return bool(deleted) and bytes(deleted) != NULL

    def has_annotation(self, name: str) -> bool:
        """Return true if the pod certainly has the annotation `name`."""
        # A quotation mark within a text has a backslash before it.
        return b'"%b":' % name.encode() in bytes(self.metadata.annotations)

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
    """A bound pod: what identifies it, its node, and its creationTimestamp, empty without one."""

    identity: PodIdentity
    node: str
    created: str

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "Binding":
        """Return the binding of `pod`, a raw API object; a StoredPod is read fastest."""
        if isinstance(pod, StoredPod):
            return cls(pod.identity, pod.node_name, pod.metadata.creation_timestamp or "")
        node, created = field(pod, "spec", "nodeName"), field(pod, "metadata", "creationTimestamp")
        return cls(PodIdentity.of(pod), str(node), str(created))


def node_and_phase(pod: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the node and the phase of `pod`, a raw API object, of any type if it is malformed."""
    if isinstance(pod, StoredPod):
        return pod.node_name, pod.phase
    return field(pod, "spec", "nodeName"), field(pod, "status", "phase")

"""The fields of a new pod that decisions depend on, decoded from the bytes of its AdmissionReview."""

from array import array
from collections.abc import Iterable
from typing import Any, Final

from msgspec import DecodeError as JsonError
from msgspec import Struct, ValidationError
from msgspec.json import Decoder, decode

from webhook.kube.names import ADMISSION_API_VERSION
from webhook.kube.pod.raw_pod import NO_RAW_VOLUMES, RawContainer, RawPod, RawVolumes, controller_uid

_OWN_PARTS: Final = frozenset(("containers", "initContainers", "volumes"))


class _Kind(Struct, frozen=True, gc=False, rename="camel"):
    group: str = ""
    kind: str = ""


class _Resource(Struct, frozen=True, gc=False, rename="camel"):
    resource: str = ""


class _User(Struct, frozen=True, gc=False, rename="camel"):
    username: str = ""
    groups: tuple[str, ...] = ()


class _Request(Struct, frozen=True, gc=False, rename="camel"):
    uid: str
    operation: str
    object: RawPod
    kind: _Kind
    resource: _Resource
    namespace: str = ""
    name: str = ""
    user_info: _User = _User()
    dry_run: bool = False
    sub_resource: str = ""


class _Review(Struct, frozen=True, gc=False, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_REVIEWS: Final = Decoder(_Review)
_CONTAINERS: Final = Decoder(list[RawContainer])


class PodFields:
    """The fields of the pod in the review `body` of its creation.

    `policy` and `containers` are equal for pods whose evaluation is: of the latter, rules read only the names of
    extended resources. `generate_name` and `pod_name` are empty if they are not set, `token_volume` is the volume of
    the service account token, and `controller` the UID of the controller.
    """

    __slots__ = ("_metadata", "containers", "policy", "request", "token_volume")

    def __init__(self, request: _Request) -> None:
        self.request = request
        metadata, spec = request.object.metadata, request.object.spec
        self._metadata = metadata
        parts: list[Any] = [
            (metadata.namespace or "").encode(),
            metadata.labels,
            metadata.annotations,
            metadata.owner_references,
            metadata.deletion_timestamp,
            metadata.finalizers,
            request.object.status,
        ]
        for key, value in spec.items():
            if key not in _OWN_PARTS:
                parts += (key.encode(), value)
        self.policy = _joined(parts)
        parts = []
        for key in ("containers", "initContainers"):
            found = spec.get(key)
            containers = () if found is None else _CONTAINERS.decode(found)
            parts.append(b"-" if found is None else b"%d" % len(containers))
            for each in containers:
                parts += (
                    each.name,
                    each.image,
                    each.ports,
                    each.resources,
                    each.restart_policy,
                    each.restart_policy_rules,
                )
        volumes = RawVolumes.of(spec["volumes"]) if "volumes" in spec else NO_RAW_VOLUMES
        for volume in volumes.restricting:
            parts.append(b"%d" % len(volume))
            for key, value in volume.items():
                parts += (key.encode(), value)
        self.containers, self.token_volume = _joined(parts), volumes.token

    @classmethod
    def of(cls, body: bytes) -> "PodFields | None":
        """Return the fields of the new pod in the review `body`; None if it is another review, or malformed."""
        try:
            review = _REVIEWS.decode(body)
            request = review.request
            if (
                review.kind == "AdmissionReview"
                and review.api_version == ADMISSION_API_VERSION
                and request.uid
                and request.operation == "CREATE"
                and request.kind.kind == "Pod"
                and not request.kind.group
                and request.resource.resource == "pods"
                and not request.sub_resource
            ):
                return cls(request)
        except (JsonError, ValidationError, UnicodeError, RecursionError):
            pass
        return None

    @property
    def namespace(self) -> str:
        """Return the namespace that the pod names; empty if it names none."""
        return self._metadata.namespace or ""

    @property
    def name(self) -> str:
        """Return the name of the pod; empty if the API server has not generated it yet."""
        return self._metadata.name or ""

    @property
    def generate_name(self) -> str:
        """Return the beginning of the generated name; empty without one."""
        return self._metadata.generate_name or ""

    @property
    def controller(self) -> str:
        """Return the UID of the controller; empty without one."""
        return controller_uid(self._metadata.owner_references)

    def has_annotation(self, name: str) -> bool:
        """Return whether the pod has the annotation `name`."""
        annotations = decode(self._metadata.annotations) if self._metadata.annotations else None
        return isinstance(annotations, dict) and name in annotations


def _joined(parts: Iterable[Any]) -> bytes:
    """Return `parts` and their lengths, so that other parts give other bytes."""
    lengths = array("I", map(len, parts))
    return b"".join((*parts, lengths.tobytes(), b"%d" % len(lengths)))

"""The identity of a pod between its admission and its first event."""

from collections.abc import Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.documents.parts import items_at, listed, object_at
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.pod.pod_view import PodView

_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 - the prefix of a volume name
# A name has at most 253 characters. Before validation, and as the UID of an owner, a text can be as long as the pod.
_LONGEST_TEXT = 256


class PodIdentity(NamedTuple):
    """The identity of a pod between its admission, when it can lack name and UID, and its first event.

    `token_volume` is the volume of the service account token, whose name is random, or empty if there is none.
    `controller` is the UID of the controller. Texts that are longer than any name are replaced by their hash.
    """

    namespace: str
    name: str
    generate_name: str
    controller: str
    token_volume: str

    @classmethod
    def of(cls, pod: Mapping[str, Any], namespace: str = "") -> "PodIdentity":
        """Return the identity of `pod`, a raw API object; `namespace` is that of the request."""
        metadata = object_at(pod, "metadata")
        controllers = (each for each in listed(metadata, "ownerReferences") if each.get("controller"))
        names = (str(field(each, "name")) for each in items_at(pod, "spec", "volumes"))
        return cls(
            namespace or short_text(metadata.get("namespace")) or DEFAULT_NAMESPACE,
            short_text(metadata.get("name")),
            short_text(metadata.get("generateName")),
            short_text(field(next(iter(controllers), {}), "uid")),
            short_text(next((name for name in names if name.startswith(_TOKEN_VOLUME)), "")),
        )

    @classmethod
    def of_view(cls, view: PodView, namespace: str) -> "PodIdentity":
        """Return the identity of the pod in `view`, whose namespace can be that of the request."""
        metadata = view.metadata
        texts = metadata.name or "", metadata.generate_name or "", view.controller, view.token_volume
        return cls(namespace, *(texts if max(map(len, texts)) <= _LONGEST_TEXT else map(short_text, texts)))

    @property
    def keys(self) -> Sequence[Hashable]:
        """Return the keys of the pod, the most reliable first; only `token_volume` proves that it is the pod."""
        namespace, name, generate_name, controller, token_volume = self
        found: list[Hashable] = [(namespace, "volume", token_volume)] if token_volume else []
        if name:
            found.append((namespace, "name", name))
        found.append((namespace, generate_name, controller))
        return found


def short_text(value: Any) -> str:
    """Return `value` as text, or the hash of a text that is longer than any name."""
    text = value if isinstance(value, str) else str(value or "")
    return text if len(text) <= _LONGEST_TEXT else blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()

"""The pod of an admission request, as far as it identifies the pod.

At admission a pod has no uid, no creation time and, if the API server generates it, no name. Nothing of it is validated
yet: a value that no object can have is left out.
"""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.names import is_dns_subdomain, is_label_value, is_qualified_name

_API_VERSION = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[a-z0-9]{1,63}")
_KIND = re.compile(r"[A-Za-z0-9]{1,63}")
_UID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# The selector of a lookup is a part of a URL; the labels of a template distinguish its pods long before that.
_MOST_LABELS = 8
# A user decides how many labels and owners there are.
_MOST_READ = 64


class ObjectReference(NamedTuple):
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Subject(NamedTuple):
    """A pod at admission, or the common part of several pods of one owner.

    `name` is empty if the API server generates it from `generate_name`, or if the pods have different names.
    """

    namespace: str
    name: str
    generate_name: str
    controller: ObjectReference | None
    labels: frozenset[tuple[str, str]]

    @property
    def identity(self) -> str:
        """Return the text that pods of one owner share; a pod without an owner has its name.

        Pods of another namespace can name the same owner, because nothing is verified.
        """
        return f"{self.namespace}/{self.controller.uid if self.controller else self.name or self.generate_name}"

    @property
    def source(self) -> str:
        """Return the text by which Events are limited: the owner, or all pods of the namespace without one."""
        return f"{self.namespace}/{self.controller.uid if self.controller else ''}"

    def common_with(self, other: "Subject") -> "Subject":
        """Return what this pod has in common with `other`, which has the same identity."""
        return self._replace(
            name=self.name if self.name == other.name else "",
            generate_name=self.generate_name if self.generate_name == other.generate_name else "",
            labels=self.labels & other.labels,
        )


def subject_of(request: AdmissionRequest) -> Subject:
    """Return the subject of the pod in `request`."""
    metadata = field(request.object or {}, "metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return Subject(
        request.namespace,
        _name(metadata.get("name")),
        _prefix(metadata.get("generateName")),
        controller_of(metadata, request.namespace),
        frozenset(_labels(metadata.get("labels"))),
    )


def controller_of(metadata: Mapping[str, Any], namespace: str) -> ObjectReference | None:
    """Return the owner in `namespace` that controls the object with this `metadata`."""
    owners = metadata.get("ownerReferences")
    read = owners[:_MOST_READ] if isinstance(owners, list) else []
    owner = next((each for each in read if field(each, "controller") is True), None)
    if owner is None:
        return None
    api_version, kind, uid = (str(owner.get(key) or "") for key in ("apiVersion", "kind", "uid"))
    name = _name(owner.get("name"))
    is_valid = _API_VERSION.fullmatch(api_version) and _KIND.fullmatch(kind) and _UID.fullmatch(uid)
    return ObjectReference(api_version, kind, namespace, name, uid) if is_valid and name else None


def _name(value: Any) -> str:
    return value if isinstance(value, str) and is_dns_subdomain(value) else ""


def _prefix(value: Any) -> str:
    return value if isinstance(value, str) and is_dns_subdomain(f"{value}x") else ""


def _labels(labels: Any) -> list[tuple[str, str]]:
    given = sorted(islice(labels.items(), _MOST_READ)) if isinstance(labels, Mapping) else []
    valid = [
        (key, value)
        for key, value in given
        if isinstance(value, str) and is_qualified_name(key) and is_label_value(value)
    ]
    return valid[:_MOST_LABELS]

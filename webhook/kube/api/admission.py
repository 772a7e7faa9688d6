"""AdmissionReview v1: request and response of the API server, as bytes.

Source: k8s.io/api/admission/v1/types.go, k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go
"""

from dataclasses import dataclass, replace

import orjson
from msgspec import Struct
from msgspec.json import Decoder

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput, invalid, required, unsupported
from webhook.documents.json_text import read_body
from webhook.kube.names import ADMISSION_API_VERSION, DEFAULT_NAMESPACE
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.pod_view import NOT_A_POD, PodView
from webhook.kube.reader import Reader

_USER = b',"userInfo":'
_BEGINNING_BYTES = 16 * 1024
# That of a DNS label, as every namespace is. What is kept by namespace relies on it.
_LONGEST_NAMESPACE = 63


class _Kind(Struct, frozen=True, gc=False):
    group: str = ""
    kind: str = ""


class _Resource(Struct, frozen=True, gc=False):
    resource: str = ""


class _User(Struct, frozen=True, gc=False):
    username: str = ""
    groups: tuple[str, ...] = ()


class _Request(Struct, frozen=True, gc=False, rename="camel"):
    uid: str
    operation: str
    object: PodView
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


_REVIEWS = Decoder(_Review)


@dataclass(slots=True, eq=False)
class AdmissionRequest:
    """One request, by default to create a pod.

    `content` is the pod or another object as a raw dict, or None if the operation has no object. `old_object` is the
    stored object of an UPDATE. `group` is the API group of the kind, or empty for the core group. `groups` are the
    groups of the user. `view` is the view of a new pod, or None if it is malformed. A request from a review has a
    `view` instead of `content` for a new pod.
    """

    uid: str = ""
    operation: str = "CREATE"
    kind: str = "Pod"
    resource: str = "pods"
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    dry_run: bool = False
    content: JsonObject | None = None
    group: str = ""
    old_object: JsonObject | None = None
    groups: tuple[str, ...] = ()
    view: PodView | None = None
    _template: bytes | None = None
    _identity: PodIdentity | None = None

    @property
    def template(self) -> bytes | None:
        """Return the fields of the new pod that are read, as JSON (`PodView.created`), or None for a malformed pod."""
        if self._template is None:
            if self.view is None and self.content is not None:
                self.view = PodView.of(self.content)
            self._template = None if self.view is None else self.view.created()
        return self._template

    @property
    def object(self) -> JsonObject | None:
        """Return the pod (a new one with only its view's fields) or other object as a raw dict, or None.

        Raises:
            InvalidInput: the review has text that is not Unicode.
        """
        if self.content is None and self.view is not None:
            # The report that it cannot be read sees an empty object.
            self.content, metadata = {}, self.view.metadata
            pod = read_body(self.template or b"")
            names = {"name": metadata.name, "generateName": metadata.generate_name}
            pod["metadata"] |= {key: name for key, name in names.items() if name is not None}
            self.content = pod
        return self.content

    @property
    def identity(self) -> PodIdentity:
        """Return the identity of the pod of the request."""
        if self._identity is None:
            if self.view is None:
                self._identity = PodIdentity.of(self.content or {}, self.namespace)
            else:
                namespace = self.namespace or self.view.metadata.namespace or DEFAULT_NAMESPACE
                self._identity = PodIdentity.of_view(self.view, namespace)
        return self._identity

    def has_annotation(self, name: str) -> bool:
        """Return whether the object has the annotation `name`."""
        if self.view is not None:
            return self.view.has_annotation(name)
        return name in (field(self.content or {}, "metadata", "annotations") or ())

    def with_object(self, content: JsonObject) -> "AdmissionRequest":
        """Return the same request for another object."""
        return replace(self, content=content, view=None, _template=None, _identity=None)


def pod_request(
    pod: JsonObject, namespace: str, *, name: str = "", user: str = "", groups: tuple[str, ...] = ()
) -> AdmissionRequest:
    """Return the request to create `pod` as a dry run, as a server would get it."""
    return AdmissionRequest(namespace=namespace, name=name, user=user, dry_run=True, content=pod, groups=groups)


def parse_review(body: bytes) -> AdmissionRequest:
    """Return the request in an AdmissionReview.

    Raises:
        InvalidInput: `body` is not JSON or not an AdmissionReview v1, or its request has no uid, no object or a
            namespace that is too long.
    """
    if (request := _new_pod(body)) is not None:
        return request
    review = read_body(body)
    if not isinstance(review, dict):
        raise InvalidInput([invalid("body", review, "must be an AdmissionReview")])
    if review.get("kind") != "AdmissionReview":
        raise InvalidInput([unsupported("kind", review.get("kind"), ["AdmissionReview"])])
    if review.get("apiVersion") != ADMISSION_API_VERSION:
        raise InvalidInput([unsupported("apiVersion", review.get("apiVersion"), [ADMISSION_API_VERSION])])
    request = review.get("request")
    if not isinstance(request, dict):
        raise InvalidInput([required("request", "an AdmissionReview must contain a request")])
    return _request(Reader(request))


def _new_pod(body: bytes) -> AdmissionRequest | None:
    """Return the request in a review of a new pod, or None if the review is malformed or not about a new pod."""
    try:
        review = _REVIEWS.decode(body)
    except NOT_A_POD:
        return None
    request = review.request
    if (
        (review.kind, review.api_version) != ("AdmissionReview", ADMISSION_API_VERSION)
        or (request.operation, request.sub_resource) != ("CREATE", "")
        or (request.kind.group, request.kind.kind, request.resource.resource) != ("", "Pod", "pods")
        or not request.uid
    ):
        return None
    metadata = request.object.metadata
    namespace = request.namespace or metadata.namespace or ""
    if len(namespace) > _LONGEST_NAMESPACE:
        raise _too_long(namespace)
    return AdmissionRequest(
        uid=request.uid,
        namespace=namespace,
        name=request.name or metadata.name or metadata.generate_name or "",
        user=request.user_info.username,
        dry_run=request.dry_run,
        groups=request.user_info.groups,
        view=request.object,
    )


def parse_beginning(body: bytes) -> AdmissionRequest | None:
    """Return the request, without user and object, from a body that may be cut off, or None if it cannot be read.

    API servers write uid, kind, namespace and operation before the user. Quotes in strings are escaped, so the bytes of
    a key only occur as a key.
    Source: k8s.io/api/admission/v1/types.go, AdmissionRequest
    """
    beginning, is_there, _ = body[:_BEGINNING_BYTES].partition(_USER)
    if not is_there:
        return None
    try:
        review = orjson.loads(beginning + b"}}")
    except orjson.JSONDecodeError:
        return None
    request = Reader(review).object("request")
    if review.get("kind") != "AdmissionReview" or review.get("apiVersion") != ADMISSION_API_VERSION:
        return None
    if not request.text("uid") or len(request.text("namespace")) > _LONGEST_NAMESPACE:
        return None
    return _read(request, request.text("operation") or "CREATE", None)


def _request(request: Reader) -> AdmissionRequest:
    if not request.text("uid"):
        raise InvalidInput([required("request.uid", "must be text; the response repeats it")])
    operation, content = request.text("operation") or "CREATE", request.raw.get("object")
    if content is None and operation in ("CREATE", "UPDATE"):
        raise InvalidInput([required("request.object", f"must be set for {operation}")])
    if content is not None and not isinstance(content, dict):
        raise InvalidInput([invalid("request.object", content, "must be an object")])
    return _read(request, operation, content)


def _read(request: Reader, operation: str, content: JsonObject | None) -> AdmissionRequest:
    """Return the request. A field of a wrong type counts as unset."""
    metadata, user, kind = Reader(content or {}).object("metadata"), request.object("userInfo"), request.object("kind")
    groups = user.raw.get("groups")
    namespace = request.text("namespace") or metadata.text("namespace")
    if len(namespace) > _LONGEST_NAMESPACE:
        raise _too_long(namespace)
    return AdmissionRequest(
        uid=request.text("uid"),
        operation=operation,
        kind=kind.text("kind"),
        group=kind.text("group"),
        resource=request.object("resource").text("resource"),
        subresource=request.text("subResource"),
        namespace=namespace,
        # A pod from a template has no name yet; its generateName identifies the owner.
        name=request.text("name") or metadata.text("name") or metadata.text("generateName"),
        user=user.text("username"),
        dry_run=request.raw.get("dryRun") is True,
        content=content,
        old_object=dict(request.object("oldObject").raw) or None,
        groups=tuple(each for each in groups if isinstance(each, str)) if isinstance(groups, list) else (),
    )


def _too_long(namespace: str) -> InvalidInput:
    most = f"must be the name of a namespace, at most {_LONGEST_NAMESPACE} characters"
    return InvalidInput([invalid("request.namespace", namespace[:60], most)])

"""Read and write the Secret of the certificates, as an object. Pure: objects in, objects out.

The Secret contains the complete state of the controller, so that any other controller can replace it:

    ca.crt    every CA that clients must trust: the one that signs, then older ones
    ca.key    the key of the newest CA; the keys of older ones are not kept, and `certs register` keeps none
    tls.crt   the server certificate, and tls.key its key: the only files that the webhook mounts

An annotation records the failurePolicy and the selectors of the webhook configuration if they differ from the manifest.
If the configuration is deleted, the new one gets these values.
"""

import base64

import orjson
from cryptography.x509.oid import NameOID

from certs import pem
from certs.inspection import FILES, Artifacts
from certs.pki import CA_NAME_PREFIX
from certs.plan import Request
from certs.registration import FIELD_MANAGER, Target
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput, forbidden

OWNER_LABEL = "app.kubernetes.io/managed-by"
OWNER = "placement-webhook-certs-controller"
REQUEST_ANNOTATION = "certs.maip.mxsf.io/rotate"
SETTINGS_ANNOTATION = "certs.maip.mxsf.io/configuration"
_CERT_MANAGER = "cert-manager.io/"
_LABELS = {"app.kubernetes.io/name": "placement-webhook", "app.kubernetes.io/part-of": "placement-webhook"}
_REMEDY = (
    f"delete it, name another one with --secret, or set the label {OWNER_LABEL}={OWNER} on it if the controller may "
    "replace its content"
)


def artifacts_in(secret: JsonObject | None) -> Artifacts:
    """Return the content of the Secret. None stands for a file that is missing or not base64."""
    return Artifacts(*(_content(secret, key) for key in FILES))


def _content(secret: JsonObject | None, key: str) -> bytes | None:
    try:
        return base64.b64decode((field(secret or {}, "data") or {})[key], validate=True) or None
    except (KeyError, TypeError, ValueError):
        return None


def is_owned(secret: JsonObject) -> bool:
    """Return whether the controller maintains this Secret."""
    return (field(secret, "metadata", "labels") or {}).get(OWNER_LABEL) == OWNER


def check_owned(secret: JsonObject, place: str) -> None:
    """Reject a Secret that the controller must not touch.

    The controller may change its own Secrets, and take over a Secret that `certs register` has issued and written.

    Raises:
        InvalidInput: another tool or person has written the Secret.
    """
    annotations = field(secret, "metadata", "annotations") or {}
    if any(key.startswith(_CERT_MANAGER) for key in annotations):
        raise InvalidInput([forbidden(place, "cert-manager writes this Secret; run no certs controller beside it")])
    if is_owned(secret):
        return
    managers = field(secret, "metadata", "managedFields") or ()
    if not any(each.get("manager") == FIELD_MANAGER and each.get("operation") == "Apply" for each in managers):
        raise InvalidInput([forbidden(place, f"is not of this controller; {_REMEDY}")])
    held = artifacts_in(secret)
    for certificate in pem.readable_certificates((held.ca_certificate or b"") + (held.certificate or b"")):
        names = certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
        if not any(str(name.value).startswith(CA_NAME_PREFIX) for name in names):
            issuer = certificate.issuer.rfc4514_string()
            raise InvalidInput([forbidden(place, f"has a certificate that {issuer} has issued; {_REMEDY}")])


def requested_rotation(secret: JsonObject | None) -> Request | None:
    """Return the rotation that the annotation requests, or None if it requests none or its value is invalid."""
    value = (field(secret or {}, "metadata", "annotations") or {}).get(REQUEST_ANNOTATION)
    return Request(value) if value in set(Request) else None


def recorded_settings(secret: JsonObject | None) -> JsonObject:
    """Return the recorded fields of the webhook configuration by webhook, or none if they cannot be read."""
    text = (field(secret or {}, "metadata", "annotations") or {}).get(SETTINGS_ANNOTATION)
    try:
        found = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return {name: each for name, each in found.items() if isinstance(each, dict)} if isinstance(found, dict) else {}


def settings_patch(secret: JsonObject, settings: JsonObject) -> JsonObject:
    """Return the merge patch that records `settings` in the Secret."""
    return _annotated(secret, SETTINGS_ANNOTATION, orjson.dumps(settings).decode() if settings else None)


def version_of(secret: JsonObject | None) -> str:
    """Return a text that changes with each write to the Secret."""
    metadata = field(secret or {}, "metadata") or {}
    return f"{metadata.get('uid', '')}/{metadata.get('resourceVersion', '')}"


def new_secret(target: Target, artifacts: Artifacts, *, is_owned: bool = True) -> JsonObject:
    """Return the Secret to apply: that of the controller, or that of `certs register` if `is_owned` is false.

    The Secret of the controller has the type Opaque, because it has no `tls.crt` until API servers trust its CA, and
    the type kubernetes.io/tls requires `tls.crt`.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": target.secret,
            "namespace": target.namespace,
            "labels": _LABELS | ({OWNER_LABEL: OWNER} if is_owned else {}),
        },
        "type": "Opaque" if is_owned else "kubernetes.io/tls",
        "data": _data(artifacts),
    }


def secret_patch(secret: JsonObject, artifacts: Artifacts, *, fulfilled: bool) -> JsonObject:
    """Return the merge patch (RFC 7386) that writes `artifacts` to the Secret. `fulfilled` also removes the request.

    It includes the resourceVersion that was read, so that a concurrent change leads to a 409 and is not overwritten.
    """
    labels = _LABELS | {OWNER_LABEL: OWNER}
    metadata: JsonObject = {"resourceVersion": secret["metadata"]["resourceVersion"], "labels": labels}
    if fulfilled:
        metadata["annotations"] = {REQUEST_ANNOTATION: None}
    return {"metadata": metadata, "data": _data(artifacts)}


def request_patch(secret: JsonObject, request: Request) -> JsonObject:
    """Return the merge patch that requests a rotation."""
    return _annotated(secret, REQUEST_ANNOTATION, request)


def _annotated(secret: JsonObject, annotation: str, value: str | None) -> JsonObject:
    version = secret["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version, "annotations": {annotation: value}}}


def _data(artifacts: Artifacts) -> JsonObject:
    contents = zip(FILES, artifacts, strict=True)
    return {key: base64.b64encode(content).decode() for key, content in contents if content is not None}

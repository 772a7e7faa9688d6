"""AdmissionReview v1: the response, as bytes.

Source: k8s.io/api/admission/v1/types.go, k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from webhook.documents.documents import JsonObject
from webhook.documents.text import printable, printable_lines
from webhook.kube.names import ADMISSION_API_VERSION

# If all warnings exceed 4 KiB, the API server cuts each at 256 characters and drops those that still exceed 4 KiB
# (see k8s.io/apiserver/pkg/endpoints/filters/warning.go).
WARNING_BYTES = 256
WARNINGS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Denial:
    """The status of a denied request: an HTTP status code with its reason, and the message for the user."""

    code: int
    reason: str
    message: str


class ReviewAnswer(NamedTuple):
    """A response without the fields of a single request, so that many requests can share it.

    `content` is the JSON of the members from `allowed` on, without auditAnnotations. `patch` is the JSON of the
    operations.
    """

    content: bytes
    patch: bytes
    audit_annotations: Mapping[str, str]

    @classmethod
    def of(
        cls,
        patch: bytes = b"",
        warnings: Sequence[str] = (),
        audit_annotations: Mapping[str, str] | None = None,
        denial: Denial | None = None,
    ) -> "ReviewAnswer":
        """Return a response with `patch`, the JSON of operations. It allows the request unless `denial` is set."""
        response: JsonObject = {"allowed": denial is None}
        if denial is not None:
            patch = b""
            response["status"] = {
                "status": "Failure",
                "code": denial.code,
                "reason": denial.reason,
                "message": printable_lines(denial.message),
            }
        elif patch:
            response["patchType"] = "JSONPatch"
            # A fragment is written unchanged, without another search for characters to escape.
            response["patch"] = orjson.Fragment(b'"%b"' % base64.b64encode(patch))
        if warnings:
            response["warnings"] = fit_warnings(warnings)
        return cls(orjson.dumps(response)[1:-1], patch, audit_annotations or {})

    def to(self, uid: str, decision: str) -> bytes:
        """Return the response to the request `uid`; its auditAnnotations begin with `decision`."""
        annotations = orjson.dumps({"decision": decision, **self.audit_annotations})
        return _ANSWER % (orjson.dumps(uid), self.content, annotations)


_ANSWER = (
    b'{"apiVersion":"%b","kind":"AdmissionReview","response":{"uid":%%b,%%b,"auditAnnotations":%%b}}'
    % ADMISSION_API_VERSION.encode()
)


def fit_warnings(warnings: Sequence[str]) -> list[str]:
    """Return `warnings` within the API server's limits: distinct, each one line of 256 bytes, 4 KiB in total.

    The API server drops a warning with a control character, and kubectl prints warnings unchanged.
    Source: k8s.io/apimachinery/pkg/util/net/http.go, NewWarningHeader
    """
    fitting: list[str] = []
    left = WARNINGS_BYTES
    for text in dict.fromkeys(_cut(_one_line(warning), WARNING_BYTES) for warning in warnings):
        left -= len(text.encode())
        if left < 0:
            break
        fitting.append(text)
    return fitting


def _one_line(warning: str) -> str:
    # A character takes at least one byte, so later characters are never shown.
    return printable(" ".join(warning[: 2 * WARNING_BYTES].split()))


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    return text if len(data) <= limit else data[: limit - 3].decode("utf-8", "ignore") + "…"

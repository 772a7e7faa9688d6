"""The pod of one request, as its view reads it."""

from collections.abc import Mapping
from typing import Any

import orjson

from webhook.documents.json_text import read_body
from webhook.kube.api.admission import AdmissionRequest

JsonObject = dict[str, Any]


class PodContent:
    """The pod of one request in `namespace`, which may be empty, with that one's annotations as `defaults`."""

    __slots__ = ("_pod", "defaults", "namespace", "request")

    def __init__(self, request: AdmissionRequest, defaults: Mapping[str, str]) -> None:
        self.request = request
        self.namespace = request.namespace
        self.defaults = defaults
        self._pod: JsonObject | None = None

    @property
    def data(self) -> bytes | None:
        """Return all that the verdict depends on, which pods of a template share, or None for a malformed pod."""
        template = self.request.template
        return template if template is None or not self.defaults else _with_defaults(template, self.defaults)

    @property
    def data_without_containers(self) -> bytes | None:
        """Return `data` without the containers and volumes of the pod."""
        if self.request.template is None or self.request.view is None:
            return None
        return _with_defaults(self.request.view.created_without_containers(), self.defaults)

    @property
    def pod(self) -> JsonObject:
        """Return the pod, a raw API object with only the fields of its view, or with all if it is malformed.

        Raises:
            InvalidInput: it has text that is not Unicode.
        """
        if self._pod is None:
            template = self.request.template
            self._pod = (self.request.object or {}) if template is None else read_body(template)
        return self._pod

    def with_annotations(self, annotations: Mapping[str, str]) -> "PodContent":
        """Return the content of the same pod with only these annotations."""
        pod = self.request.object or {}
        pod = {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
        return PodContent(self.request.with_object(pod), self.defaults)


def _with_defaults(data: bytes, defaults: Mapping[str, str]) -> bytes:
    return b"%b %b" % (data, orjson.dumps(dict(defaults))) if defaults else data

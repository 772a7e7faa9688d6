"""The content of one pod that the policy and the scheduler read, serialised once."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from webhook.kube.admission import AdmissionRequest

JsonObject = dict[str, Any]

# Neither rules nor scheduler read these, and they differ between the pods of one template.
_UNREAD_METADATA = {"name", "generateName", "uid", "creationTimestamp", "managedFields"}
_READ_OF_CONTAINER = ("image", "ports", "resources", "restartPolicy", "restartPolicyRules")
_CONTAINERS = ("containers", "initContainers")
_PLAIN_VOLUMES = {"name", "configMap", "downwardAPI", "emptyDir", "projected", "secret"}


class PodContent(NamedTuple):
    """The pod of one request, and the annotations of its namespace behind it.

    `data` is JSON of all that the verdict depends on, so pods of one template have equal `data`; None for a pod that
    is nested deeper than can be serialised. `namespace` is that of the request; it may be empty.
    """

    namespace: str
    pod: JsonObject
    defaults: Mapping[str, str]
    data: bytes | None

    @classmethod
    def of(cls, request: AdmissionRequest, defaults: Mapping[str, str]) -> "PodContent":
        """Return the content of the pod of `request`; `defaults` are the annotations of its namespace."""
        pod = request.object or {}
        try:
            data = orjson.dumps([fields_read(pod), dict(defaults)])
        except orjson.JSONEncodeError:  # nested deeper than it writes, though not deeper than it reads
            data = None
        return cls(request.namespace, pod, defaults, data)


def fields_read(pod: JsonObject) -> JsonObject:
    """Return the part of `pod` that its evaluation depends on. A field of the wrong type is kept, to be refused."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return pod
    read = {key: value for key, value in spec.items() if key != "volumes"}
    for key in _CONTAINERS:
        containers = spec.get(key)
        if isinstance(containers, list):
            read[key] = [
                {field: each.get(field) for field in _READ_OF_CONTAINER} if isinstance(each, dict) else each
                for each in containers
            ]
    volumes = spec.get("volumes")
    if isinstance(volumes, list):
        # The API server gives each pod a token volume with a name of its own.
        read["volumes"] = [each for each in volumes if not (isinstance(each, dict) and each.keys() <= _PLAIN_VOLUMES)]
    elif volumes is not None:
        read["volumes"] = volumes
    return {"metadata": {key: value for key, value in metadata.items() if key not in _UNREAD_METADATA}, "spec": read}

"""The content of one pod that the policy and the scheduler read, serialised once."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from webhook.cluster.pods.pending_pods import CONTAINER_FIELDS, CONTAINER_LISTS
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.raw_pod import PLAIN_VOLUME_KEYS

JsonObject = dict[str, Any]

# Rules and scheduler do not read these fields, which differ between pods of one template.
_UNREAD_METADATA = {"name", "generateName", "uid", "creationTimestamp", "managedFields"}
# A name of the wrong type is an error.
_NAMES = {"name", "generateName"}
_CONTAINERS_AND_VOLUMES = frozenset((*CONTAINER_LISTS, "volumes"))


class FieldsRead(NamedTuple):
    """The part of a pod that its evaluation depends on.

    `containers` are the containers and volumes, of which the rules read only the names of extended resources; `policy`
    is the rest.
    """

    policy: JsonObject
    containers: JsonObject


class PodContent:
    """The pod of one request, with the annotations of its namespace as `defaults`.

    `policy_data` and `containers_data` are all that the verdict depends on, so pods of one template have equal ones;
    both are None for a pod that is nested too deeply to be serialised. `namespace` is that of the request and may be
    empty.
    """

    __slots__ = ("_pod", "_request", "containers_data", "defaults", "namespace", "policy_data")

    def __init__(
        self,
        namespace: str,
        pod: JsonObject | None,
        defaults: Mapping[str, str],
        policy_data: bytes | None,
        containers_data: bytes | None,
        request: AdmissionRequest | None = None,
    ) -> None:
        """Create the content of `pod`, or, if that is None, of the pod of `request`."""
        self.namespace = namespace
        self._pod = pod
        self._request = request
        self.defaults = defaults
        self.policy_data = policy_data
        self.containers_data = containers_data

    @classmethod
    def of(cls, request: AdmissionRequest, defaults: Mapping[str, str]) -> "PodContent":
        """Return the content of the pod of `request`; `defaults` are the annotations of its namespace."""
        if (fields := request.fields) is not None:
            policy_data = fields.policy
            if defaults:
                policy_data = b"%d %b%b" % (len(policy_data), policy_data, orjson.dumps(dict(defaults)))
            return cls(request.namespace, None, defaults, policy_data, fields.containers, request)
        pod = request.object or {}
        read = fields_read(pod)
        try:
            data = orjson.dumps([read.policy, dict(defaults)]), orjson.dumps(read.containers)
        except orjson.JSONEncodeError:  # orjson parses deeper nesting than it serialises
            return cls(request.namespace, pod, defaults, None, None)
        return cls(request.namespace, pod, defaults, *data)

    @property
    def pod(self) -> JsonObject:
        """Return the pod, a raw API object, which is decoded on first use."""
        if self._pod is None:
            self._pod = (self._request.object if self._request is not None else None) or {}
        return self._pod

    @property
    def identity(self) -> PodIdentity:
        """Return the identity of the pod."""
        if self._request is not None:
            return self._request.identity
        return PodIdentity.of(self.pod, self.namespace)

    @property
    def data(self) -> bytes | None:
        """Return all of the data; None if the pod cannot be serialised."""
        if self.policy_data is None or self.containers_data is None:
            return None
        return self.policy_data + self.containers_data

    def with_annotations(self, annotations: Mapping[str, str]) -> "PodContent":
        """Return the content of the same pod with these annotations alone, without its serialised data."""
        metadata = {**self.pod["metadata"], "annotations": annotations}
        return PodContent(self.namespace, {**self.pod, "metadata": metadata}, self.defaults, None, None)


def fields_read(pod: JsonObject) -> FieldsRead:
    """Return the part of `pod` that its evaluation depends on. A field of the wrong type is kept, to be rejected."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return FieldsRead(pod, {})
    found: JsonObject = {}
    for key in CONTAINER_LISTS:
        containers = spec.get(key)
        if isinstance(containers, list):
            found[key] = [
                {field: each.get(field) for field in CONTAINER_FIELDS} if isinstance(each, dict) else each
                for each in containers
            ]
        elif key in spec:
            found[key] = containers
    volumes = spec.get("volumes")
    if isinstance(volumes, list):
        # The API server adds a token volume with a random name to each pod.
        found["volumes"] = [
            each for each in volumes if not (isinstance(each, dict) and each.keys() <= PLAIN_VOLUME_KEYS)
        ]
    elif volumes is not None:
        found["volumes"] = volumes
    kept = {
        key: value
        for key, value in metadata.items()
        if key not in _UNREAD_METADATA or (key in _NAMES and not isinstance(value, str | None))
    }
    rest = {key: value for key, value in spec.items() if key not in _CONTAINERS_AND_VOLUMES}
    return FieldsRead({"metadata": kept, "spec": rest}, found)

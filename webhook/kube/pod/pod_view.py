"""The fields of a pod that are read, decoded once from its JSON. Other fields are not read.

Policies and schedulers read a pod from the JSON of its view or of a part of the view. This JSON is also the key under
which results for equal pods are cached, so a field that is added here becomes part of every key. Most of a pod is not
decoded, such as `managedFields`, environments and commands.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from msgspec import DecodeError, Raw, Struct, ValidationError
from msgspec.json import Decoder, decode, encode
from msgspec.structs import replace

from webhook.kube.pod.pod_status import MISSING, PodStatus

NULL: Final = b"null"
# The volumes that every pod can have on every node; the API server adds one with a random name.
PLAIN_VOLUME_KEYS: Final = frozenset({"name", "configMap", "downwardAPI", "emptyDir", "projected", "secret"})
NOT_A_POD: Final = (DecodeError, ValidationError, UnicodeError, RecursionError)
_TOKEN_VOLUME: Final = b'"kube-api-access-'
# The fields in which the pods of one template differ, or that change while a pod waits.
_OF_ONE_POD: Final = {
    **dict.fromkeys(("name", "generate_name", "uid", "resource_version", "creation_timestamp")),
    "deletion_timestamp": MISSING,
}
_OF_WAITING: Final = {
    **dict.fromkeys(("phase", "nominated_node_name", "start_time", "container_statuses", "init_container_statuses")),
    "conditions": MISSING,
}
_NO_CONTAINERS: Final = dict.fromkeys(("containers", "init_containers", "volumes"))
# The fields `matchLabelKeys` and `mismatchLabelKeys` of a term make it depend on the labels of the pod.
_LABEL_KEYS: Final = b"abelKeys"

Volume = dict[str, Raw]


class PodMetadata(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The metadata of a pod."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: Raw = MISSING
    labels: Raw = MISSING
    annotations: Raw = MISSING
    owner_references: Raw = MISSING


class Container(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A container of a pod."""

    name: Raw = MISSING
    image: Raw = MISSING
    ports: Raw = MISSING
    resources: Raw = MISSING
    restart_policy: Raw = MISSING
    restart_policy_rules: Raw = MISSING


class PodSpec(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The spec of a pod."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    node_name: str | None = None
    affinity: Raw = MISSING
    host_network: Raw = MISSING
    host_users: Raw = MISSING
    node_selector: Raw = MISSING
    os: Raw = MISSING
    overhead: Raw = MISSING
    preemption_policy: Raw = MISSING
    priority: Raw = MISSING
    priority_class_name: Raw = MISSING
    resource_claims: Raw = MISSING
    resources: Raw = MISSING
    runtime_class_name: Raw = MISSING
    scheduler_name: Raw = MISSING
    scheduling_gates: Raw = MISSING
    scheduling_group: Raw = MISSING
    tolerations: Raw = MISSING
    topology_spread_constraints: Raw = MISSING


class PodView(Struct, frozen=True, gc=False, omit_defaults=True):
    """The fields that are read of a pod whose metadata and spec are objects."""

    metadata: PodMetadata
    spec: PodSpec
    status: PodStatus | None = None

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "PodView | None":
        """Return the view of `pod`, a raw API object, or None if it is malformed or nested too deeply."""
        try:
            return _PODS.decode(orjson.dumps(pod))
        except (*NOT_A_POD, orjson.JSONEncodeError):
            return None

    def created(self) -> bytes:
        """Return the JSON of the fields that are read when the pod is created, without its name.

        The JSON is equal for pods of one template. It has no status, because the API server ignores the status of a new
        pod.
        """
        return encode(self._of_template(None))

    def created_without_containers(self) -> bytes:
        """Return `created` without containers and volumes."""
        return encode(PodView(replace(self.metadata, **_OF_ONE_POD), replace(self.spec, **_NO_CONTAINERS)))

    def pending(self) -> bytes:
        """Return the JSON of the fields that a pending pod of a template shares with others."""
        return encode(self._of_template(self.status and replace(self.status, **_OF_WAITING)))

    def running(self) -> bytes:
        """Return the JSON of the fields that count on a node while the pod is running.

        The JSON is equal for pods of one template. It has no name, node, volumes and states of containers. It has
        labels only if a term of the pod's affinity depends on them.

        Raises:
            ValidationError: the conditions are malformed.
        """
        # `in` would first try to use the word as a number, which takes longer than the search.
        status, has_label_keys = self.status, bytes(self.spec.affinity).find(_LABEL_KEYS) >= 0
        labels = self.metadata.labels if has_label_keys else MISSING
        metadata = PodMetadata(namespace=self.metadata.namespace, labels=labels)
        status = status and status.amounts()
        return encode(PodView(metadata, replace(self.spec, node_name=None, volumes=None), status))

    @property
    def restricting_volumes(self) -> list[Volume]:
        """Return the volumes that can restrict the pod to some nodes."""
        volumes = self.spec.volumes
        return [each for each in volumes if not PLAIN_VOLUME_KEYS.issuperset(each)] if volumes else []

    def _of_template(self, status: PodStatus | None) -> "PodView":
        volumes = self.restricting_volumes if self.spec.volumes else None
        return PodView(replace(self.metadata, **_OF_ONE_POD), replace(self.spec, volumes=volumes or None), status)

    def has_annotation(self, name: str) -> bool:
        """Return whether the pod has the annotation `name`."""
        annotations = self.metadata.annotations
        found = decode(annotations) if name.encode() in bytes(annotations) else None
        return isinstance(found, dict) and name in found

    @property
    def is_terminating(self) -> bool:
        """Return whether the pod is being deleted."""
        deleted = self.metadata.deletion_timestamp
        return bool(deleted) and bytes(deleted) != NULL

    @property
    def controller(self) -> str:
        """Return the UID of the controller, or an empty string if there is none."""
        if self.metadata.owner_references:
            try:
                owners = _OWNERS.decode(self.metadata.owner_references)
            except NOT_A_POD:
                return ""
            for owner in owners or ():
                if owner.controller:
                    return str(owner.uid)
        return ""

    @property
    def token_volume(self) -> str:
        """Return the name of the volume of the service account token, which is random, or "" if there is none."""
        for volume in self.spec.volumes or ():
            if bytes(volume.get("name", b"")).startswith(_TOKEN_VOLUME) and volume.keys() <= PLAIN_VOLUME_KEYS:
                try:
                    return str(decode(volume["name"]))
                except NOT_A_POD:
                    return ""
        return ""


class _Owner(Struct, frozen=True, gc=False):
    uid: str = ""
    controller: bool | None = None


_OWNERS: Final = Decoder(list[_Owner] | None)
_PODS: Final = Decoder(PodView)

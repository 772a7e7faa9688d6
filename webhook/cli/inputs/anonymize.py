"""Anonymize a cluster for sharing: remove fields that placement does not read, and replace names."""

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.cluster.objects.workloads import OWNERS
from webhook.documents.documents import JsonObject, field
from webhook.kube.names import HOSTNAME_LABEL, NAMESPACE_NAME_LABEL

_DEVICES_GROUP = "resource.k8s.io/"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PRIVATE_OF_CONTAINERS = (
    *("env", "envFrom", "command", "args"),
    *("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"),
)
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PRIVATE_OF_SPECS = (
    *("hostAliases", "hostname", "subdomain", "podCIDR", "podCIDRs", "providerID"),
    *("imagePullSecrets", "serviceAccount", "serviceAccountName"),
)
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def without_secrets(content: JsonObject) -> JsonObject:
    """Remove private fields from `content`, a raw API object, in place, and return it.

    These fields are removed: managed fields; env and commands of containers; messages of statuses, and the states of
    containers but for the reason why one waits, which can hold the last output of a container; names, addresses and
    device parameters of specs that placement does not read; the last-applied annotation of `kubectl apply`, which
    repeats them; and the templates of controllers.
    """
    metadata = content.get("metadata") or {}
    metadata.pop("managedFields", None)
    (metadata.get("annotations") or {}).pop(_LAST_APPLIED, None)
    if (content.get("apiVersion"), content.get("kind")) in OWNERS:
        (content.get("spec") or {}).pop("template", None)
    for part in _CONTAINERS:
        for container in field(content, "spec", part) or ():
            for name in _PRIVATE_OF_CONTAINERS:
                container.pop(name, None)
    for name in _PRIVATE_OF_SPECS:
        (content.get("spec") or {}).pop(name, None)
    status = content.get("status") or {}
    for part in (status, *(status.get("conditions") or ())):
        part.pop("message", None)
    for name in _STATUSES:
        for container in status.get(name) or ():
            _drop_states(container)
    if str(content.get("apiVersion")).startswith(_DEVICES_GROUP):
        _drop_device_config(content)
    return content


def _drop_states(status: JsonObject) -> None:
    """Remove the states of a container from its status, but for the reason why it waits."""
    status.pop("lastState", None)
    if reason := field(status.pop("state", None), "waiting", "reason"):
        status["state"] = {"waiting": {"reason": reason}}


def _drop_device_config(content: JsonObject) -> None:
    """Remove the parameters for device drivers, and the status that drivers report for allocated devices."""
    spec, status = content.get("spec") or {}, content.get("status") or {}
    status.pop("devices", None)
    for part in (spec, field(spec, "devices"), field(spec, "spec", "devices"), field(status, "allocation", "devices")):
        if isinstance(part, dict):
            part.pop("config", None)


def with_other_names(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Return `objects` with numbers in place of the names of nodes, namespaces, pods and their owners.

    The numbers follow the order of the names, so that nodes with equal scores are still selected in the same order.
    Labels, taints and image names stay because pods refer to them; labels that repeat a name are replaced. Annotations
    and statuses that placement does not read are removed.
    """
    objects = list(objects)
    names = _Renaming(objects)
    return [names.renamed(each) for each in objects]


class _Renaming:
    def __init__(self, objects: Iterable[JsonObject]) -> None:
        names: dict[str, set[str]] = {"node": set(), "namespace": set(), "pod": set(), "owner": set()}
        for content in objects:
            metadata, kind = content.get("metadata") or {}, str(content.get("kind")).lower()
            if kind in names:
                names[kind].add(str(metadata.get("name")))
            if metadata.get("namespace"):
                names["namespace"].add(str(metadata["namespace"]))
            names["owner"].update(str(owner.get("name")) for owner in metadata.get("ownerReferences") or ())
        self._names = {kind: _numbered(kind, found) for kind, found in names.items()}

    def renamed(self, content: JsonObject) -> JsonObject:
        kind, metadata = str(content.get("kind")).lower(), content.get("metadata") or {}
        shared: JsonObject = {
            "name": self._of(kind, metadata.get("name")),
            "labels": self._labels(metadata.get("labels") or {}),
        }
        if metadata.get("namespace"):
            shared["namespace"] = self._of("namespace", metadata["namespace"])
        if metadata.get("deletionTimestamp"):
            shared["deletionTimestamp"] = metadata["deletionTimestamp"]
        if owners := metadata.get("ownerReferences"):
            shared["ownerReferences"] = [self._owner(owner) for owner in owners]
        if kind == "namespace":
            shared["annotations"] = metadata.get("annotations") or {}
        renamed = {**content, "metadata": shared, "spec": self._values(content.get("spec") or {})}
        if isinstance(renamed["spec"], dict) and renamed["spec"].get("nodeName"):
            renamed["spec"]["nodeName"] = self._of("node", renamed["spec"]["nodeName"])
        status = content.get("status") or {}
        renamed["status"] = {key: status[key] for key in _STATUS if key in status}
        if status.get("nominatedNodeName"):
            renamed["status"]["nominatedNodeName"] = self._of("node", status["nominatedNodeName"])
        return renamed

    def _owner(self, owner: Mapping[str, Any]) -> JsonObject:
        kept = {key: value for key, value in owner.items() if key not in ("uid", "name")}
        return {**kept, "name": self._of("owner", owner.get("name"))}

    def _labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {key: self._of(_KINDS_OF_LABELS.get(key, ""), value) for key, value in labels.items()}

    def _values(self, value: Any, key: str = "") -> Any:
        """Return a part of a spec with the names in selectors replaced."""
        if isinstance(value, dict):
            if isinstance(value.get("key"), str) and isinstance(value.get("values"), list):
                kind = _KINDS_OF_KEYS.get(value["key"])
                return {**value, "values": [self._of(kind, each) for each in value["values"]]} if kind else value
            if key in ("matchLabels", "nodeSelector"):
                return self._labels(value)
            return {name: self._values(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            if key == "namespaces":
                return [self._of("namespace", each) for each in value]
            return [self._values(each, key) for each in value]
        return value

    def _of(self, kind: str, name: Any) -> str:
        return self._names.get(kind, {}).get(str(name), str(name))


_KINDS_OF_LABELS = {HOSTNAME_LABEL: "node", NAMESPACE_NAME_LABEL: "namespace"}
_KINDS_OF_KEYS = {**_KINDS_OF_LABELS, "metadata.name": "node"}
_STATUS = (
    *("phase", "startTime", "capacity", "allocatable", "images", "resources", "allocatedResources"),
    *("containerStatuses", "initContainerStatuses", "conditions"),
)


def _numbered(kind: str, names: Iterable[str]) -> dict[str, str]:
    found = sorted(names)
    width = len(str(len(found)))
    return {name: f"{kind}-{number:0{width}}" for number, name in enumerate(found, start=1)}

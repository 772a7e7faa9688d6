"""Replace the names in a cluster that is shared."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from webhook.documents.documents import JsonObject, field
from webhook.kube.names import HOSTNAME_LABEL
from webhook.kube.pod.gang_key import GANG

# Classes and drivers are the same in many clusters, and policies or other objects name them.
_KEPT_KINDS = frozenset(("StorageClass", "PriorityClass", "RuntimeClass", "DeviceClass", "CSIDriver"))
_KEPT_NAMES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
# The keys of values and lists that are names of objects, and of maps with such values.
_NAMES = frozenset(
    (
        *("name", "namespace", "namespaces", "values", "nodeName", "nominatedNodeName", "node", "nodeID", "pool"),
        *("claimName", "volumeName", "persistentVolumeName", "resourceClaimName", "resourceClaimTemplateName"),
        *("serviceName", "volumeHandle"),
        *("queue", "queueName", "clusterQueue", "cohort", "cohortName", "parent", "parentName", "parentQueue"),
    )
)
_MAPS = frozenset(("labels", "annotations", "matchLabels", "nodeSelector"))
_ADDRESSES = (
    *("addresses", "hostIP", "hostIPs", "podIP", "podIPs", "nodeInfo"),
    *("loadBalancer", "clusterIP", "clusterIPs", "externalIPs"),
)
# Volumes that name objects of no file, and that no scheduler reads.
_FILES = frozenset(("configMap", "secret", "projected", "downwardAPI"))
_GROUPS = (GANG, "group-name", "pod-group", "pod-group-name")
# A name, a number, or a list of these. Other annotations can contain names as parts.
_PLAIN = re.compile(r"[\w.,@=-]{0,253}")


def with_other_names(objects: Sequence[JsonObject]) -> list[JsonObject]:
    """Return `objects`, raw API objects, with other names of objects, owners, namespaces and gangs, also in labels.

    The numbers in the new names follow the order of the old ones, so that nodes with equal scores are still selected in
    the same order. A name stays if it is also the name of a class or a scheduler, or the value of a label or taint of a
    node, because placement would change. Addresses, volumes of ConfigMaps and Secrets, and annotations of objects other
    than namespaces that can contain a name as a part, are removed.
    """
    names = _other_names(objects)
    return [_renamed(each, names) for each in objects]


def _other_names(objects: Iterable[JsonObject]) -> dict[str, str]:
    by_kind: dict[str, set[str]] = {"node": set(), "namespace": set(), "pod": set()}
    kept = set(_KEPT_NAMES)
    for content in objects:
        metadata, kind = content.get("metadata") or {}, str(content.get("kind"))
        if kind in _KEPT_KINDS:
            kept.add(str(metadata.get("name")))
            continue
        owners = [(str(each.get("kind")), each.get("name")) for each in metadata.get("ownerReferences") or ()]
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        gangs = [("gang", value) for key, value in (*labels.items(), *annotations.items()) if key.endswith(_GROUPS)]
        named = [(kind, metadata.get("name")), ("namespace", metadata.get("namespace")), *owners, *gangs]
        if kind == "Node":
            host = labels.get(HOSTNAME_LABEL)
            named.append(("host", host))
            kept.update(str(value) for value in labels.values() if value not in (host, metadata.get("name")))
            kept.update(str(each.get("value")) for each in field(content, "spec", "taints") or ())
        kept.add(str(field(content, "spec", "schedulerName")))
        for each, name in named:
            if name:
                by_kind.setdefault(each.lower(), set()).add(str(name))
    return {old: new for kind, names in reversed(by_kind.items()) for old, new in _numbered(kind, names - kept)}


def _numbered(kind: str, names: set[str]) -> Iterator[tuple[str, str]]:
    width = len(str(len(names)))
    for number, name in enumerate(sorted(names), start=1):
        yield name, f"{kind}-{number:0{width}}"


def _renamed(content: JsonObject, names: dict[str, str]) -> JsonObject:
    renamed: JsonObject = _value(content, "", names)
    for part in ("spec", "status"):
        for key in _ADDRESSES:
            (renamed.get(part) or {}).pop(key, None)
    if volumes := field(renamed, "spec", "volumes"):
        renamed["spec"]["volumes"] = [each for each in volumes if _FILES.isdisjoint(each)]
    metadata = renamed.get("metadata") or {}
    metadata.pop("generateName", None)
    if metadata.get("annotations") and content.get("kind") != "Namespace":
        plain = {key: value for key, value in metadata["annotations"].items() if _PLAIN.fullmatch(str(value))}
        metadata["annotations"] = plain
    return renamed


def _value(value: Any, key: str, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _value(inner, "name" if key in _MAPS else name, names) for name, inner in value.items()}
    if isinstance(value, list):
        return [_value(each, key, names) for each in value]
    return names.get(value, value) if isinstance(value, str) and key in _NAMES else value

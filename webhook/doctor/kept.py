"""The part of each object that checks read: a large cluster is read in pages, and little of them is kept. Pure."""

from collections.abc import Mapping
from typing import Any

from webhook.doctor.cluster import JsonObject, listed
from webhook.doctor.source import Source
from webhook.doctor.workloads import VARIABLE_PREFIX, containers_of

Shape = Mapping[str, Any]

_ALL: Shape = {}
_NAMES: Shape = {"name": _ALL, "namespace": _ALL}
_CONTAINER: Shape = dict.fromkeys(("name", "command", "args", "ports", "volumeMounts", "env", "resources"), _ALL)
_POD: Shape = {"volumes": _ALL, "serviceAccountName": _ALL, "priorityClassName": _ALL, "containers": _CONTAINER}
_WRITTEN: Shape = {"time": _ALL, "fieldsV1": {"f:spec": {"f:renewTime": _ALL}}}
# Sources without a shape are few objects, which are kept as they are.
_SHAPES: Mapping[Source, Shape] = {
    Source.NAMESPACES: {"metadata": {**_NAMES, "labels": _ALL, "annotations": _ALL}},
    Source.NODES: {
        "metadata": {**_NAMES, "labels": _ALL},
        "spec": {"taints": _ALL, "unschedulable": _ALL},
        "status": {"allocatable": _ALL, "capacity": _ALL},
    },
    Source.DEPLOYMENTS: {
        "kind": _ALL,
        "metadata": {**_NAMES, "annotations": {"meta.helm.sh/release-name": _ALL}},
        "spec": {"replicas": _ALL, "template": {"metadata": {"labels": _ALL}, "spec": _POD}},
        "status": {"readyReplicas": _ALL, "conditions": _ALL},
    },
    Source.LEASES: {
        "metadata": {**_NAMES, "managedFields": _WRITTEN},
        "spec": {"renewTime": _ALL, "holderIdentity": _ALL},
    },
    Source.QUOTAS: {"metadata": _NAMES, "spec": _ALL, "status": _ALL},
    Source.LIMIT_RANGES: {"metadata": _NAMES, "spec": _ALL},
    Source.QUEUES: {"metadata": _NAMES},
    Source.POLICY: {"metadata": {**_NAMES, "generation": _ALL}, "status": _ALL},
}


def kept(source: Source, content: JsonObject) -> JsonObject:
    """Return the part of an object of `source` that checks read."""
    found: JsonObject = _part(content, _SHAPES.get(source, _ALL))
    if source is Source.DEPLOYMENTS:
        for each in containers_of(found):
            # Variables of other programs can have secrets.
            variables = listed(each, "env")
            each["env"] = [one for one in variables if str(one.get("name")).startswith(VARIABLE_PREFIX)]
    return found


def _part(value: Any, shape: Shape) -> Any:
    """Return the fields of `value` that `shape` has, of a list those of each item."""
    if not shape:
        return value
    if isinstance(value, list):
        return [_part(each, shape) for each in value]
    if not isinstance(value, dict):
        return None
    return {key: _part(value[key], part) for key, part in shape.items() if key in value}

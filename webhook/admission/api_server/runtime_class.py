"""RuntimeClass: the overhead, the node selector and the tolerations of a pod's class.

Source: k8s.io/kubernetes/plugin/pkg/admission/runtimeclass/admission.go
"""

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.cluster.objects.runtime_class import RuntimeClass
from webhook.documents.documents import JsonObject
from webhook.kube.pod.taints import covers
from webhook.kube.quantity import milli_value

_DIFFERS = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
# Those that others cover change nothing for a scheduler.
_MOST_COMPARED = 100
_NO_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
Tolerations = Sequence[Mapping[str, Any]]


def with_runtime_class(pod: JsonObject, found: RuntimeClass) -> JsonObject:
    """Return `pod` with what its class `found` adds.

    Raises:
        ValueError: the API server refuses the pod; holds its words.
    """
    spec = {**pod["spec"]}
    if found.overhead is not None:
        if spec.get("overhead") and not _equal(spec["overhead"], found.overhead):
            raise ValueError(_DIFFERS)
        spec["overhead"] = {**found.overhead}
    if found.node_selector:
        own = spec.get("nodeSelector") or {}
        for key, wanted in sorted(found.node_selector.items()):
            if own.get(key, wanted) != wanted:
                place, theirs = f"runtimeClass.scheduling.nodeSelector[{key}]", f"pod.spec.nodeSelector[{key}]"
                raise ValueError(f"conflict: {place} = {wanted}; {theirs} = {own[key]}")
        spec["nodeSelector"] = {**own, **found.node_selector}
    if found.tolerations:
        spec["tolerations"] = _merged([*(spec.get("tolerations") or ()), *found.tolerations])
    return {**pod, "spec": spec}


def overhead_fault(pod: Mapping[str, Any], found: RuntimeClass | None) -> str:
    """Return why the API server refuses the overhead of a stored `pod`, whose class is `found`; empty if it does not.

    Raises:
        ValueError: an amount of the pod is no quantity.
    """
    overhead = pod["spec"].get("overhead")
    if found is None or found.overhead is None:
        return "" if overhead is None else _NO_CLASS
    return "" if _equal(overhead or {}, found.overhead) else _DIFFERS


def _equal(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    amounts = ({name: milli_value(each) for name, each in side.items()} for side in (left, right))
    return next(amounts) == next(amounts)


def _merged(tolerations: Tolerations) -> list[Mapping[str, Any]]:
    """Return `tolerations` without those that others cover.

    Source: k8s.io/kubernetes/pkg/util/tolerations/tolerations.go, MergeTolerations
    """
    merged: list[Mapping[str, Any]] = []
    if len(tolerations) > _MOST_COMPARED:
        return [*tolerations]
    for index, each in enumerate(tolerations):
        if any(covers(other, each) for other in merged):
            continue
        if not any(other != each and covers(other, each) for other in tolerations[index + 1 :]):
            merged.append(each)
    return merged

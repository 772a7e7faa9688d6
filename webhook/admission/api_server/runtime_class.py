"""RuntimeClass: the overhead, the node selector and the tolerations of a pod's class.

Source: k8s.io/kubernetes/plugin/pkg/admission/runtimeclass/admission.go
"""

from collections.abc import Mapping
from typing import Any

from webhook.cluster.objects.runtime_class import RuntimeClass
from webhook.documents.documents import JsonObject
from webhook.kube.quantity import milli_value

_DIFFERS = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_NO_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


def with_runtime_class(pod: JsonObject, found: RuntimeClass) -> JsonObject:
    """Return `pod` with the overhead, node selector and tolerations of its class `found`.

    Raises:
        ValueError: the API server rejects the pod; contains the API server's message.
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
        # The API server also drops those that others cover, which changes nothing for a scheduler.
        own = spec.get("tolerations") or []
        spec["tolerations"] = [*own, *(each for each in found.tolerations if each not in own)]
    return {**pod, "spec": spec}


def overhead_fault(pod: Mapping[str, Any], found: RuntimeClass | None) -> str:
    """Return why the API server rejects the overhead of `pod`, whose class is `found`, or "" if it accepts it.

    Raises:
        ValueError: an amount of the pod is not a quantity.
    """
    overhead = pod["spec"].get("overhead")
    if found is None or found.overhead is None:
        return "" if overhead is None else _NO_CLASS
    return "" if _equal(overhead or {}, found.overhead) else _DIFFERS


def _equal(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    amounts = ({name: milli_value(each) for name, each in side.items()} for side in (left, right))
    return next(amounts) == next(amounts)

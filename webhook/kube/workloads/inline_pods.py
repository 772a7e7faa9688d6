"""Read the pods of objects that write fields of pods beside their own, instead of a pod template."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, invalid
from webhook.documents.object_path import Match, value_at
from webhook.kube.workloads.pod_template_path import Shaped

_FIELDS = (
    *("affinity", "hostNetwork", "nodeSelector", "priorityClassName", "runtimeClassName", "schedulerName"),
    *("terminationGracePeriodSeconds", "tolerations"),
)


def pod_spec(found: Match, _: JsonObject) -> Shaped:
    """Return the pod of a PodSpec, which has no metadata. A part of one, without containers, is merged into another."""
    spec, caveat = found.value, ""
    if not spec.get("containers"):
        spec, caveat = {**spec, "containers": [{"name": "main"}]}, f"its controller adds the containers of {found.path}"
    return Shaped(None, None, spec, f"{found.path}.annotations", found.path, caveat)


def inline_container(found: Match, _: JsonObject) -> Shaped:
    """Return the pod of an object that describes its only container by itself, with resources and fields of pods."""
    inline = found.value
    spec = {name: inline[name] for name in _FIELDS if inline.get(name) is not None}
    spec["containers"] = [{"name": "main", "resources": inline.get("resources") or {}}]
    return Shaped(inline.get("labels"), inline.get("annotations"), spec, f"{found.path}.annotations", found.path)


def spark_pod(found: Match, content: JsonObject) -> Shaped:
    """Return the pod of a driver or executor. Its container has the CPU, memory and GPUs of Spark's fields.

    Source: github.com/apache/spark/resource-managers/kubernetes/core/src/main/scala/org/apache/spark/deploy/k8s/
    features/BasicDriverFeatureStep.scala, BasicExecutorFeatureStep.scala

    Raises:
        InvalidInput: a field that is read has a wrong type.
    """
    inline, path = found.value, found.path
    template, at_template = _object(inline, path, "template"), f"{path}.template"
    spec = {**_object(template, at_template, "spec")}
    containers = _objects(spec, f"{at_template}.spec", "containers")
    spec |= {name: inline[name] for name in _FIELDS if inline.get(name) is not None}
    first, *others = [*containers, *_objects(inline, path, "sidecars")] or [{}]
    application = value_at(content, path.rpartition(".")[0], ()).value
    memory = _with_overhead(inline.get("memory") or "1g", inline.get("memoryOverhead"), _overhead_factor(application))
    requests = {"cpu": str(inline.get("coreRequest") or inline.get("cores") or 1), "memory": memory}
    limits = {"memory": memory}
    if inline.get("coreLimit"):
        limits["cpu"] = inline["coreLimit"]
    gpu = _object(inline, path, "gpu")
    if resource := gpu.get("name"):
        if not isinstance(resource, str):
            raise InvalidInput([invalid(f"{path}.gpu.name", resource, "must be text")])
        limits[resource] = str(gpu.get("quantity") or 0)
    spec["containers"] = [{"name": "spark", **first, "resources": {"requests": requests, "limits": limits}}, *others]
    metadata = _object(template, at_template, "metadata")
    labels, annotations = (
        {**_object(metadata, f"{at_template}.metadata", name), **_object(inline, path, name)} or None
        for name in ("labels", "annotations")
    )
    return Shaped(labels, annotations, spec, f"{path}.annotations", path)


def _object(parent: Mapping[str, Any], path: str, name: str) -> Mapping[str, Any]:
    """Return the object in the field `name` of `parent`, which is at `path`, or an empty object if there is none."""
    value = parent.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInput([invalid(f"{path}.{name}", value, "must be an object")])
    return value or {}


def _objects(parent: Mapping[str, Any], path: str, name: str) -> list[Mapping[str, Any]]:
    """Return the objects in the list `name` of `parent`, which is at `path`, or an empty list if there is none."""
    value = parent.get(name)
    if value is not None and not (isinstance(value, list) and all(isinstance(each, Mapping) for each in value)):
        raise InvalidInput([invalid(f"{path}.{name}", value, "must be a list of objects")])
    return value or []


# More digits are no memory of a node, and Python limits the digits that it reads.
_MEMORY = re.compile(r"([0-9]{1,18})([kmgt]?)b?", re.IGNORECASE)
_FACTOR = re.compile(r"[0-9]{1,4}(\.[0-9]{1,9})?")
_KIB = {"k": 1, "m": 1024, "": 1024, "g": 1024**2, "t": 1024**3}
_LEAST_OVERHEAD_KIB = 384 * 1024


def _overhead_factor(application: Mapping[str, Any]) -> Fraction:
    """Return the part of the memory that is added for processes beside the JVM: 40 % for Python and R, else 10 %.

    Source: github.com/kubeflow/spark-operator/api/v1beta2/sparkapplication_types.go, MemoryOverheadFactor
    """
    stated = application.get("memoryOverheadFactor")
    if isinstance(stated, str) and _FACTOR.fullmatch(stated):
        return Fraction(stated)
    return Fraction(2, 5) if application.get("type") in ("Python", "R") else Fraction(1, 10)


def _with_overhead(memory: Any, overhead: Any, factor: Fraction) -> str:
    """Return the memory of a Spark pod as a quantity: that of the JVM, and `factor` of it, at least 384 MiB, more.

    A text that Spark rejects is returned as it is, so the reader of the pod reports it.
    """
    size = _kib(memory)
    if size is None:
        return str(memory)
    more = _kib(overhead) if overhead is not None else max(int(size * factor), _LEAST_OVERHEAD_KIB)
    return f"{size + (more or 0)}Ki"


def _kib(text: Any) -> int | None:
    found = _MEMORY.fullmatch(text.strip()) if isinstance(text, str) else None
    return int(found[1]) * _KIB[found[2].lower()] if found else None

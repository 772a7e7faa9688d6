"""RuntimeClasses and LimitRanges as manifests."""

from typing import Any

Object = dict[str, Any]


def runtime_class(name: str, **fields: Any) -> Object:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "handler",
        **fields,
    }


def limit_range(*items: Object, name: str = "limits", namespace: str = "default") -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [*items]}}


def namespace(name: str, **annotations: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}

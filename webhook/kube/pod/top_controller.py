"""The controller of a pod that a user changes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.documents.documents import field
from webhook.documents.parts import listed

_TEMPLATE_HASH = "pod-template-hash"


class Controller(NamedTuple):
    """The kind, name and apiVersion of a controller. A text that is not in the reference is empty."""

    kind: str
    name: str
    api_version: str


def top_controller(pod: Mapping[str, Any]) -> Controller | None:
    """Return the controller of `pod`, or for a ReplicaSet of a Deployment the Deployment, or None without a controller.

    A ReplicaSet belongs to a Deployment if its name is that of the Deployment followed by the pod-template-hash.
    Source: k8s.io/kubernetes/pkg/controller/deployment/sync.go, getNewReplicaSet
    """
    for each in listed(pod, "metadata", "ownerReferences"):
        if each.get("controller") is True:
            kind, name, api_version = (str(each.get(key) or "") for key in ("kind", "name", "apiVersion"))
            suffix = f"-{field(pod, 'metadata', 'labels', _TEMPLATE_HASH) or ''}"
            if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
                return Controller("Deployment", name.removesuffix(suffix), api_version)
            return Controller(kind, name, api_version)
    return None

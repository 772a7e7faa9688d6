"""What is listed and watched of a cluster, and where."""

from dataclasses import dataclass

from webhook.cluster.further_kinds import FURTHER_KINDS


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects, where the API server has it, and which of it are wanted.

    A view is of no use without the kinds that are `is_required`; any other may be refused or not served at all.
    """

    kind: str
    api_version: str
    plural: str
    field_selector: str = ""
    is_required: bool = False

    @property
    def path(self) -> str:
        """Where all objects of the kind are listed."""
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}/{self.plural}"


# A pod that is bound enters the selection (ADDED), one that ends or goes leaves it (DELETED).
REQUIRED_RESOURCES = (
    Resource("Namespace", "v1", "namespaces", is_required=True),
    Resource("Node", "v1", "nodes", is_required=True),
    Resource("Pod", "v1", "pods", "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed", is_required=True),
)
_PLURALS = {"StorageClass": "storageclasses", "DeviceClass": "deviceclasses", "PriorityClass": "priorityclasses"}
FURTHER_RESOURCES = tuple(
    Resource(kind, further.api_version, _PLURALS.get(kind, f"{kind.lower()}s"))
    for kind, further in FURTHER_KINDS.items()
)
RESOURCES = (*REQUIRED_RESOURCES, *FURTHER_RESOURCES)

"""What is listed and watched of a cluster, and where."""

from dataclasses import dataclass

from webhook.cluster.cache.object_key import NOMINATED_PODS
from webhook.cluster.optional_kinds import OPTIONAL_KINDS


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of objects, where the API server has it, and which of it are wanted.

    A view is of no use without the kinds that are `is_required`; any other may be refused or not served at all.
    `part`: what the cache calls these objects, where they are but some of a kind.
    """

    kind: str
    api_version: str
    plural: str
    field_selector: str = ""
    is_required: bool = False
    part: str = ""

    @property
    def name_in_cache(self) -> str:
        """The kind, or the part of it."""
        return self.part or self.kind

    @property
    def path(self) -> str:
        """Where all objects of the kind are listed."""
        root = "apis" if "/" in self.api_version else "api"
        return f"/{root}/{self.api_version}/{self.plural}"


# A pod enters a selection (ADDED) when it is bound, or nominated; it leaves it (DELETED) when it ends or goes. No field
# selector says "or", and all pods that wait would be too many: so there are two selections of pods.
_LIVES = "status.phase!=Succeeded,status.phase!=Failed"
_NOMINATED = f"spec.nodeName=,status.nominatedNodeName!=,{_LIVES}"
REQUIRED_RESOURCES = (
    Resource("Namespace", "v1", "namespaces", is_required=True),
    Resource("Node", "v1", "nodes", is_required=True),
    Resource("Pod", "v1", "pods", f"spec.nodeName!=,{_LIVES}", is_required=True),
    Resource("Pod", "v1", "pods", _NOMINATED, is_required=True, part=NOMINATED_PODS),
)
FURTHER_RESOURCES = tuple(Resource(kind, row.api_version, row.plural) for kind, row in OPTIONAL_KINDS.items())
RESOURCES = (*REQUIRED_RESOURCES, *FURTHER_RESOURCES)

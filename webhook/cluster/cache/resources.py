"""The resources to list and watch, and their paths."""

from dataclasses import dataclass

from webhook.cluster.objects.priority_class import PRIORITY_CLASS_KIND
from webhook.cluster.optional_kinds import BATCH_KINDS, OPTIONAL_KINDS


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind, its path on the API server, and the objects to read: by field selector, and of a namespace or of all.

    `is_required` is true for kinds that a view needs; other kinds may be forbidden or not served. `is_extension` is
    true if some clusters do not serve the kind, such as those without its CRD. `part` is the name of these objects in
    the cache if it differs from the kind.
    """

    kind: str
    api_version: str
    plural: str
    field_selector: str = ""
    is_required: bool = False
    is_extension: bool = False
    part: str = ""
    namespace: str = ""

    @property
    def name_in_cache(self) -> str:
        """Return the name of the kind or part."""
        return self.part or self.kind

    @property
    def path(self) -> str:
        """Return the path that lists the objects of the kind."""
        root = "apis" if "/" in self.api_version else "api"
        scope = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"/{root}/{self.api_version}/{scope}{self.plural}"


# A watch with this selector reports a pod as DELETED when it ends.
_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
REQUIRED_RESOURCES = (
    Resource("Namespace", "v1", "namespaces", is_required=True),
    Resource("Node", "v1", "nodes", is_required=True),
    Resource("Pod", "v1", "pods", _NOT_ENDED, is_required=True),
)
OPTIONAL_RESOURCES = tuple(
    Resource(kind, row.api_version, row.plural, is_extension=not row.is_everywhere)
    for kind, row in OPTIONAL_KINDS.items()
)
PRIORITY_CLASSES = next(each for each in OPTIONAL_RESOURCES if each.kind == PRIORITY_CLASS_KIND)
BATCH_RESOURCES = tuple(
    Resource(name.partition(".")[0], row.api_version, row.plural, is_extension=True, part=name)
    for name, row in BATCH_KINDS.items()
)
RESOURCES = (*REQUIRED_RESOURCES, *OPTIONAL_RESOURCES, *BATCH_RESOURCES)

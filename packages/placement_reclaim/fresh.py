"""The current state of a namespace with held cards, which is read right before an eviction."""

from dataclasses import dataclass, replace

from placement_reclaim.classes.gangs import GangOf
from placement_reclaim.cluster import Objects
from webhook.cluster.cache.resources import BATCH_RESOURCES
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document, JsonObject
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_READABLE, ApiServer
from webhook.watch.pages import list_pages

_POD_GROUPS = [each for each in BATCH_RESOURCES if each.kind == "PodGroup"]
_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class Fresh:
    """The nodes of a cluster, and the pods, PodGroups and annotations of one namespace of it.

    The snapshot of `gang_of` has the annotations.
    """

    objects: Objects
    gang_of: GangOf

    async def pods_again(self, server: ApiServer, namespace: str) -> "Fresh":
        """Return the current pods and annotations of `namespace`, with the nodes and PodGroups of this state.

        Raises:
            ApiServerError: they cannot be read.
        """
        read = await _listed(server, "v1", "Namespace", "/api/v1/namespaces", f"metadata.name={namespace}")
        namespaces = snapshot_from_documents([Document("the API server", each) for each in read]).namespaces
        fresh = Objects(self.objects.accelerators, nodes=self.objects.nodes, claims=self.objects.claims)
        for each in await _listed(server, "v1", "Pod", f"/api/v1/namespaces/{namespace}/pods"):
            fresh.take(each)
        snapshot = replace(self.gang_of.snapshot, namespaces=namespaces)
        return Fresh(fresh, replace(self.gang_of, snapshot=snapshot))

    async def all_again(self, server: ApiServer, namespace: str, *, is_gang: bool) -> "Fresh":
        """Return the current state. The claims are those of this state, and so are the PodGroups unless `is_gang`.

        Raises:
            ApiServerError: it cannot be read.
        """
        objects = Objects(self.objects.accelerators, claims=self.objects.claims)
        for each in await _listed(server, "v1", "Node", "/api/v1/nodes"):
            objects.take(each)
        gang_of = await self._gangs_again(server, namespace) if is_gang else self.gang_of
        return await Fresh(objects, gang_of).pods_again(server, namespace)

    async def _gangs_again(self, server: ApiServer, namespace: str) -> GangOf:
        found: list[JsonObject] = []
        for each in _POD_GROUPS:
            path = f"/apis/{each.api_version}/namespaces/{namespace}/{each.plural}"
            try:
                found += await _listed(server, each.api_version, each.kind, path)
            except ApiServerError as error:
                if error.code not in NOT_READABLE:
                    raise
        read = snapshot_from_documents([Document("the API server", each) for each in found])
        snapshot = replace(self.gang_of.snapshot, volcano=read.volcano, kai=read.kai, pod_groups=read.pod_groups)
        return replace(self.gang_of, snapshot=snapshot)


async def _listed(server: ApiServer, api_version: str, kind: str, path: str, selector: str = "") -> list[JsonObject]:
    found: list[JsonObject] = []

    async def take(items: list[JsonObject], _: bool) -> None:
        found.extend({"apiVersion": api_version, "kind": kind, **each} for each in items)

    await list_pages(server, path, {"fieldSelector": selector} if selector else {}, take, _PAGE_SIZE)
    return found

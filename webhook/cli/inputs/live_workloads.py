"""Read the namespaces, pods and workload objects of a running cluster once."""

from pathlib import Path

from webhook.cli.inputs.live import list_resources
from webhook.cluster.cache.resources import Resource
from webhook.documents.documents import Document, JsonObject, field
from webhook.watch.api_server import ClientConfig

_RESOURCES = (
    Resource("Namespace", "v1", "namespaces", is_required=True),
    Resource("Pod", "v1", "pods", is_required=True),
    Resource("ReplicationController", "v1", "replicationcontrollers"),
    *(Resource(kind, "apps/v1", f"{kind.lower()}s") for kind in ("Deployment", "ReplicaSet", "StatefulSet")),
    *(Resource(kind, "batch/v1", f"{kind.lower()}s") for kind in ("Job", "CronJob")),
)


def read_live_workloads(kubeconfig: Path | None, context: str | None) -> list[Document]:
    """Return the objects of a live cluster; kinds that are forbidden are reported on standard error.

    Raises:
        InvalidInput: the kubeconfig is missing or wrong.
        click.ClickException: the API server does not answer the request.
    """
    found: dict[str, list[Document]] = {}

    def take(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if begins:
            found[resource.kind] = []
        for item in items:
            name = f"{resource.kind} {field(item, 'metadata', 'namespace')}/{field(item, 'metadata', 'name')}"
            content = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
            found[resource.kind].append(Document(name, content))

    list_resources(ClientConfig(kubeconfig, context=context), _RESOURCES, take)
    return [each for documents in found.values() for each in documents]

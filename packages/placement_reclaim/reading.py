"""Read the cluster of the command: the snapshot, and the raw objects with cards."""

from placement_reclaim.cluster import Objects
from webhook.cli.inputs.clusters import read_objects
from webhook.cli.inputs.session import Session
from webhook.cli.output.terminal import echo
from webhook.cluster.cache.resources import Resource
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject

_ENDED = "status.phase!=Running,status.phase!=Pending,status.phase!=Unknown"
_MORE = (Resource("Pod", "v1", "pods", _ENDED, part="ended pods"),)


def read_cluster(session: Session, objects: Objects) -> Snapshot:
    """Return the snapshot of the cluster of `session`, and add its objects to `objects`.

    Raises:
        InvalidInput: the file or the kubeconfig cannot be read, or an object of the file is malformed.
        click.ClickException: the API server does not answer the request.
    """
    if session.cluster is not None:
        documents = read_objects(session.cluster)
        for each in documents:
            objects.take(each.content)
        return snapshot_from_documents(documents)

    # Imported here, so that a report on a file does not import the client.
    from webhook.cli.inputs.live import list_resources, read_live_cluster

    def on_page(resource: Resource, items: list[JsonObject], _: bool) -> None:
        for each in items:
            objects.take({"apiVersion": resource.api_version, "kind": resource.kind, **each})

    snapshot = read_live_cluster(session.source, on_page=on_page)
    list_resources(session.source, _MORE, on_page)
    if snapshot.release.note:
        echo(snapshot.release.note, err=True)
    return snapshot

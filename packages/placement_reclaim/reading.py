"""Read the cluster of the command: the snapshot, and the raw objects with cards."""

import time

from placement_reclaim.cluster import Objects, written_at
from webhook.cli.inputs.clusters import read_objects
from webhook.cli.inputs.session import Session
from webhook.cli.output.terminal import echo
from webhook.cluster.cache.resources import Resource
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import JsonObject

_ENDED = Resource(
    "Pod", "v1", "pods", "status.phase!=Running,status.phase!=Pending,status.phase!=Unknown", part="ended pods"
)


def read_cluster(session: Session) -> tuple[Objects, int]:
    """Return the objects of the cluster of `session` with cards of its policy, and the time of it, in Unix seconds.

    Raises:
        InvalidInput: the file or the kubeconfig cannot be read, or an object of the file is malformed.
        click.ClickException: the API server does not answer the request.
    """
    if session.cluster is not None:
        documents, objects = read_objects(session.cluster), Objects(session.rules.default)
        for document in documents:
            objects.take(document.content)
        objects.snapshot = snapshot_from_documents(documents)
        return objects, written_at(each.content for each in documents) or int(time.time())

    # Imported here, so that a report on a file does not import the client.
    from webhook.cli.inputs.live import list_resources, read_live_cluster

    # A kubeconfig that cannot be read is an error, before it is a reason that the policy is not known.
    list_resources(session.source, (), lambda *_: None)
    objects = Objects(session.rules.default)

    def on_page(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if begins:
            objects.forget(resource.kind, has_ended=resource is _ENDED)
        for each in items:
            objects.take(each)

    objects.snapshot = read_live_cluster(session.source, on_page=on_page)
    list_resources(session.source, (_ENDED,), on_page)
    if objects.snapshot.release.note:
        echo(objects.snapshot.release.note, err=True)
    return objects, int(time.time())

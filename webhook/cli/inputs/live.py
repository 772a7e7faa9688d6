"""Read a running cluster once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import click

from webhook.cli.inputs.private_fields import without_secrets
from webhook.cli.output.terminal import echo
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.resources import RESOURCES, Resource
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.kube.release import Release
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_FOUND, NOT_READABLE, ApiServer, ClientConfig
from webhook.watch.pages import list_pages
from webhook.watch.polling import read_release, read_scheduler_evidence

OnPage = Callable[[Resource, list[JsonObject], bool], None]
T = TypeVar("T")

_PAGE_SIZE = 500
_PRINTED = "webhook.cli: names of clusters that were printed"
_WORKLOADS = (
    Resource("Namespace", "v1", "namespaces", is_required=True),
    Resource("Pod", "v1", "pods", is_required=True),
    Resource("ReplicationController", "v1", "replicationcontrollers"),
    *(Resource(kind, "apps/v1", f"{kind.lower()}s") for kind in ("Deployment", "ReplicaSet", "StatefulSet")),
    *(Resource(kind, "batch/v1", f"{kind.lower()}s") for kind in ("Job", "CronJob")),
)


def read_live_cluster(
    source: ClientConfig, resources: Iterable[Resource] = RESOURCES, on_page: OnPage = lambda *_: None
) -> Snapshot:
    """Return a snapshot of `resources` in the cluster of `source`. `on_page` gets each page.

    Objects that cannot be read, and optional kinds that are forbidden or not served, are reported on standard error.

    Raises:
        InvalidInput: the kubeconfig is missing or wrong.
        click.ClickException: the API server does not answer the request.
    """
    cache = ClusterCache()
    listings = {}

    def take(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if begins:
            listings[resource.name_in_cache] = cache.listing(resource.name_in_cache)
        for each in listings[resource.name_in_cache].add(items):
            echo(f"left out: {each.kind} {each.key}: {each.message}", err=True)
        on_page(resource, items, begins)

    for resource in list_resources(source, resources, take):
        listings[resource.name_in_cache].finish()
    cache.put_scheduler_evidence(ask_live(source, "signs of schedulers", read_scheduler_evidence))
    if (release := read_live_release(source)) is not None:
        cache.put_release(release)
    return cache.snapshot()


def read_live_disruptions(source: ClientConfig, on_page: OnPage = lambda *_: None) -> tuple[Snapshot, Disruptions]:
    """Return the snapshot as `read_live_cluster`, and its Disruptions. Forbidden PodDisruptionBudgets count as unknown.

    `on_page` gets each page.

    Raises:
        InvalidInput: the kubeconfig is missing or wrong.
        click.ClickException: the API server does not answer the request.
    """
    pods: list[Document] = []

    def keep(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if resource.name_in_cache == "Pod":
            if begins:
                pods.clear()
            pods.extend(Document("the live cluster", without_secrets(each)) for each in items)
        on_page(resource, items, begins)

    snapshot = read_live_cluster(source, on_page=keep)
    return snapshot, Disruptions.of(snapshot, pods)


def read_live_release(source: ClientConfig) -> Release | None:
    """Return the release of a live cluster. If it cannot be read, report it on standard error."""
    return ask_live(source, "the release of the cluster", read_release)


def read_live_workloads(source: ClientConfig) -> list[Document]:
    """Return the namespaces, pods and workload objects of the cluster.

    Kinds that are forbidden are reported on standard error.

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
            found[resource.kind].append(Document(name, item))

    list_resources(source, _WORKLOADS, take)
    return [each for documents in found.values() for each in documents]


def list_resources(source: ClientConfig, resources: Iterable[Resource], on_page: OnPage) -> list[Resource]:
    """List `resources` and return those that were listed.

    Printed to standard error are the name of the cluster, if no option names the kubeconfig, and the optional resources
    that are forbidden or not served. `on_page` gets the resource, the objects of a page, and true for the first page of
    a list, which can start again.

    Raises:
        InvalidInput: the configuration is missing or wrong.
        click.ClickException: the API server does not answer the request.
    """

    async def read(server: ApiServer) -> list[Resource]:
        return [resource for resource in resources if await list_resource(server, resource, on_page)]

    try:
        return ask(source, read, prints_name=True)
    except ApiServerError as error:
        raise click.ClickException(str(error)) from error


async def list_resource(server: ApiServer, resource: Resource, on_page: OnPage) -> bool:
    """List `resource` as in `list_resources`, and return false if it is forbidden or not served.

    Raises:
        ApiServerError: the API server does not answer the request, or a required resource is not readable.
    """
    # The API server leaves apiVersion and kind out of the items.
    head = {"apiVersion": resource.api_version, "kind": resource.kind}

    async def take(items: list[JsonObject], begins: bool) -> None:
        on_page(resource, [{**head, **each} for each in items], begins)

    query = {"fieldSelector": resource.field_selector} if resource.field_selector else {}
    try:
        await list_pages(server, resource.path, query, take, _PAGE_SIZE)
    except ApiServerError as error:
        if resource.is_required or error.code not in NOT_READABLE:
            raise
        if not (resource.is_extension and error.code == NOT_FOUND):
            echo(f"not known: {resource.plural}: {error}", err=True)
        return False
    return True


def ask_live(source: ClientConfig, what: str, read: Callable[[ApiServer], Awaitable[T]]) -> T | None:
    """Return the result of `read`, or None if `what` cannot be read, which is reported on standard error."""
    try:
        return ask(source, read)
    except (ApiServerError, InvalidInput) as error:
        echo(f"not known: {what}: {error}", err=True)
        return None


def ask(source: ClientConfig, read: Callable[[ApiServer], Awaitable[T]], *, prints_name: bool = False) -> T:
    """Return the result of `read`; `prints_name` prints the cluster's name once if no option names the kubeconfig.

    Raises:
        ApiServerError: the API server does not answer a request.
        InvalidInput: the configuration is missing or wrong.
    """
    # A command can ask several times, such as for pods and for audit records.
    context = click.get_current_context(silent=True)
    printed: list[str] = [] if context is None else context.meta.setdefault(_PRINTED, [])

    async def connected() -> T:
        async with source.connect() as server:
            if prints_name and source.kubeconfig is None and server.cluster not in printed:
                printed.append(server.cluster)
                echo(f"cluster: {server.cluster}", err=True)
            return await read(server)

    return asyncio.run(connected())

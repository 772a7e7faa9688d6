"""A running cluster, read once."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from webhook.cli.terminal import say
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.resources import RESOURCES, Resource
from webhook.cluster.snapshot import Snapshot
from webhook.watch.api_server import REFUSALS, ApiServer, ApiServerError, Source, listed

JsonObject = dict[str, Any]
OnPage = Callable[[Resource, list[JsonObject], bool], None]

_PAGE_SIZE = 500


def read_live_cluster(kubeconfig: Path) -> Snapshot:
    """The cluster of a kubeconfig as it is now.

    Objects that cannot be read, and kinds that are refused and not needed, are named on standard error.

    Raises:
        InvalidInput: the kubeconfig is missing or wrong.
        click.ClickException: the API server cannot be asked.
    """
    cache = ClusterCache()
    listings = {}

    def take(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if begins:
            listings[resource.name_in_cache] = cache.listing(resource.name_in_cache)
        for each in listings[resource.name_in_cache].add(items):
            say(f"left out: {each.kind} {each.key}: {each.message}", err=True)

    for resource in list_resources(Source(kubeconfig), RESOURCES, take):
        listings[resource.name_in_cache].finish()
    return cache.snapshot()


def list_resources(source: Source, resources: Iterable[Resource], on_page: OnPage) -> list[Resource]:
    """Those of `resources` that were listed; one that is refused and not required is named on standard error.

    `on_page` is given the items of each page by page, and whether the list begins with them.

    Raises:
        InvalidInput: the configuration is missing or wrong.
        click.ClickException: the API server cannot be asked.
    """
    try:
        return asyncio.run(_list(source, resources, on_page))
    except ApiServerError as error:
        raise click.ClickException(str(error)) from error


async def _list(source: Source, resources: Iterable[Resource], on_page: OnPage) -> list[Resource]:
    listed_ones = []
    async with source.connect() as server:
        for resource in resources:
            try:
                await _list_one(server, resource, on_page)
            except ApiServerError as error:
                if resource.is_required or error.code not in REFUSALS:
                    raise
                say(f"not known: {resource.plural}: {error}", err=True)
            else:
                listed_ones.append(resource)
    return listed_ones


async def _list_one(server: ApiServer, resource: Resource, on_page: OnPage) -> None:
    async def take(items: list[JsonObject], begins: bool) -> None:
        on_page(resource, items, begins)

    query = {"fieldSelector": resource.field_selector} if resource.field_selector else {}
    await listed(server, resource.path, query, take, _PAGE_SIZE)

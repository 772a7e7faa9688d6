"""Read a running cluster once."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from webhook.cli.anonymize import without_secrets
from webhook.cli.terminal import echo
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.resources import DISRUPTION_BUDGETS, RESOURCES, Resource
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import Document
from webhook.kube.field import InvalidInput
from webhook.kube.release import Release
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_FOUND, NOT_READABLE, ApiServer, ClientConfig, list_pages
from webhook.watch.release import read_release
from webhook.watch.scheduler_evidence import read_scheduler_evidence

JsonObject = dict[str, Any]
OnPage = Callable[[Resource, list[JsonObject], bool], None]

_PAGE_SIZE = 500


def read_live_cluster(
    kubeconfig: Path | None, context: str | None, resources: Iterable[Resource] = RESOURCES
) -> Snapshot:
    """Return a snapshot of `resources` in the cluster of a kubeconfig; None as in kubectl.

    Objects that cannot be read, and optional kinds that are forbidden or not served, are reported on standard error.

    Raises:
        InvalidInput: the kubeconfig is missing or wrong.
        click.ClickException: the API server does not answer the request.
    """
    return _read(kubeconfig, context, resources)


def read_live_cluster_with_disruptions(kubeconfig: Path | None, context: str | None) -> tuple[Snapshot, Disruptions]:
    """Return the same snapshot, and what limits the moves of its pods. Forbidden PodDisruptionBudgets are not known.

    Raises:
        InvalidInput: the kubeconfig is missing or wrong.
        click.ClickException: the API server does not answer the request.
    """
    found: dict[str, list[Document]] = {}

    def keep(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if begins:
            found[resource.name_in_cache] = []
        if resource.name_in_cache in ("Pod", DISRUPTION_BUDGETS.kind):
            made = ({"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in items)
            found[resource.name_in_cache] += [Document("the live cluster", without_secrets(each)) for each in made]

    snapshot = _read(kubeconfig, context, (*RESOURCES, DISRUPTION_BUDGETS), keep)
    disruptions = Disruptions.from_documents(each for documents in found.values() for each in documents)
    if DISRUPTION_BUDGETS.name_in_cache in found and disruptions.budgets is None:
        disruptions = replace(disruptions, budgets={})
    return snapshot, disruptions


def _read(
    kubeconfig: Path | None, context: str | None, resources: Iterable[Resource], keep: OnPage | None = None
) -> Snapshot:
    """Return a snapshot of `resources`; `keep` gets each page too."""
    cache = ClusterCache()
    listings = {}

    def take(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if resource is not DISRUPTION_BUDGETS:
            if begins:
                listings[resource.name_in_cache] = cache.listing(resource.name_in_cache)
            for each in listings[resource.name_in_cache].add(items):
                echo(f"left out: {each.kind} {each.key}: {each.message}", err=True)
        if keep:
            keep(resource, items, begins)

    source = ClientConfig(kubeconfig, context=context)
    for resource in list_resources(source, resources, take):
        if resource is not DISRUPTION_BUDGETS:
            listings[resource.name_in_cache].finish()
    cache.put_scheduler_evidence(read_evidence(source))
    if (release := read_live_release(source)) is not None:
        cache.put_release(release)
    return cache.snapshot()


def list_resources(source: ClientConfig, resources: Iterable[Resource], on_page: OnPage) -> list[Resource]:
    """List `resources` and return those that were listed.

    Standard error gets the name of a cluster that is not named by its kubeconfig, and the optional resources that are
    forbidden or not served. `on_page` gets the resource, the items of a page, and whether the list begins with it.

    Raises:
        InvalidInput: the configuration is missing or wrong.
        click.ClickException: the API server does not answer the request.
    """
    try:
        return asyncio.run(_list(source, resources, on_page))
    except ApiServerError as error:
        raise click.ClickException(str(error)) from error


def read_evidence(source: ClientConfig) -> SchedulerEvidence | None:
    """Return the signs of schedulers in a live cluster. If they cannot be read, report it on standard error."""
    try:
        return asyncio.run(_read_evidence(source))
    except ApiServerError as error:
        echo(f"not known: signs of schedulers: {error}", err=True)
        return None


def read_live_release(source: ClientConfig) -> Release | None:
    """Return the release of a live cluster. If it cannot be read, report it on standard error."""
    try:
        return asyncio.run(_read_release(source))
    except (ApiServerError, InvalidInput) as error:
        echo(f"not known: the release of the cluster: {error}", err=True)
        return None


async def _read_release(source: ClientConfig) -> Release:
    async with source.connect() as server:
        return await read_release(server)


async def _read_evidence(source: ClientConfig) -> SchedulerEvidence:
    async with source.connect() as server:
        return await read_scheduler_evidence(server)


async def _list(source: ClientConfig, resources: Iterable[Resource], on_page: OnPage) -> list[Resource]:
    found = []
    async with source.connect() as server:
        if source.kubeconfig is None:
            echo(f"cluster: {server.cluster}", err=True)
        for resource in resources:
            try:
                await _list_one(server, resource, on_page)
            except ApiServerError as error:
                if resource.is_required or error.code not in NOT_READABLE:
                    raise
                if not (resource.is_extension and error.code == NOT_FOUND):
                    echo(f"not known: {resource.plural}: {error}", err=True)
            else:
                found.append(resource)
    return found


async def _list_one(server: ApiServer, resource: Resource, on_page: OnPage) -> None:
    async def take(items: list[JsonObject], begins: bool) -> None:
        on_page(resource, items, begins)

    query = {"fieldSelector": resource.field_selector} if resource.field_selector else {}
    await list_pages(server, resource.path, query, take, _PAGE_SIZE)

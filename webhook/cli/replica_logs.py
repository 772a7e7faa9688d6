"""Read the records of all running replicas through the API server, into files of a folder.

A replica that prints its records is read through its log, one that writes a file through a command in its container.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from webhook.audit.sources import Download
from webhook.cli.replica_streams import AuditFiles, PrintedLog, streams_of
from webhook.cli.terminal import echo
from webhook.kube.documents import field as value_of
from webhook.kube.field import InvalidInput, invalid
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, ClientConfig, list_pages

NAMESPACE = "placement-webhook"
SELECTOR = "app.kubernetes.io/name=placement-webhook,app.kubernetes.io/component=server"

_PAGE_SIZE = 100
_MOST_REPLICAS = 1000
_AT_ONCE = 4

JsonObject = dict[str, Any]
Stream = PrintedLog | AuditFiles


@dataclass(frozen=True, slots=True)
class ReplicaSelection:
    """The pods whose records are read, of one cluster. `since`: only what was written from then on."""

    kubeconfig: Path | None
    context: str | None
    namespace: str = NAMESPACE
    selector: str = SELECTOR
    since: datetime | None = None


def download(selection: ReplicaSelection, folder: Path) -> Sequence[Download]:
    """Write the logs and audit files of the replicas into `folder`.

    Raises:
        InvalidInput: the kubeconfig is wrong, or no pod is selected.
        click.ClickException: the pods cannot be listed, or the folder cannot take the files.
    """
    try:
        return asyncio.run(_download(selection, folder))
    except ApiServerError as error:
        raise click.ClickException(str(error)) from error


async def _download(selection: ReplicaSelection, folder: Path) -> Sequence[Download]:
    source = ClientConfig(selection.kubeconfig, context=selection.context)
    async with source.connect() as server:
        if selection.kubeconfig is None:
            echo(f"cluster: {server.cluster}", err=True)
        streams = [stream for pod in await _replicas(server, selection) for stream in streams_of(pod)]
        limit = asyncio.Semaphore(_AT_ONCE)
        paths = [folder / str(number) for number in range(len(streams))]
        problems = await asyncio.gather(
            *(_read(server, selection, stream, path, limit) for stream, path in zip(streams, paths, strict=True))
        )
    return [
        Download(stream.name, path, isinstance(stream, AuditFiles), problem)
        for stream, path, problem in zip(streams, paths, problems, strict=True)
    ]


async def _replicas(server: ApiServer, selection: ReplicaSelection) -> Sequence[JsonObject]:
    """Return the selected pods.

    Raises:
        ApiServerError: they cannot be listed.
        InvalidInput: there is none, or there are too many.
    """
    pods: list[JsonObject] = []

    async def take(items: list[JsonObject], begins: bool) -> None:
        if begins:
            pods.clear()
        pods.extend(items)
        if len(pods) > _MOST_REPLICAS:
            detail = f"selects more than {_MOST_REPLICAS} pods; give the labels of the webhook's pods"
            raise InvalidInput([invalid("--selector", selection.selector, detail)])

    await list_pages(server, _pods(selection), {"labelSelector": selection.selector}, take, _PAGE_SIZE)
    if not pods:
        detail = f"selects no pod in namespace {selection.namespace}; see --webhook-namespace"
        raise InvalidInput([invalid("--selector", selection.selector, detail)])
    return sorted(pods, key=_name)


async def _read(
    server: ApiServer, selection: ReplicaSelection, stream: Stream, path: Path, limit: asyncio.Semaphore
) -> str:
    """Write the bytes of the stream to `path`; return why they are incomplete, empty if they are not.

    Raises:
        click.ClickException: the file cannot be written.
    """
    async with limit:
        size_bytes = 0
        try:
            with path.open("wb") as file:
                async with aclosing(stream.chunks(server, _pods(selection), selection.since)) as chunks:
                    async for chunk in chunks:
                        size_bytes += file.write(chunk)
                        if size_bytes >= stream.most_bytes:
                            return f"they are larger than {stream.most_bytes} bytes: give --since"
        except ApiServerError as error:
            return str(error)
        except OSError as error:
            raise not_writable(error, path.parent.parent) from error
    return ""


def not_writable(error: OSError, folder: Path) -> click.ClickException:
    """Return the error of a temporary folder that cannot take the records."""
    remedy = "the records that are read are kept there: give --since, or set TMPDIR to a folder with more room"
    return click.ClickException(f"TMPDIR {folder}: {error.strerror or error}: {remedy}")


def _pods(selection: ReplicaSelection) -> str:
    return f"/api/v1/namespaces/{selection.namespace}/pods"


def _name(pod: Mapping[str, Any]) -> str:
    return str(value_of(pod, "metadata", "name"))

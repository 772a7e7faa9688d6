"""Read the logs of all running replicas through the API server, into files of a folder."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from webhook.cli.terminal import echo
from webhook.kube.documents import field as value_of
from webhook.kube.field import InvalidInput, invalid
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, ClientConfig, list_pages

CONTAINER = "webhook"
NAMESPACE = "placement-webhook"
SELECTOR = "app.kubernetes.io/name=placement-webhook,app.kubernetes.io/component=server"

_PAGE_SIZE = 100
_MOST_REPLICAS = 1000
_AT_ONCE = 4
_SILENCE_SECONDS = 30.0
_MOST_BYTES = 1024 * 1024 * 1024

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReplicaSelection:
    """The pods whose logs are read, of one cluster. `since`: only what was printed from then on."""

    kubeconfig: Path | None
    context: str | None
    namespace: str = NAMESPACE
    selector: str = SELECTOR
    since: datetime | None = None


@dataclass(slots=True)
class Downloaded:
    """The files of the logs, by the name of the replica, and how many logs could not be read to their end."""

    files: list[tuple[str, Path]] = field(default_factory=list)
    unread: int = 0


@dataclass(frozen=True, slots=True)
class _Log:
    """The log of one container of a replica; with `previous`, of the container before its last restart."""

    pod: str
    container: str
    previous: bool

    @property
    def name(self) -> str:
        return f"{self.pod} (before its restart)" if self.previous else self.pod


def download(selection: ReplicaSelection, folder: Path) -> Downloaded:
    """Write the logs of the replicas into `folder`. One that cannot be read is reported on standard error.

    Raises:
        InvalidInput: the kubeconfig is wrong, or no pod is selected.
        click.ClickException: the pods cannot be listed.
    """
    try:
        return asyncio.run(_download(selection, folder))
    except ApiServerError as error:
        raise click.ClickException(str(error)) from error


async def _download(selection: ReplicaSelection, folder: Path) -> Downloaded:
    source = ClientConfig(selection.kubeconfig, context=selection.context)
    downloaded = Downloaded()
    async with source.connect() as server:
        if selection.kubeconfig is None:
            echo(f"cluster: {server.cluster}", err=True)
        logs = [log for pod in await _replicas(server, selection) for log in _logs_of(pod)]
        limit = asyncio.Semaphore(_AT_ONCE)
        paths = [folder / str(number) for number in range(len(logs))]
        faults = await asyncio.gather(
            *(_read(server, selection, log, path, limit) for log, path in zip(logs, paths, strict=True))
        )
    for log, path, fault in zip(logs, paths, faults, strict=True):
        downloaded.files.append((log.name, path))
        if fault:
            downloaded.unread += 1
            echo(f"warning: {log.name}: not all of its log was read: {fault}", fg="yellow", err=True)
    return downloaded


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

    path = f"/api/v1/namespaces/{selection.namespace}/pods"
    await list_pages(server, path, {"labelSelector": selection.selector}, take, _PAGE_SIZE)
    if not pods:
        detail = f"selects no pod in namespace {selection.namespace}; see --webhook-namespace"
        raise InvalidInput([invalid("--selector", selection.selector, detail)])
    return sorted(pods, key=_name)


def _logs_of(pod: Mapping[str, Any]) -> list[_Log]:
    """Return the logs of a replica: none before its container has started, two after a restart."""
    statuses = value_of(pod, "status", "containerStatuses")
    known = {str(each.get("name")): each for each in statuses or () if isinstance(each, Mapping)}
    if not known:
        return []
    container = CONTAINER if CONTAINER in known else next(iter(known))
    status = known[container]
    has_run = any(value_of(status, "state", state) for state in ("running", "terminated"))
    logs = [_Log(_name(pod), container, previous=True)] if value_of(status, "lastState", "terminated") else []
    return [*logs, _Log(_name(pod), container, previous=False)] if has_run or logs else []


async def _read(server: ApiServer, selection: ReplicaSelection, log: _Log, path: Path, limit: asyncio.Semaphore) -> str:
    """Write the log to `path`; return why it is incomplete, empty if it is not."""
    query: dict[str, str | int] = {"container": log.container, "limitBytes": _MOST_BYTES}
    if log.previous:
        query["previous"] = "true"
    if selection.since is not None:
        query["sinceTime"] = selection.since.isoformat(timespec="seconds")
    address = f"/api/v1/namespaces/{selection.namespace}/pods/{log.pod}/log"
    async with limit:
        size_bytes = 0
        with path.open("wb") as file:
            try:
                async with aclosing(server.chunks(address, query, _SILENCE_SECONDS)) as chunks:
                    async for chunk in chunks:
                        size_bytes += file.write(chunk)
            except ApiServerError as error:
                return str(error)
    return f"it is larger than {_MOST_BYTES} bytes: give --since" if size_bytes >= _MOST_BYTES else ""


def _name(pod: Mapping[str, Any]) -> str:
    return str(value_of(pod, "metadata", "name"))

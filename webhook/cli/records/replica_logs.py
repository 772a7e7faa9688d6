"""Read the logs of all running replicas through the API server, into files of a folder."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from webhook.audit.sources import Download
from webhook.cli.inputs.installed_servers import options
from webhook.cli.inputs.live import ask
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput, invalid
from webhook.documents.parts import listed
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, ClientConfig
from webhook.watch.pages import list_pages

NAMESPACE = "placement-webhook"
SELECTOR = "app.kubernetes.io/name=placement-webhook,app.kubernetes.io/component=server"

_PAGE_SIZE = 100
_MOST_REPLICAS = 1000
_AT_ONCE = 4
_CONTAINER = "webhook"
_STANDARD_OUTPUT = "-"
_SILENCE_SECONDS = 30.0
_MOST_LOG_BYTES = 1024**3


@dataclass(frozen=True, slots=True)
class ReplicaSelection:
    """The pods whose logs are read, in the cluster of `source`. `since` leaves out what was printed before."""

    source: ClientConfig
    namespace: str = NAMESPACE
    selector: str = SELECTOR
    since: datetime | None = None


class _Log(NamedTuple):
    """The log of a container, or the `problem` for which it has no records."""

    name: str
    chunks: AsyncGenerator[bytes, None] | None
    problem: str = ""


def download(selection: ReplicaSelection, folder: Path) -> Sequence[Download]:
    """Write the logs of the replicas into `folder`.

    Raises:
        InvalidInput: the kubeconfig is wrong, or no pod is selected.
        click.ClickException: the pods cannot be listed, or the folder cannot take the files.
    """
    try:
        return ask(selection.source, partial(_download, selection=selection, folder=folder), prints_name=True)
    except ApiServerError as error:
        raise click.ClickException(str(error)) from error


async def _download(server: ApiServer, selection: ReplicaSelection, folder: Path) -> Sequence[Download]:
    pods, limit = await _pods(server, selection), asyncio.Semaphore(_AT_ONCE)
    logs = [log for pod in pods for log in _logs_of(server, selection, pod)]
    return await asyncio.gather(*(_read(log, folder / str(number), limit) for number, log in enumerate(logs)))


async def _pods(server: ApiServer, selection: ReplicaSelection) -> Sequence[JsonObject]:
    """Return the pods in the order of their names."""
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
    return sorted(pods, key=_name_of)


def _logs_of(server: ApiServer, selection: ReplicaSelection, pod: JsonObject) -> Iterator[_Log]:
    """Yield the logs of a replica: none before its container has started, two after a restart, or else one."""
    name = _name_of(pod)
    statuses = {str(each.get("name")): each for each in listed(pod, "status", "containerStatuses")}
    containers = {str(each.get("name")): each for each in listed(pod, "spec", "containers")}
    container = _CONTAINER if _CONTAINER in containers else next(iter(containers), _CONTAINER)
    file = [_STANDARD_OUTPUT, *options(containers.get(container, {}), "--audit")][-1]
    if file != _STANDARD_OUTPUT:
        remedy = "copy that file with kubectl cp, or run `placement-webhook audit` in the container"
        yield _Log(name, None, f"its records are in {file}: {remedy}")
        return

    def log(**previous: str) -> AsyncGenerator[bytes, None]:
        query: dict[str, str | int] = {"container": container, "limitBytes": _MOST_LOG_BYTES, **previous}
        if selection.since:
            query["sinceTime"] = selection.since.isoformat(timespec="seconds")
        return server.chunks(f"/api/v1/namespaces/{selection.namespace}/pods/{name}/log", query, _SILENCE_SECONDS)

    status = statuses.get(container, {})
    if has_restarted := bool(field(status, "lastState", "terminated")):
        yield _Log(f"{name} (before its restart)", log(previous="true"))
    if has_restarted or any(field(status, "state", state) for state in ("running", "terminated")):
        yield _Log(name, log())


async def _read(log: _Log, path: Path, limit: asyncio.Semaphore) -> Download:
    problem, size_bytes = log.problem, 0
    async with limit:
        try:
            with path.open("wb") as file:
                if log.chunks is None:
                    return Download(log.name, path, problem)
                async with aclosing(log.chunks) as chunks:
                    async for chunk in chunks:
                        size_bytes += file.write(chunk)
                        if size_bytes >= _MOST_LOG_BYTES:
                            problem = f"it is larger than {_MOST_LOG_BYTES} bytes: give --since"
                            break
        except ApiServerError as error:
            problem = str(error)
        except OSError as error:
            raise not_writable(error, path.parent.parent) from error
    return Download(log.name, path, problem)


def not_writable(error: OSError, folder: Path) -> click.ClickException:
    """Return the error of a temporary folder that cannot take the records."""
    remedy = "the records that are read are kept there: give --since, or set TMPDIR to a folder with more room"
    return click.ClickException(f"TMPDIR {folder}: {error.strerror or error}: {remedy}")


def _name_of(pod: JsonObject) -> str:
    return str(field(pod, "metadata", "name"))

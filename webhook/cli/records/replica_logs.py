"""Read the records of all running replicas through the API server, into files of a folder.

A replica that prints its records is read through its log, one that writes a file through its admin port, or through a
command in its container.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode

import click

from webhook.audit.sources import Download
from webhook.cli.output.terminal import echo
from webhook.documents.documents import field as value_of
from webhook.documents.field import InvalidInput, invalid
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_FOUND, ApiServer, ClientConfig
from webhook.watch.pages import list_pages
from webhook.watch.pod_streams import FORBIDDEN, http_get, printed_by

NAMESPACE = "placement-webhook"
SELECTOR = "app.kubernetes.io/name=placement-webhook,app.kubernetes.io/component=server"

_PAGE_SIZE = 100
_MOST_REPLICAS = 1000
_AT_ONCE = 4
_CONTAINER = "webhook"
_STANDARD_OUTPUT = "-"
_PROGRAM = "placement-webhook"
_ADMIN_PORT = 8080
_SILENCE_SECONDS = 30.0
_INTERNAL_ERROR = 500
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z0-9._-]+)\)")
_FIELDS = {"metadata.name": ("metadata", "name"), "metadata.namespace": ("metadata", "namespace")}

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplicaSelection:
    """The pods whose records are read, of the cluster of `source`. `since`: only what was written from then on.

    Audit files are read from the admin port with `token`, or with `runs_commands` by a command in the container.
    """

    source: ClientConfig
    namespace: str = NAMESPACE
    selector: str = SELECTOR
    since: datetime | None = None
    token: str = field(default="", repr=False)
    runs_commands: bool = False

    @property
    def pods_path(self) -> str:
        """Return the path of the pods in the API."""
        return f"/api/v1/namespaces/{self.namespace}/pods"


@dataclass(frozen=True, slots=True)
class PrintedLog:
    """The log of one container of a replica; with `previous`, of the container before its last restart."""

    name: str
    pod: str
    container: str
    previous: bool
    most_bytes: ClassVar[int] = 1024**3

    def chunks(self, server: ApiServer, selection: ReplicaSelection) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the log.

        Raises:
            ApiServerError: the log cannot be read to its end.
        """
        query: dict[str, str | int] = {"container": self.container, "limitBytes": self.most_bytes}
        if self.previous:
            query["previous"] = "true"
        if selection.since is not None:
            query["sinceTime"] = selection.since.isoformat(timespec="seconds")
        return server.chunks(f"{selection.pods_path}/{self.pod}/log", query, _SILENCE_SECONDS)


@dataclass(frozen=True, slots=True)
class AuditFiles:
    """The audit file at `path` in the container of a replica, and its rotated files."""

    name: str
    pod: str
    container: str
    path: str
    is_running: bool
    admin_port: int
    # The server keeps 4 GiB by default.
    most_bytes: ClassVar[int] = 8 * 1024**3

    async def chunks(self, server: ApiServer, selection: ReplicaSelection) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an archive of the files.

        Raises:
            ApiServerError: the container does not run, or the files cannot be read to their end.
        """
        if not self.is_running:
            raise ApiServerError(f"its container does not run, and only there {self.path} can be read")
        if not (selection.token or selection.runs_commands):
            raise ApiServerError(
                f"its records are in {self.path}: give --admin-token-file to read it from the admin port, or --exec to "
                "run a command in the container"
            )
        since = selection.since and selection.since.isoformat(timespec="seconds")
        pod = f"{selection.pods_path}/{self.pod}"
        if selection.token:
            target = f"/audit?{urlencode({'since': since})}" if since else "/audit"
            headers, right = {"Authorization": f"Bearer {selection.token}"}, "pods/portforward"
            read = http_get(server, pod, self.admin_port, target, headers, _SILENCE_SECONDS)
        else:
            command = (_PROGRAM, "audit", "export", *(("--since", since) if since else ()), "--", self.path)
            read, right = printed_by(server, pod, self.container, command, _SILENCE_SECONDS), "pods/exec"
        try:
            async with aclosing(read):
                async for chunk in read:
                    yield chunk
        except ApiServerError as error:
            remedy = ""
            if error.code == FORBIDDEN:
                remedy = f"to read an audit file you need the verbs get and create on {right} in this namespace"
            elif error.code == NOT_FOUND or error.code >= _INTERNAL_ERROR:
                remedy = "the container may have ended: try again"
            # The API server gives no reason if only the verb `create` is missing: its text ends in a colon then.
            words = f"{str(error).rstrip(': ')}: {remedy}" if remedy else str(error)
            raise ApiServerError(words, error.code) from error


Stream = PrintedLog | AuditFiles


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
    async with selection.source.connect() as server:
        if selection.source.kubeconfig is None:
            echo(f"cluster: {server.cluster}", err=True)
        streams = [stream for pod in await _replicas(server, selection) for stream in _streams_of(pod)]
        limit = asyncio.Semaphore(_AT_ONCE)
        reads = (_read(server, selection, stream, folder / str(number), limit) for number, stream in enumerate(streams))
        return await asyncio.gather(*reads)


async def _replicas(server: ApiServer, selection: ReplicaSelection) -> Sequence[JsonObject]:
    """Return the selected pods.

    Raises:
        ApiServerError: they cannot be listed.
        InvalidInput: there is none, or there are too many.
    """
    pods: list[dict[str, Any]] = []

    async def take(items: list[dict[str, Any]], begins: bool) -> None:
        if begins:
            pods.clear()
        pods.extend(items)
        if len(pods) > _MOST_REPLICAS:
            detail = f"selects more than {_MOST_REPLICAS} pods; give the labels of the webhook's pods"
            raise InvalidInput([invalid("--selector", selection.selector, detail)])

    await list_pages(server, selection.pods_path, {"labelSelector": selection.selector}, take, _PAGE_SIZE)
    if not pods:
        detail = f"selects no pod in namespace {selection.namespace}; see --webhook-namespace"
        raise InvalidInput([invalid("--selector", selection.selector, detail)])
    return sorted(pods, key=_name_of)


async def _read(
    server: ApiServer, selection: ReplicaSelection, stream: Stream, path: Path, limit: asyncio.Semaphore
) -> Download:
    """Write the bytes of the stream to `path`.

    Raises:
        click.ClickException: the file cannot be written.
    """
    problem, size_bytes = "", 0
    async with limit:
        try:
            with path.open("wb") as file:
                async with aclosing(stream.chunks(server, selection)) as chunks:
                    async for chunk in chunks:
                        size_bytes += file.write(chunk)
                        if size_bytes >= stream.most_bytes:
                            problem = f"they are larger than {stream.most_bytes} bytes: give --since"
                            break
        except ApiServerError as error:
            problem = str(error)
        except OSError as error:
            raise not_writable(error, path.parent.parent) from error
    return Download(stream.name, path, isinstance(stream, AuditFiles), problem)


def not_writable(error: OSError, folder: Path) -> click.ClickException:
    """Return the error of a temporary folder that cannot take the records."""
    remedy = "the records that are read are kept there: give --since, or set TMPDIR to a folder with more room"
    return click.ClickException(f"TMPDIR {folder}: {error.strerror or error}: {remedy}")


def _streams_of(pod: JsonObject) -> Sequence[Stream]:
    """Return what holds the records of a replica.

    A replica that prints them has no log before its container has started, and two after a restart.
    """
    name = _name_of(pod)
    statuses = {str(each.get("name")): each for each in _objects(pod, "status", "containerStatuses")}
    containers = {str(each.get("name")): each for each in _objects(pod, "spec", "containers")}
    container = _CONTAINER if _CONTAINER in containers else next(iter(containers), _CONTAINER)
    status = statuses.get(container, {})
    path = _option(containers.get(container, {}), pod, "audit", _STANDARD_OUTPUT)
    if path != _STANDARD_OUTPUT:
        listen = _option(containers.get(container, {}), pod, "admin-listen", "")
        port = listen.rpartition(":")[2]
        admin_port = int(port) if port.isdecimal() else _ADMIN_PORT
        return [AuditFiles(name, name, container, path, bool(value_of(status, "state", "running")), admin_port)]
    current = [PrintedLog(name, name, container, previous=False)]
    if value_of(status, "lastState", "terminated"):
        return [PrintedLog(f"{name} (before its restart)", name, container, previous=True), *current]
    return current if any(value_of(status, "state", state) for state in ("running", "terminated")) else []


def _name_of(pod: JsonObject) -> str:
    return str(value_of(pod, "metadata", "name"))


def _option(container: JsonObject, pod: JsonObject, name: str, default: str) -> str:
    """Return the value of this option of `serve`: of the arguments, else of the environment, else the default."""
    variables = _variables(container, pod)
    words = [*map(str, container.get("command") or ()), *map(str, container.get("args") or ())]
    value = variables.get(f"PLACEMENT_WEBHOOK_{name.replace('-', '_').upper()}") or default
    for index, word in enumerate(words):
        if word.startswith(f"--{name}="):
            value = _expanded(word.removeprefix(f"--{name}="), variables)
        elif word == f"--{name}" and index + 1 < len(words):
            value = _expanded(words[index + 1], variables)
    return value


def _variables(container: JsonObject, pod: JsonObject) -> dict[str, str]:
    """Return the environment of the container as far as the pod shows it."""
    variables: dict[str, str] = {}
    for each in _objects(container, "env"):
        field_path = value_of(each, "valueFrom", "fieldRef", "fieldPath")
        if field_path in _FIELDS:
            variables[str(each.get("name"))] = str(value_of(pod, *_FIELDS[field_path]))
        elif isinstance(value := each.get("value"), str):
            variables[str(each.get("name"))] = _expanded(value, variables)
    return variables


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` with its references `$(NAME)` replaced; one to an unknown variable stays.

    Source: k8s.io/kubernetes/third_party/forked/golang/expansion/expand.go
    """
    return _REFERENCE.sub(lambda found: variables.get(found[1], found[0]) if found[1] else "$", text)


def _objects(content: JsonObject, *path: str) -> Iterator[JsonObject]:
    found = value_of(content, *path)
    return (each for each in found if isinstance(each, Mapping)) if isinstance(found, list) else iter(())

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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import click

from webhook.audit.sources import Download
from webhook.cli.inputs.live import ask
from webhook.doctor.cluster import listed
from webhook.doctor.workloads import options
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
# The server keeps 4 GiB of audit files by default.
_MOST_LOG_BYTES, _MOST_ARCHIVE_BYTES = 1024**3, 8 * 1024**3
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


class _Stream(NamedTuple):
    """What holds records of a replica: the log of a container, or an archive of its audit files."""

    name: str
    chunks: AsyncGenerator[bytes, None]
    is_archive: bool = False


def download(selection: ReplicaSelection, folder: Path) -> Sequence[Download]:
    """Write the logs and audit files of the replicas into `folder`.

    Raises:
        InvalidInput: the kubeconfig is wrong, or no pod is selected.
        click.ClickException: the pods cannot be listed, or the folder cannot take the files.
    """
    try:
        return ask(selection.source, partial(_download, selection=selection, folder=folder), prints_name=True)
    except ApiServerError as error:
        raise click.ClickException(str(error)) from error


async def _download(server: ApiServer, selection: ReplicaSelection, folder: Path) -> Sequence[Download]:
    replicas, limit = _Replicas(server, selection), asyncio.Semaphore(_AT_ONCE)
    streams = [stream for pod in await replicas.pods() for stream in replicas.streams_of(pod)]
    return await asyncio.gather(*(_read(stream, folder / str(number), limit) for number, stream in enumerate(streams)))


class _Replicas:
    """The selected pods of a cluster. Their streams are read when they are iterated over."""

    def __init__(self, server: ApiServer, selection: ReplicaSelection) -> None:
        self._server, self._selection = server, selection
        self._path = f"/api/v1/namespaces/{selection.namespace}/pods"
        self._since = selection.since.isoformat(timespec="seconds") if selection.since else None

    async def pods(self) -> Sequence[JsonObject]:
        """Return the pods in the order of their names.

        Raises:
            ApiServerError: they cannot be listed.
            InvalidInput: there is none, or there are too many.
        """
        pods: list[dict[str, Any]] = []
        selector, namespace = self._selection.selector, self._selection.namespace

        async def take(items: list[dict[str, Any]], begins: bool) -> None:
            if begins:
                pods.clear()
            pods.extend(items)
            if len(pods) > _MOST_REPLICAS:
                detail = f"selects more than {_MOST_REPLICAS} pods; give the labels of the webhook's pods"
                raise InvalidInput([invalid("--selector", selector, detail)])

        await list_pages(self._server, self._path, {"labelSelector": selector}, take, _PAGE_SIZE)
        if not pods:
            detail = f"selects no pod in namespace {namespace}; see --webhook-namespace"
            raise InvalidInput([invalid("--selector", selector, detail)])
        return sorted(pods, key=_name_of)

    def streams_of(self, pod: JsonObject) -> Iterator[_Stream]:
        """Yield what holds the records of a replica.

        A replica that prints them has no log before its container has started, and two after a restart.
        """
        name = _name_of(pod)
        statuses = {str(each.get("name")): each for each in listed(pod, "status", "containerStatuses")}
        containers = {str(each.get("name")): each for each in listed(pod, "spec", "containers")}
        container = _CONTAINER if _CONTAINER in containers else next(iter(containers), _CONTAINER)
        status, content = statuses.get(container, {}), containers.get(container, {})
        file = _option(content, pod, "audit", _STANDARD_OUTPUT)
        if file != _STANDARD_OUTPUT:
            port = _option(content, pod, "admin-listen", "").rpartition(":")[2]
            is_running = bool(value_of(status, "state", "running"))
            admin_port = int(port) if port.isdecimal() else _ADMIN_PORT
            yield _Stream(name, self._archive(name, container, file, admin_port, is_running), is_archive=True)
            return
        if has_restarted := bool(value_of(status, "lastState", "terminated")):
            yield _Stream(f"{name} (before its restart)", self._log(name, container, previous="true"))
        if has_restarted or any(value_of(status, "state", state) for state in ("running", "terminated")):
            yield _Stream(name, self._log(name, container))

    def _log(self, pod: str, container: str, **previous: str) -> AsyncGenerator[bytes, None]:
        query: dict[str, str | int] = {"container": container, "limitBytes": _MOST_LOG_BYTES, **previous}
        if self._since:
            query["sinceTime"] = self._since
        return self._server.chunks(f"{self._path}/{pod}/log", query, _SILENCE_SECONDS)

    async def _archive(
        self, name: str, container: str, file: str, admin_port: int, is_running: bool
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an archive of the audit file in a container and of its rotated files."""
        if not is_running:
            raise ApiServerError(f"its container does not run, and only there {file} can be read")
        if not (self._selection.token or self._selection.runs_commands):
            raise ApiServerError(
                f"its records are in {file}: give --admin-token-file to read it from the admin port, or --exec to "
                "run a command in the container"
            )
        pod = f"{self._path}/{name}"
        if self._selection.token:
            target = f"/audit?{urlencode({'since': self._since})}" if self._since else "/audit"
            headers, right = {"Authorization": f"Bearer {self._selection.token}"}, "pods/portforward"
            read = http_get(self._server, pod, admin_port, target, headers, _SILENCE_SECONDS)
        else:
            command = (_PROGRAM, "audit", "export", *(("--since", self._since) if self._since else ()), "--", file)
            read, right = printed_by(self._server, pod, container, command, _SILENCE_SECONDS), "pods/exec"
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


async def _read(stream: _Stream, path: Path, limit: asyncio.Semaphore) -> Download:
    """Write the bytes of the stream to `path`."""
    most_bytes = _MOST_ARCHIVE_BYTES if stream.is_archive else _MOST_LOG_BYTES
    problem, size_bytes = "", 0
    async with limit:
        try:
            with path.open("wb") as file:
                async with aclosing(stream.chunks) as chunks:
                    async for chunk in chunks:
                        size_bytes += file.write(chunk)
                        if size_bytes >= most_bytes:
                            problem = f"they are larger than {most_bytes} bytes: give --since"
                            break
        except ApiServerError as error:
            problem = str(error)
        except OSError as error:
            raise not_writable(error, path.parent.parent) from error
    return Download(stream.name, path, stream.is_archive, problem)


def not_writable(error: OSError, folder: Path) -> click.ClickException:
    """Return the error of a temporary folder that cannot take the records."""
    remedy = "the records that are read are kept there: give --since, or set TMPDIR to a folder with more room"
    return click.ClickException(f"TMPDIR {folder}: {error.strerror or error}: {remedy}")


def _name_of(pod: JsonObject) -> str:
    return str(value_of(pod, "metadata", "name"))


def _option(container: JsonObject, pod: JsonObject, name: str, default: str) -> str:
    """Return the value of this option of `serve`: of the arguments, else of the environment, else the default."""
    variables = _variables(container, pod)
    words = [_expanded(str(word), variables) for key in ("command", "args") for word in container.get(key) or ()]
    env = [{"name": variable, "value": value} for variable, value in variables.items()]
    return [default, *options({"args": words, "env": env}, f"--{name}")][-1]


def _variables(container: JsonObject, pod: JsonObject) -> dict[str, str]:
    """Return the environment of the container as far as the pod shows it."""
    variables: dict[str, str] = {}
    for each in listed(container, "env"):
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

"""Where the records of one replica are, and how they are read through the API server."""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from webhook.kube.documents import field as value_of
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_FOUND, ApiServer
from webhook.watch.exec_stream import FORBIDDEN, printed_by

CONTAINER = "webhook"
STANDARD_OUTPUT = "-"

_PROGRAM = "placement-webhook"
_VARIABLE = "PLACEMENT_WEBHOOK_AUDIT"
_SILENCE_SECONDS = 30.0
_INTERNAL_ERROR = 500
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z0-9._-]+)\)")
_FIELDS = {"metadata.name": ("metadata", "name"), "metadata.namespace": ("metadata", "namespace")}

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PrintedLog:
    """The log of one container of a replica; with `previous`, of the container before its last restart."""

    pod: str
    container: str
    previous: bool
    most_bytes: ClassVar[int] = 1024**3

    @property
    def name(self) -> str:
        """Return the name of the log in output."""
        return f"{self.pod} (before its restart)" if self.previous else self.pod

    def chunks(self, server: ApiServer, pods: str, since: datetime | None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the log; `pods` is the path of the pods.

        Raises:
            ApiServerError: the log cannot be read to its end.
        """
        query: dict[str, str | int] = {"container": self.container, "limitBytes": self.most_bytes}
        if self.previous:
            query["previous"] = "true"
        if since is not None:
            query["sinceTime"] = since.isoformat(timespec="seconds")
        return server.chunks(f"{pods}/{self.pod}/log", query, _SILENCE_SECONDS)


@dataclass(frozen=True, slots=True)
class AuditFiles:
    """The audit file at `path` in the container of a replica, and its rotated files."""

    pod: str
    container: str
    path: str
    is_running: bool
    # The server keeps 4 GiB by default.
    most_bytes: ClassVar[int] = 8 * 1024**3

    @property
    def name(self) -> str:
        """Return the name of the replica."""
        return self.pod

    async def chunks(self, server: ApiServer, pods: str, since: datetime | None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an archive of the files, which our program prints in the container.

        Raises:
            ApiServerError: the container does not run, or the files cannot be read to their end.
        """
        if not self.is_running:
            raise ApiServerError(f"its container does not run, and only there {self.path} can be read")
        bounds = () if since is None else ("--since", since.isoformat(timespec="seconds"))
        command = (_PROGRAM, "audit", "export", *bounds, "--", self.path)
        try:
            printed = printed_by(server, f"{pods}/{self.pod}", self.container, command, _SILENCE_SECONDS)
            async with aclosing(printed):
                async for chunk in printed:
                    yield chunk
        except ApiServerError as error:
            remedy = _remedy(error.code)
            # The API server gives no reason if only the verb `create` is missing: its text ends in a colon then.
            words = f"{str(error).rstrip(': ')}: {remedy}" if remedy else str(error)
            raise ApiServerError(words, error.code) from error


def _remedy(code: int) -> str:
    """Return what a reader can do about a refused command."""
    if code == FORBIDDEN:
        return "to read an audit file you need the verbs get and create on pods/exec in this namespace"
    if code == NOT_FOUND or code >= _INTERNAL_ERROR:
        return "the container may have ended: try again"
    return ""


def streams_of(pod: JsonObject) -> Sequence[PrintedLog | AuditFiles]:
    """Return what holds the records of a replica.

    A replica that prints them has no log before its container has started, and two after a restart.
    """
    name = str(value_of(pod, "metadata", "name"))
    statuses = {str(each.get("name")): each for each in _objects(pod, "status", "containerStatuses")}
    containers = {str(each.get("name")): each for each in _objects(pod, "spec", "containers")}
    container = CONTAINER if CONTAINER in containers else next(iter(containers), CONTAINER)
    status = statuses.get(container, {})
    path = _audit_path(containers.get(container, {}), pod)
    if path != STANDARD_OUTPUT:
        return [AuditFiles(name, container, path, bool(value_of(status, "state", "running")))]
    has_run = any(value_of(status, "state", state) for state in ("running", "terminated"))
    logs = [PrintedLog(name, container, previous=True)] if value_of(status, "lastState", "terminated") else []
    return [*logs, PrintedLog(name, container, previous=False)] if has_run or logs else []


def _audit_path(container: JsonObject, pod: JsonObject) -> str:
    """Return the value of `serve --audit`: of the arguments, else of the environment, else the default."""
    variables = _variables(container, pod)
    words = [*map(str, container.get("command") or ()), *map(str, container.get("args") or ())]
    path = variables.get(_VARIABLE) or STANDARD_OUTPUT
    for index, word in enumerate(words):
        if word.startswith("--audit="):
            path = _expanded(word.removeprefix("--audit="), variables)
        elif word == "--audit" and index + 1 < len(words):
            path = _expanded(words[index + 1], variables)
    return path


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

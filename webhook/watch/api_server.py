"""A connection to an API server: read lists and watches and write objects, as raw JSON.

The `kubernetes` package reads the configuration, authenticates and connects. Its models are not used, because they take
ten times as long as decoding and lose fields that are newer than the package.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
from yaml import YAMLError

from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, invalid
from webhook.kube.api.kubeconfig import read_kubeconfig
from webhook.watch.api_errors import (
    ApiServerError,
    UnreachableError,
    lines_of,
    message_of,
    parsed,
    read_body,
    refusal,
)
from webhook.watch.trust import trusting_as_go

Query = Mapping[str, str | int]
Body = JsonObject | list[JsonObject]

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"
GONE = 410
NOT_FOUND = 404
CONFLICT = 409
NOT_READABLE = (403, NOT_FOUND)
"""The status codes of a kind that this client may not read or that the API server does not serve."""

METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The media type of a list of only the metadata."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The source of the client configuration.

    It is the cluster in which this process runs, or a kubeconfig with its current context or `context`. A kubeconfig of
    None means that of kubectl: $KUBECONFIG or ~/.kube/config.
    """

    kubeconfig: Path | None = None
    in_cluster: bool = False
    context: str | None = None

    def connect(self) -> "ApiServer":
        """Return a connection, a context manager. It reads tokens and certificates when it is entered."""
        return ApiServer(self)

    async def read(self) -> tuple[Any, str]:
        """Return the Configuration and the cluster's name, read once because a kubeconfig can be a pipe.

        Raises:
            InvalidInput: the kubeconfig is missing or invalid, or the process has no service account.
        """
        # Not at the top: a server without a live view would take 10 MiB more.
        from kubernetes.aio import client, config

        configuration: Any = client.Configuration()
        load_in_cluster: Any = config.load_incluster_config
        load_kubeconfig: Any = config.load_kube_config_from_dict
        place, shown = "--in-cluster" if self.in_cluster else "--kubeconfig", str(self.kubeconfig or "")
        try:
            if self.in_cluster:
                load_in_cluster(client_configuration=configuration)
                return configuration, f"the cluster of this pod, {configuration.host}"
            found = read_kubeconfig(self.kubeconfig, self.context)
            await load_kubeconfig(found.content, context=found.context, client_configuration=configuration)
        except InvalidInput:
            raise
        except (config.ConfigException, OSError, ValueError, TypeError, AttributeError, YAMLError) as error:
            detail = f"no cluster can be read from it: {' '.join(str(error).split())}"
            raise InvalidInput([invalid(place, shown, detail)]) from error
        return configuration, f"context {found.context}, {found.server}"


Connect = Callable[[], AbstractAsyncContextManager["ApiServer"]]


class ApiServer:
    """A connection to the API server; a context manager. `cluster` names the cluster once it is entered."""

    def __init__(self, client_config: ClientConfig) -> None:
        self._client_config = client_config
        self.cluster = ""
        self._client: Any = None

    async def __aenter__(self) -> Self:
        try:
            configuration, self.cluster = await self._client_config.read()
            from kubernetes.aio.client import ApiClient

            self._client = ApiClient(configuration)
            trusting_as_go(self._client.rest_client.ssl_context)
        except OSError as error:  # a certificate file
            raise ApiServerError(f"the client cannot be configured: {error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def get(self, path: str, query: Query, accept: str = _JSON, *, most_bytes: int | None = None) -> JsonObject:
        """Return the object at `path`, in the media type `accept`.

        Raises:
            ApiServerError: the request failed or timed out.
            TooLargeError: the response is larger than `most_bytes`.
        """
        headers = {"Accept": accept}
        return parsed("GET", path, await self._body("GET", path, query, headers, most_bytes=most_bytes))

    async def find(self, path: str) -> JsonObject | None:
        """Return the object at `path`, or None if there is none.

        Raises:
            ApiServerError: the request failed for another reason, or timed out.
        """
        try:
            return await self.get(path, {})
        except ApiServerError as error:
            if error.code != NOT_FOUND:
                raise
            return None

    async def create(self, path: str, content: JsonObject, query: Query) -> JsonObject:
        """Create an object from `content` in the collection at `path`, and return it.

        Raises:
            ApiServerError: the request failed or timed out. All methods that write raise this error.
        """
        return await self._written("POST", path, query, _JSON, content)

    async def patch(self, path: str, body: Body, query: Query) -> JsonObject:
        """Patch the object by a merge patch (dict) or a JSON patch (list), and return it."""
        return await self._written("PATCH", path, query, _JSON_PATCH if isinstance(body, list) else _MERGE_PATCH, body)

    async def apply(self, path: str, content: JsonObject, query: Query) -> JsonObject:
        """Create or change the object at `path` by server-side apply of `content`, and return it."""
        return await self._written("PATCH", path, query, _APPLY_PATCH, content)

    async def delete(self, path: str, content: JsonObject) -> None:
        """Delete the object at `path`, with the DeleteOptions `content`."""
        await self._written("DELETE", path, {}, _JSON, content)

    async def _written(self, method: str, path: str, query: Query, media_type: str, body: Body) -> JsonObject:
        headers = {"Accept": _JSON, "Content-Type": media_type}
        return parsed(method, path, await self._body(method, path, query, headers, body))

    async def body(self, path: str, query: Query, most_bytes: int) -> bytes:
        """Return the JSON at `path`, which `parsed` decodes.

        Raises:
            ApiServerError: the request failed or timed out.
            TooLargeError: the response is larger than `most_bytes`.
        """
        return await self._body("GET", path, query, {"Accept": _JSON}, most_bytes=most_bytes)

    async def _body(
        self,
        method: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        body: Body | None = None,
        most_bytes: int | None = None,
    ) -> bytes:
        response = await self._request(method, path, query, headers, _ANSWER_SECONDS, body)
        try:
            return await read_body(response, most_bytes)
        except (aiohttp.ClientError, OSError) as error:
            raise ApiServerError(f"{method} {path}: the response is incomplete: {message_of(error)}") from error
        finally:
            response.release()

    async def chunks(self, path: str, query: Query, silence_seconds: float) -> AsyncGenerator[bytes, None]:
        """Yield the bytes that have arrived, until the server closes the response.

        Raises:
            ApiServerError: the request failed, or no byte arrived for `silence_seconds`.
        """
        response = await self._request("GET", path, query, {"Accept": _JSON}, silence_seconds)
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise ApiServerError(f"GET {path}: the response is incomplete: {message_of(error)}") from error
        finally:
            response.close()

    async def lines(
        self, path: str, query: Query, silence_seconds: float, gate: asyncio.Lock | None = None
    ) -> AsyncGenerator[list[bytes], None]:
        """Yield batches of the lines that have arrived, until the server closes the response.

        `gate` is as in `lines_of`.

        Raises:
            ApiServerError: the request failed, the response ended within a line, or no byte arrived for
                `silence_seconds`.
            TooLargeError: a line is longer than OBJECT_BYTES.
        """
        async with aclosing(self.chunks(path, query, silence_seconds)) as chunks:
            async for lines in lines_of(chunks, path, gate or asyncio.Lock()):
                yield lines

    async def _request(
        self,
        method: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        silence_seconds: float,
        body: Body | None = None,
    ) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=silence_seconds)
        try:
            method, url, sent_headers, sent_body, *_ = await self._client.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params=dict(headers),
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._client.call_api(method, url, sent_headers, sent_body, _request_timeout=timeout)
        except _client_errors() as error:
            raise UnreachableError(f"the API server does not answer: {message_of(error)}") from error
        response: aiohttp.ClientResponse = answer.response
        if response.status not in (200, 201):
            raise await refusal(method, path, response)
        return response


def _client_errors() -> tuple[type[Exception], ...]:
    from kubernetes.aio.config import ConfigException

    return aiohttp.ClientError, OSError, ConfigException

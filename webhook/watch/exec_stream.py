"""Run a command in a container through the API server, and read what it prints."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import aiohttp
import orjson

from webhook.documents.documents import field
from webhook.watch.api_errors import ApiServerError, message_of
from webhook.watch.api_server import ApiServer, WebSocket

FORBIDDEN = 403

# The subprotocol in which each message begins with the number of its channel.
CHANNELS = "v4.channel.k8s.io"
_STANDARD_OUTPUT, _STANDARD_ERROR, _STATUS = 1, 2, 3
_MOST_ERROR_BYTES = 2048


async def printed_by(
    server: ApiServer, pod: str, container: str, command: Sequence[str], silence_seconds: float
) -> AsyncGenerator[bytes, None]:
    """Yield what `command` prints to its standard output in a container of the pod at the path `pod`.

    Each message begins with the number of its channel; the status ends the stream.
    Source: k8s.io/kubelet/pkg/cri/streaming/remotecommand/websocket.go,
    k8s.io/streaming/pkg/httpstream/wsstream/conn.go

    Raises:
        ApiServerError: the request failed (403: the verbs `get` and `create` on pods/exec are both needed), the command
            failed, the stream ended early, or no byte arrived for `silence_seconds`.
    """
    path = f"{pod}/exec"
    query = [("container", container), ("stdout", "true"), ("stderr", "true")]
    socket = await server.web_socket(path, [*query, *(("command", each) for each in command)], CHANNELS)
    errors = b""
    try:
        while message := await next_message(socket, path, silence_seconds):
            channel, content = message[0], message[1:]
            if channel == _STATUS:
                _check(content, path, errors)
                return
            if channel == _STANDARD_OUTPUT and content:
                yield content
            elif channel == _STANDARD_ERROR:
                errors = (errors + content)[:_MOST_ERROR_BYTES]
    finally:
        await socket.close()
    raise ApiServerError(f"GET {path}: the response is incomplete: it has no status")


async def next_message(socket: WebSocket, path: str, silence_seconds: float) -> bytes:
    """Return the next message; empty if there is none any more."""
    try:
        message = await socket.receive(timeout=silence_seconds)
    except TimeoutError as error:
        raise ApiServerError(f"GET {path}: nothing arrived for {silence_seconds:g} s") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ApiServerError(f"GET {path}: the response is incomplete: {message_of(error)}") from error
    if message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
        content: bytes | str = message.data
        return content.encode() if isinstance(content, str) else content
    return b""


def _check(content: bytes, path: str, errors: bytes) -> None:
    """Raise the failure that the Status in `content` reports."""
    try:
        status = orjson.loads(content)
    except ValueError:
        status = None
    if isinstance(status, Mapping) and status.get("status") == "Success":
        return
    shown: Any = field(status, "message") if isinstance(status, Mapping) else None
    printed = " ".join(errors.decode("utf-8", "replace").split())
    raise ApiServerError(f"GET {path}: {shown or 'it failed'}{f': {printed}' if printed else ''}")

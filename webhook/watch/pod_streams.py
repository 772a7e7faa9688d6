"""Streams to a pod through the API server: what a command prints, as `kubectl exec`, and an HTTP request to a port."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

import aiohttp

from webhook.documents.documents import field
from webhook.watch.api_errors import ApiServerError, message_of, status_in
from webhook.watch.api_server import ApiServer

FORBIDDEN = 403

# The subprotocol in which each message begins with the number of its channel.
_CHANNELS = "v4.channel.k8s.io"
_STANDARD_OUTPUT, _STANDARD_ERROR, _STATUS = 1, 2, 3
_DATA, _ERROR = 0, 1
_PORT_BYTES = 2
_MOST_HEAD_BYTES = 16 * 1024
_MOST_ERROR_BYTES = 2048


async def printed_by(
    server: ApiServer, pod: str, container: str, command: Sequence[str], silence_seconds: float
) -> AsyncGenerator[bytes, None]:
    """Yield what `command` prints to its standard output in a container of the pod at the path `pod`.

    The status ends the stream.
    Source: k8s.io/kubelet/pkg/cri/streaming/remotecommand/websocket.go

    Raises:
        ApiServerError: the request failed (403: the verbs `get` and `create` on pods/exec are both needed), the command
            failed, the stream ended early, or no byte arrived for `silence_seconds`.
    """
    path, errors = f"{pod}/exec", b""
    query = [("container", container), ("stdout", "true"), ("stderr", "true"), *(("command", each) for each in command)]
    async with aclosing(_messages(server, path, query, silence_seconds)) as messages:
        async for channel, content in messages:
            if channel == _STATUS:
                _check(content, path, errors)
                return
            if channel == _STANDARD_OUTPUT and content:
                yield content
            elif channel == _STANDARD_ERROR:
                errors = (errors + content)[:_MOST_ERROR_BYTES]
    raise ApiServerError(f"GET {path}: the response is incomplete: it has no status")


async def http_get(
    server: ApiServer, pod: str, port: int, target: str, headers: Mapping[str, str], silence_seconds: float
) -> AsyncGenerator[bytes, None]:
    """Yield the body of the answer to `GET target` on `port` of the pod at the path `pod`.

    HTTP/1.0: the body is not cut into chunks, and ends with the connection.

    Raises:
        ApiServerError: the request failed (403: the verbs `get` and `create` on pods/portforward are both needed),
            nothing listens on the port, the answer is not 200, or no byte arrived for `silence_seconds`.
    """
    place = f"GET {pod}:{port}{target.partition('?')[0]}"
    lines = [f"GET {target} HTTP/1.0", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    request = "".join(f"{line}\r\n" for line in (*lines, "")).encode()
    head, body_begun, refused = b"", False, ""
    async with aclosing(_answered(server, pod, port, request, silence_seconds)) as pieces:
        async for piece in pieces:
            if body_begun:
                yield piece
                continue
            # Of a refusal, this is all of the answer: the stream is read to its end, so that it closes in order.
            head = (head + piece)[:_MOST_HEAD_BYTES]
            top, end, body = head.partition(b"\r\n\r\n")
            status = top.split(b"\r\n", 1)[0].decode("ascii", "replace").partition(" ")[2]
            body_begun = bool(end) and status.startswith("200 ")
            if body_begun and body:
                yield body
            elif end:
                refused = " ".join(f"{status}: {body.decode('utf-8', 'replace')}".split())
    if not body_begun:
        raise ApiServerError(f"{place}: {refused or 'the response is incomplete: it has no head'}")


async def _answered(
    server: ApiServer, pod: str, port: int, request: bytes, silence_seconds: float
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes that come back for `request`. Each channel begins with the number of its port.

    Source: k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go
    """
    path = f"{pod}/portforward"
    begun, errors = set[int](), b""
    sent = bytes([_DATA]) + request
    async with aclosing(_messages(server, path, [("ports", str(port))], silence_seconds, sent)) as messages:
        async for channel, content in messages:
            if channel not in begun and len(content) == _PORT_BYTES:
                begun.add(channel)
            elif channel == _DATA and content:
                yield content
            elif channel == _ERROR:
                errors = (errors + content)[:_MOST_ERROR_BYTES]
    if errors:
        raise ApiServerError(f"GET {path}: {_one_line(errors)}")


async def _messages(
    server: ApiServer, path: str, query: Sequence[tuple[str, str]], silence_seconds: float, sent: bytes = b""
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yield each message as the number of its channel and its content, after `sent` was sent.

    Source: k8s.io/streaming/pkg/httpstream/wsstream/conn.go
    """
    socket = await server.web_socket(path, query, _CHANNELS)
    try:
        if sent:
            await socket.send_bytes(sent)
        while True:
            try:
                message = await socket.receive(timeout=silence_seconds)
            except TimeoutError as error:
                raise ApiServerError(f"GET {path}: nothing arrived for {silence_seconds:g} s") from error
            except (aiohttp.ClientError, OSError) as error:
                raise ApiServerError(f"GET {path}: the response is incomplete: {message_of(error)}") from error
            if message.type not in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT) or not message.data:
                return
            content = message.data.encode() if isinstance(message.data, str) else message.data
            yield content[0], content[1:]
    finally:
        await socket.close()


def _check(content: bytes, path: str, errors: bytes) -> None:
    """Raise the failure that the Status in `content` reports."""
    status = status_in(content)
    if status.get("status") == "Success":
        return
    shown = field(status, "message")
    printed = _one_line(errors)
    raise ApiServerError(f"GET {path}: {shown or 'it failed'}{f': {printed}' if printed else ''}")


def _one_line(errors: bytes) -> str:
    return " ".join(errors.decode("utf-8", "replace").split())

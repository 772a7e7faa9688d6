"""Send an HTTP request to a port of a pod through the API server, as `kubectl port-forward` does."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer
from webhook.watch.exec_stream import CHANNELS, next_message

_DATA, _ERROR = 0, 1
_PORT_BYTES = 2
_MOST_HEAD_BYTES = 16 * 1024
_MOST_ERROR_BYTES = 2048


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
    socket = await server.web_socket(path, [("ports", str(port))], CHANNELS)
    begun, errors = set[int](), b""
    try:
        await socket.send_bytes(bytes([_DATA]) + request)
        while message := await next_message(socket, path, silence_seconds):
            channel, content = message[0], message[1:]
            if channel not in begun and len(content) == _PORT_BYTES:
                begun.add(channel)
            elif channel == _DATA and content:
                yield content
            elif channel == _ERROR:
                errors = (errors + content)[:_MOST_ERROR_BYTES]
    finally:
        await socket.close()
    if errors:
        raise ApiServerError(f"GET {path}: {' '.join(errors.decode('utf-8', 'replace').split())}")

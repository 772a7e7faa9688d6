"""What a command prints in a container is read whole, or the error says what is missing."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from tests.support.servers.fake_api import Answer, fake_api
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig
from webhook.watch.pod_streams import http_get, printed_by

POD = "/api/v1/namespaces/n/pods/p"
SUCCESS = b'\x03{"status": "Success"}'


def sending(*messages: bytes, hang: bool = False) -> Answer:
    """Answer with these messages and close, or go on waiting."""

    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        for message in messages:
            await socket.send_bytes(message)
        if hang:
            await socket.receive()
        await socket.close()
        return socket

    return answer


def printed(answer: Answer, folder: Path) -> bytes:
    """What is read of the command `cat 'a b'`."""

    async def run() -> bytes:
        async with fake_api(f"{POD}/exec", answer) as api, ClientConfig(api.kubeconfig(folder)).connect() as server:
            return b"".join([chunk async for chunk in printed_by(server, POD, "webhook", ("cat", "a b"), 0.05)])

    return asyncio.run(run())


def test_standard_output_is_returned(tmp_path: Path) -> None:
    assert printed(sending(b"\x01", b"\x01one ", b"\x02a warning", b"\x01two", SUCCESS), tmp_path) == b"one two"


def test_each_word_of_the_command_is_sent(tmp_path: Path) -> None:
    async def repeat(request: web.Request) -> web.StreamResponse:
        assert (request.query["container"], request.query["stdout"]) == ("webhook", "true")
        words = "|".join(request.query.getall("command")).encode()
        return await sending(b"\x01" + words, SUCCESS)(request)

    assert printed(repeat, tmp_path) == b"cat|a b"


@pytest.mark.parametrize(
    ("messages", "hang", "message"),
    [
        ([b"\x01one"], False, "the response is incomplete: it has no status"),
        ([b"\x01one"], True, "nothing arrived for 0.05 s"),
        ([b"\x02Error:\nno file", b'\x03{"status": "Failure", "message": "exit code 2"}'], False, "2: Error: no file"),
        ([b"\x02" + b"x" * 9000, b"\x03<html>"], False, "it failed: " + "x" * 2048),
    ],
    ids=["closed early", "silent", "failed", "a status that is none"],
)
def test_what_is_incomplete_is_an_error(tmp_path: Path, messages: Sequence[bytes], hang: bool, message: str) -> None:
    with pytest.raises(ApiServerError) as caught:
        printed(sending(*messages, hang=hang), tmp_path)

    assert str(caught.value).startswith(f"GET {POD}/exec: ")
    assert str(caught.value).endswith(message)


FORBIDDEN = 'pods "p" is forbidden: User "bob" cannot create resource "pods/exec" in API group ""'


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (403, orjson.dumps({"kind": "Status", "message": FORBIDDEN}), FORBIDDEN),
        (500, b'container not found\n ("webhook")\n', 'container not found ("webhook")'),
        (502, b"<html>" + b"x" * 100_000, "<html>" + "x" * 294),
        (503, b"", "Service Unavailable"),
    ],
    ids=["of the API server", "of the kubelet", "of a proxy", "none"],
)
def test_a_refused_request_has_the_words_of_the_answer(tmp_path: Path, status: int, body: bytes, message: str) -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body)

    with pytest.raises(ApiServerError) as caught:
        printed(refuse, tmp_path)

    assert (str(caught.value), caught.value.code) == (f"GET {POD}/exec: {status} {message}", status)


PORT, NUMBER = 8080, (8080).to_bytes(2, "little")
BEGUN = (b"\x00" + NUMBER, b"\x01" + NUMBER)


def fetched(folder: Path, *messages: bytes) -> bytes:
    """What is read of a file that a port of the pod serves."""

    async def run() -> bytes:
        answer = sending(*messages)
        async with (
            fake_api(f"{POD}/portforward", answer) as api,
            ClientConfig(api.kubeconfig(folder)).connect() as server,
        ):
            return b"".join([chunk async for chunk in http_get(server, POD, PORT, "/file", {}, 5.0)])

    return asyncio.run(run())


def test_body_has_what_follows_the_number_of_the_port(tmp_path: Path) -> None:
    assert fetched(tmp_path, *BEGUN, b"\x00HTTP/1.0 200 OK\r\n\r\none ", b"\x00tw", b"\x00o") == b"one two"


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([*BEGUN, b"\x01no"], f"{POD}/portforward: no"),
        ([*BEGUN, b"\x00HTTP/1.0 404 Not Found\r\n\r\nno file"], f"{POD}:{PORT}/file: 404 Not Found: no file"),
        (BEGUN, f"{POD}:{PORT}/file: the response is incomplete: it has no head"),
    ],
    ids=["nothing listens", "refused", "closed early"],
)
def test_port_that_gives_no_file_is_an_error(tmp_path: Path, messages: Sequence[bytes], message: str) -> None:
    with pytest.raises(ApiServerError) as caught:
        fetched(tmp_path, *messages)

    assert str(caught.value) == f"GET {message}"

"""Errors of an API server, and what is read of them."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.servers.fake_api import Answer, fake_api
from tests.support.servers.fake_events_api import fake_events_api
from webhook.watch.api_errors import ApiServerError, message_of
from webhook.watch.api_server import ClientConfig

PATH = "/api/v1/nodes"


def raw(body: bytes, status: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, status=status, content_type="application/json")

    return answer


def cut_short(status: int) -> Answer:
    """Break off in the middle of the body."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(b'{"message": "some')
        assert request.transport is not None
        request.transport.abort()
        return response

    return answer


def in_pieces(*pieces: bytes) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=403)
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.01)
        return response

    return answer


def error_of(answer: Answer, folder: Path) -> ApiServerError:
    """What `get` raises when the server answers so."""

    async def run() -> ApiServerError:
        async with fake_api(PATH, answer) as api, ClientConfig(api.kubeconfig(folder)).connect() as server:
            with pytest.raises(ApiServerError) as caught:
                await server.get(PATH, {})
            return caught.value

    return asyncio.run(run())


@pytest.mark.parametrize("answer", [raw(b"<html>"), raw(b""), raw(b'{"items": ['), cut_short(200)])
def test_answer_that_is_no_whole_json_broke_off(tmp_path: Path, answer: Answer) -> None:
    error = error_of(answer, tmp_path)
    assert str(error).startswith(f"GET {PATH}: the response is incomplete: ")
    assert not str(error).endswith(": ")
    assert error.code == 0


def test_answer_that_is_no_object_is_an_error(tmp_path: Path) -> None:
    assert str(error_of(raw(b"[]"), tmp_path)) == f"GET {PATH}: the response is not an object"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(raw(b'{"message": "nodes is forbidden"}', 403), "nodes is forbidden", id="a Status"),
        pytest.param(raw(b'{"message": ""}', 403), "Forbidden", id="no message"),
        pytest.param(raw(b"<html>", 403), "Forbidden", id="no JSON"),
        pytest.param(cut_short(403), "Forbidden", id="broken off"),
        pytest.param(in_pieces(b'{"message": ', b'"in pieces"}'), "in pieces", id="in pieces"),
        pytest.param(raw(b'{"message": "a"}'.rjust(16_384), 403), "a", id="of 16 KiB"),
        pytest.param(raw(b'{"message": "a"}'.rjust(16_385), 403), "Forbidden", id="larger than 16 KiB"),
    ],
)
def test_refusal_keeps_its_code_and_says_why_as_far_as_it_is_known(tmp_path: Path, answer: Answer, text: str) -> None:
    error = error_of(answer, tmp_path)
    assert (error.code, str(error)) == (403, f"GET {PATH}: 403 {text}")


def test_refusal_of_a_write_names_the_method_and_keeps_its_causes(tmp_path: Path) -> None:
    async def run() -> ApiServerError:
        async with fake_events_api() as api, ClientConfig(api.kubeconfig(tmp_path)).connect() as server:
            api.failures = [(403, "NamespaceTerminating")]
            with pytest.raises(ApiServerError) as caught:
                await server.create("/api/v1/namespaces/a/events", {}, {})
            return caught.value

    error = asyncio.run(run())
    assert str(error) == "POST /api/v1/namespaces/a/events: 403 because 403"
    assert (error.code, error.causes) == (403, frozenset({"NamespaceTerminating"}))


@pytest.mark.parametrize(
    ("error", "text"), [(OSError("connection reset"), "connection reset"), (TimeoutError(), "TimeoutError")]
)
def test_error_without_a_text_is_named_by_its_type(error: Exception, text: str) -> None:
    assert message_of(error) == text

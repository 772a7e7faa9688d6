"""Whatever goes wrong on the wire is an ApiServerError that says what was asked for and what came."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.servers.fake_events_api import fake_events_api
from tests.support.servers.http_server import http_server
from tests.support.servers.kubeconfigs import write_kubeconfig
from webhook.documents.field import InvalidInput
from webhook.watch.api_server import METADATA_LIST, ClientConfig


def test_object_is_created_and_patched(tmp_path: Path) -> None:
    events = "/api/v1/namespaces/team-a/events"

    async def run() -> None:
        async with fake_events_api() as api, ClientConfig(api.kubeconfig(tmp_path)).connect() as server:
            created = await server.create(events, {"metadata": {"name": "e"}, "count": 1}, {"fieldManager": "tests"})
            assert created == {"metadata": {"name": "e", "resourceVersion": "1"}, "count": 1}
            patched = await server.patch(f"{events}/e", {"count": 2}, {})
            assert (patched["count"], patched["metadata"]["resourceVersion"]) == (2, "2")
            assert api.asked == [f"POST {events}", f"PATCH {events}/e"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("source", "option"),
    [(ClientConfig(Path("/gone/kubeconfig")), "--kubeconfig"), (ClientConfig(in_cluster=True), "--in-cluster")],
)
def test_configuration_that_cannot_be_read_names_the_option(
    monkeypatch: pytest.MonkeyPatch, source: ClientConfig, option: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InvalidInput) as caught:
        asyncio.run(source.read())
    assert [error.path for error in caught.value.errors] == [option]


@pytest.mark.parametrize(("context", "used"), [(None, "a"), ("b", "b")])
def test_context_decides_the_server_and_the_user(tmp_path: Path, context: str | None, used: str) -> None:
    names = ("a", "b")
    kubeconfig = tmp_path / "kubeconfig"
    content = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}} for name in names],
        "users": [{"name": name, "user": {"token": f"of-{name}"}} for name in names],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in names],
        "current-context": "a",
    }
    kubeconfig.write_text(json.dumps(content))

    configuration, cluster = asyncio.run(ClientConfig(kubeconfig, context=context).read())

    assert (configuration.host, cluster) == (f"https://{used}.example", f"context {used}, https://{used}.example")
    assert configuration.api_key["BearerToken"] == f"Bearer of-{used}"


def test_each_request_names_the_media_types_that_it_sends_and_takes(tmp_path: Path) -> None:
    asked: list[tuple[str, str, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        sent = await request.read()
        asked.append((request.method, request.headers["Accept"], request.headers["Content-Type"] if sent else ""))
        return web.json_response({})

    async def run() -> None:
        async with (
            http_server(answer) as url,
            ClientConfig(write_kubeconfig(tmp_path, url)).connect() as server,
        ):
            await server.get("/a", {}, METADATA_LIST)
            await server.body("/a", {}, 100)
            await server.create("/a", {"a": 1}, {})
            await server.patch("/a", {"a": 1}, {})
            await server.patch("/a", [{"op": "test"}], {})
            await server.apply("/a", {"a": 1}, {})
            await server.delete("/a", {"preconditions": {}})

    asyncio.run(run())

    plain = "application/json"
    assert asked == [
        ("GET", METADATA_LIST, ""),
        ("GET", plain, ""),
        ("POST", plain, plain),
        ("PATCH", plain, "application/merge-patch+json"),
        ("PATCH", plain, "application/json-patch+json"),
        ("PATCH", plain, "application/apply-patch+yaml"),
        ("DELETE", plain, plain),
    ]

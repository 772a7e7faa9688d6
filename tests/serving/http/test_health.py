"""The admin port: liveness, readiness and metrics."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from tests.serving.story import HEAD, REVIEW, with_server
from tests.support.servers.server import Running
from webhook.serving.http.health import is_own_host

JSON = {"Content-Type": "application/json"}


def test_health_readiness_and_metrics_are_on_the_admin_port(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        for path in ("/healthz", "/readyz"):
            async with client.get(server.admin_url + path) as response:
                assert (response.status, await response.text()) == (200, "ok\n")
        async with client.get(server.admin_url + "/metrics") as response:
            assert response.content_type == "text/plain"
            assert "placement_webhook_admissions_in_flight 0.0" in await response.text()
        async with client.post(server.admin_url + "/mutate", data=REVIEW, headers=JSON) as response:
            assert response.status == 404

    with_server(story, tmp_path)


def test_a_stopping_server_is_not_ready_finishes_requests_in_flight_and_exits(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
        writer.write(HEAD + REVIEW[:10])
        await writer.drain()
        async with client.get(server.admin_url + "/metrics") as response:
            while "admissions_in_flight 1.0" not in await response.text():
                response = await client.get(server.admin_url + "/metrics")

        server.stop.set()
        status = 200
        while status == 200:
            async with client.get(server.admin_url + "/readyz") as response:
                status = response.status
        assert status == 503
        async with client.get(server.admin_url + "/healthz") as response:
            assert response.status == 200

        writer.write(REVIEW[10:])
        await writer.drain()
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"Connection: close" in answer
        assert b'"allowed":true' in answer
        writer.close()
        await server.done

    with_server(story, tmp_path, shutdown_delay_seconds=0.3)


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("", True),
        ("localhost:8080", True),
        ("127.0.0.1:41234", True),
        ("[::1]:8080", True),
        ("10.0.0.7:8080", True),
        ("placement-webhook-metrics:8080", True),
        ("placement-webhook-metrics.placement-webhook.svc:8080", True),
        ("placement-webhook-metrics.placement-webhook.svc.cluster.local", True),
        ("rebound.example.com:8080", False),
        ("x.svc.example.com", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("[", False),
    ],
)
def test_a_host_of_another_site_is_not_that_of_the_server(host: str, is_own: bool) -> None:
    assert is_own_host(host) is is_own


def test_a_page_whose_name_resolves_to_the_server_reads_no_policy(tmp_path: Path) -> None:
    async def story(server: Running, client: aiohttp.ClientSession) -> None:
        statuses = []
        for path in ("/policy", "/metrics", "/healthz", "/readyz"):
            async with client.get(server.admin_url + path, headers={"Host": "rebound.example.com:8080"}) as response:
                statuses.append(response.status)
        assert statuses == [403, 403, 200, 200]
        async with client.get(server.admin_url + "/policy") as response:
            assert response.status == 200

    with_server(story, tmp_path)

"""The admin port: liveness, readiness and metrics."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tests.serving.story import HEAD, REVIEW, with_server
from tests.support.servers.server import Running
from webhook.runtime.metrics import Metrics
from webhook.serving.http.bearer_token import BearerToken
from webhook.serving.http.health import Health, is_own_host

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


@pytest.mark.slow
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


def answer_of(health: Health, path: str, method: str = "GET") -> tuple[int, str]:
    """Return the status and the text of the response to a request from localhost."""
    response = asyncio.run(health.answer(make_mocked_request(method, path, {"Host": "localhost"})))
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    return response.status, response.body.decode()


def test_notes_and_reasons_are_those_of_readiness() -> None:
    reason = ["no view"]
    health = Health(Metrics(), lambda: "".join(reason), lambda: "a note", lambda: "")
    assert answer_of(health, "/readyz") == (503, "not ready: starting or stopping\na note\n")

    health.ready = True
    assert answer_of(health, "/readyz?verbose") == (503, "not ready: no view\na note\n")
    assert answer_of(health, "/healthz?timeout=1s") == (200, "ok\n")
    reason.clear()
    assert answer_of(health, "/readyz", "HEAD") == (200, "ok\na note\n")


def test_metrics_are_updated_before_each_scrape() -> None:
    metrics = Metrics()

    async def count() -> None:
        metrics.cluster_nodes.inc()

    health = Health(metrics, str, before_scrape=count)
    for scrape in ("1.0", "2.0"):
        assert f"\nplacement_webhook_cluster_nodes {scrape}\n" in answer_of(health, "/metrics")[1]
    answer_of(health, "/policy")
    assert "cluster_nodes 3.0" in answer_of(health, "/metrics")[1]


def test_a_request_without_the_token_learns_the_scheme(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    health = Health(Metrics(), str, policy=lambda: {"name": "p"}, token=BearerToken(tmp_path / "token"))

    with pytest.raises(web.HTTPUnauthorized) as refused:
        answer_of(health, "/policy")

    assert refused.value.headers["WWW-Authenticate"] == "Bearer"
    assert answer_of(health, "/healthz") == (200, "ok\n")


@pytest.mark.parametrize("host", ["localhost", "rebound.example.com:8080"])
@pytest.mark.parametrize(
    ("path", "given", "status"),
    [
        ("/policy", "Bearer secret", 200),
        ("/metrics", "Bearer secret", 200),
        ("/policy", "Bearer other", 401),
        ("/metrics", "", 401),
        ("/readyz", "", 503),
        ("/healthz", "Bearer other", 200),
    ],
)
def test_with_a_token_any_host_is_allowed_and_only_the_token_counts(
    tmp_path: Path, host: str, path: str, given: str, status: int
) -> None:
    (tmp_path / "token").write_text("secret\n")
    health = Health(Metrics(), str, token=BearerToken(tmp_path / "token"))
    request = make_mocked_request("GET", path, {"Host": host, "Authorization": given})

    async def status_of() -> int:
        try:
            return (await health.answer(request)).status
        except web.HTTPException as refusal:
            return refusal.status

    assert asyncio.run(status_of()) == status


def test_a_method_that_is_not_allowed_names_those_that_are() -> None:
    with pytest.raises(web.HTTPMethodNotAllowed) as refused:
        answer_of(Health(Metrics(), str), "/healthz", "POST")

    assert refused.value.headers["Allow"] == "GET,HEAD"

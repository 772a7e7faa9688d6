"""Whatever goes wrong on the wire is an ApiServerError that says what was asked for and what came."""

import asyncio
from pathlib import Path

import pytest

from tests.support.servers.fake_events_api import fake_events_api
from webhook.documents.field import InvalidInput
from webhook.watch.api_server import ClientConfig


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

"""Internal errors of the live view are logged and counted, and affect only the failing part."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.support.objects.builders import make_pod
from tests.support.servers.fake_api import Answer, events, fake_api, page
from tests.support.servers.live import NODES, TIMING, names, until, versioned_node
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.snapshot import Snapshot
from webhook.watch.api_server import ClientConfig
from webhook.watch.live import LiveCluster

PODS = "/api/v1/pods"


class Faults(ClusterFollower):
    """Counts internal errors."""

    def __init__(self) -> None:
        self.count = 0

    def failed(self) -> None:
        """Count an internal error."""
        self.count += 1


def _fail(*_: object) -> Any:
    raise RuntimeError("no ear")


class Failing(Faults):
    """Raises in each method that a view calls."""

    object_changed: Any = _fail
    pod_bound: Any = _fail
    page_read: Any = _fail
    settled: Any = _fail


class Worn(ClusterCache):
    """A cache that raises instead of making a snapshot while it is `broken`."""

    broken = False

    def snapshot(self) -> Snapshot:
        """Return the snapshot unless the cache is broken."""
        if self.broken:
            raise RuntimeError("worn out")
        return super().snapshot()


def faults_and_log(
    folder: Path,
    path: str,
    *script: Answer,
    until_seen: Callable[[LiveCluster], Awaitable[None]],
    cache: ClusterCache,
    faults: Faults,
) -> tuple[int, list[str]]:
    """Return the number of reported errors and their log lines, after `until_seen`."""

    async def run() -> None:
        async with fake_api(path, *script) as api:
            source = ClientConfig(api.kubeconfig(folder))
            live = LiveCluster(source.connect, faults, timing=TIMING, cache=cache)
            task = asyncio.create_task(live.run())
            try:
                await until_seen(live)
                assert not task.done()
            finally:
                task.cancel()
                await asyncio.wait([task])

    with capture_logs() as logs:
        asyncio.run(run())
    return faults.count, [each["event"] for each in logs if each["log_level"] == "error"]


@pytest.mark.slow
def test_view_that_cannot_be_updated_is_kept_and_becomes_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every watch ends soon without an error: each kind is always known to be current.
    monkeypatch.setattr("tests.support.servers.fake_api.quiet", events(lasting_seconds=0.05))
    cache, arrives = Worn(), asyncio.Event()

    async def watch(request: web.Request) -> web.StreamResponse:
        found = [("ADDED", versioned_node("b", 5))] if arrives.is_set() else []
        return await events(*found, lasting_seconds=0.05)(request)

    async def seen(live: LiveCluster) -> None:
        await until(lambda: live.is_synced and names(live) == ["a"] and live.age_seconds() < 0.5)
        cache.broken = True
        arrives.set()
        await until(lambda: live.age_seconds() > 1)
        assert names(live) == ["a"]
        cache.broken = False
        await until(lambda: names(live) == ["a", "b"] and live.age_seconds() < 0.5)

    found = faults_and_log(
        tmp_path,
        NODES,
        page([versioned_node("a")], "4"),
        *[watch] * 1000,
        until_seen=seen,
        cache=cache,
        faults=Faults(),
    )
    assert found == (1, ["the view cannot be renewed"])


def test_view_without_a_first_snapshot_is_not_ready(tmp_path: Path) -> None:
    cache = Worn()
    cache.broken = True

    async def seen(live: LiveCluster) -> None:
        await until(lambda: live.is_synced)
        assert names(live) == []
        assert live.age_seconds() == float("inf")
        cache.broken = False
        await until(lambda: names(live) == ["a"])

    script = page([versioned_node("a")], "4")
    found = faults_and_log(tmp_path, NODES, script, until_seen=seen, cache=cache, faults=Faults())
    assert found == (1, ["the view cannot be renewed"])


def test_failing_follower_does_not_interrupt_the_watch(tmp_path: Path) -> None:
    follower = Failing()
    cache = ClusterCache(follower)

    async def seen(live: LiveCluster) -> None:
        await until(lambda: live.is_synced)
        cache.apply("Node", "ADDED", versioned_node("a"))
        await until(lambda: live.snapshot().load.pods.tolist() == [1])

    bound = make_pod("bound").node_name("a").obj()
    bound["metadata"]["resourceVersion"] = "5"
    script = (page([], "4"), events(("ADDED", bound), lasting_seconds=60))
    faults, lines = faults_and_log(tmp_path, PODS, *script, until_seen=seen, cache=cache, faults=follower)
    assert faults == len(lines) > 1
    assert set(lines) == {"a follower of the view failed"}


def test_each_time_that_the_view_cannot_be_renewed_is_one_fault() -> None:
    faults, cache = Faults(), Worn()
    live = LiveCluster(ClientConfig().connect, faults, cache=cache)
    for broken in (True, True, False, True):
        cache.broken = broken
        live._update()
    assert faults.count == 2

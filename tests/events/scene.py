"""A recorder of Events at a fake API server."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.servers.fake_events_api import FakeEventsApi, fake_events_api
from tests.support.servers.server import Clock, review_bytes
from webhook.events.recorder import Clocks, EventRecorder
from webhook.events.report import Report
from webhook.kube.api.admission import parse_review
from webhook.runtime.metrics import EVENT_RESULTS, Metrics
from webhook.watch.api_server import ClientConfig

WALL_SECONDS = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
POLICY = policy_with()


@dataclass
class Scene:
    """A recorder, the API server that it writes to, and its clock."""

    api: FakeEventsApi
    folder: Path
    clock: Clock = field(default_factory=Clock)
    metrics: Metrics = field(default_factory=Metrics)
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = ClientConfig(self.api.kubeconfig(self.folder))
        clocks = Clocks(self.clock, lambda: WALL_SECONDS + self.clock.seconds - 1000, self.sleep)
        self.recorder = EventRecorder(source.connect, self.metrics, "replica-a", clocks)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.seconds += seconds

    def report(self, pod: PodBuilder, report: Report | None, namespace: str = "team-a", **request: Any) -> None:
        self.recorder.report(parse_review(review_bytes(pod.obj(), namespace=namespace, **request)), report, POLICY)

    async def after(self, seconds: float) -> None:
        self.clock.seconds += seconds
        await self.recorder.write_due()

    def results(self) -> dict[str, float]:
        found = {
            result: self.metrics.registry.get_sample_value("placement_webhook_events_total", {"result": result}) or 0.0
            for result in EVENT_RESULTS
        }
        return {result: count for result, count in found.items() if count}


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[Scene], Awaitable[None]]], list[Any]]:
    """Runs a scene and returns its log."""

    def run(scene: Callable[[Scene], Awaitable[None]]) -> list[Any]:
        async def played() -> None:
            async with fake_events_api() as api:
                await scene(Scene(api, tmp_path))

        with structlog.testing.capture_logs() as logs:
            asyncio.run(played())
        return logs

    return run


def pod_of(name: str, kind: str = "ReplicaSet") -> PodBuilder:
    return make_pod("").generate_name(f"{name}-").owner(kind, name).label("app", name)


def stored(number: int, owner: str = "web", created: str = "2026-01-01T00:00:01Z") -> dict[str, Any]:
    pod = pod_of(owner).obj()["metadata"] | {
        "name": f"{owner}-{number}",
        "uid": f"uid-of-{owner}-{number}",
        "creationTimestamp": created,
    }
    return {"metadata": pod}

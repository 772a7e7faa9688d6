"""A console that follows a live view without an API server: a test applies the events."""

import math
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from placement_console.page import Sources
from placement_console.pod_facts import PodFacts
from placement_console.serving import listening
from webhook.cli.inputs.session import Session
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.runtime.settings import Address
from webhook.serving.view.views import FixedView


class Followed(FixedView):
    """A live view of `objects`. `apply` is an event of a watch. Only the thread that serves it may use it."""

    is_live = True
    has_namespaces = True

    def __init__(self, objects: Iterable[dict[str, Any]] = (), *, is_synced: bool = True) -> None:
        self.is_synced = is_synced
        self.thread: int | None = None
        self.facts = PodFacts("maip.mxsf.io")
        self._cache = ClusterCache(self.facts)
        for each in objects:
            self.apply(each)

    def apply(self, content: dict[str, Any], event: str = "ADDED") -> None:
        self._cache.apply(content["kind"], event, content)

    def has_signs_of(self, *schedulers: str) -> None:
        """Show by Leases that only these schedulers run."""
        self._cache.put_scheduler_evidence(SchedulerEvidence(frozenset(), "\n".join(schedulers)))

    def snapshot(self) -> Snapshot:
        assert self.thread in (None, threading.get_ident()), "a live view is not safe for the worker thread"
        return self._cache.snapshot()

    def age_seconds(self) -> float:
        return 0.5 if self.is_synced else math.inf


@asynccontextmanager
async def console_following(view: Followed, *audit: Path) -> AsyncIterator[str]:
    """Serve the console of the view, with audit files, and yield its address."""
    session = Session(cluster="unused", needs_pods=False)
    listed = view.snapshot(), Disruptions({}, None)
    sources = Sources(session, view, view.facts, lambda: listed, tuple(map(str, audit)), "test")
    view.thread = threading.get_ident()
    try:
        async with listening(sources, Address("127.0.0.1", 0)) as address:
            yield f"http://{address}"
    finally:
        view.thread = None

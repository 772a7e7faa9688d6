"""The view of a running cluster: a cache, and a reflector for each kind in it."""

import asyncio
import math
import time
from collections.abc import Callable

from webhook.cluster.api_server import Connect, JsonObject
from webhook.cluster.cache import ClusterCache
from webhook.cluster.reflector import RESOURCES, Reflector, Timing
from webhook.cluster.snapshot import Snapshot

# What a batch of events has changed is worked into a snapshot this soon, so that no admission has to do it.
_SETTLE_SECONDS = 0.05


class LiveCluster:
    """The cluster as its API server tells it, while `run()` runs.

    It follows a cluster, so it can be late. `on_bound` is told every pod that is bound while it is watched; `on_page`
    that a page of a list has been read.
    """

    is_live = True

    def __init__(
        self,
        connect: Connect,
        *,
        timing: Timing | None = None,
        on_bound: Callable[[JsonObject], None] = lambda _: None,
        on_page: Callable[[], None] = lambda: None,
    ) -> None:
        self._cache = ClusterCache()
        self._reflectors = [
            Reflector(
                resource,
                self._cache,
                connect,
                timing or Timing(),
                on_added=on_bound if resource.kind == "Pod" else lambda _: None,
                on_page=on_page,
            )
            for resource in RESOURCES
        ]

    async def run(self) -> None:
        """Keep the view current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run(), name=f"reflector of {reflector.resource.kind}")
            while True:
                await asyncio.sleep(_SETTLE_SECONDS)
                if self.is_synced:
                    self._cache.snapshot()

    @property
    def is_synced(self) -> bool:
        """Whether every kind has been listed."""
        return all(reflector.proved_seconds is not None for reflector in self._reflectors)

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now; before `is_synced` its namespaces alone."""
        return self._cache.snapshot() if self.is_synced else self._cache.namespaces_alone()

    def age_seconds(self) -> float:
        """How long ago all of the view was last known to be current; infinite before `is_synced`."""
        proved = [reflector.proved_seconds for reflector in self._reflectors]
        return max(math.inf if each is None else time.monotonic() - each for each in proved)

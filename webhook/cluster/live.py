"""The view of a running cluster: a cache, and a reflector for each kind in it."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable

from webhook.cluster.api_server import Connect, JsonObject
from webhook.cluster.cache import ClusterCache
from webhook.cluster.reflector import Reflector, Timing
from webhook.cluster.resources import RESOURCES
from webhook.cluster.snapshot import Snapshot

# What a batch of events has changed is worked into a snapshot this soon, so that no admission has to do it.
_SETTLE_SECONDS = 0.05


class LiveCluster:
    """The cluster as its API server tells it, while `run()` runs.

    It follows a cluster, so it can be late. A kind that it can do without is in it once it has been listed. `on_bound`
    is told every pod that is bound while it is watched; `on_page` that a page of a list has been read.
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
        """Keep the view current until cancelled; the kinds that it needs come first."""
        async with asyncio.TaskGroup() as group:
            self._follow(group, [each for each in self._reflectors if each.resource.is_required])
            waiting = [each for each in self._reflectors if not each.resource.is_required]
            while True:
                await asyncio.sleep(_SETTLE_SECONDS)
                if self.is_synced:
                    self._follow(group, waiting)
                    waiting = []
                    self._cache.snapshot()

    def _follow(self, group: asyncio.TaskGroup, reflectors: Iterable[Reflector]) -> None:
        for reflector in reflectors:
            group.create_task(reflector.run(), name=f"reflector of {reflector.resource.kind}")

    @property
    def is_synced(self) -> bool:
        """Whether every kind that a view needs has been listed."""
        return all(each.proved_seconds is not None for each in self._reflectors if each.resource.is_required)

    @property
    def kinds_in_view(self) -> frozenset[str]:
        """The kinds that have been listed and are not refused."""
        return frozenset(each.resource.kind for each in self._reflectors if each.proved_seconds is not None)

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now; before `is_synced` its namespaces alone."""
        return self._cache.snapshot() if self.is_synced else self._cache.namespaces_alone()

    def age_seconds(self) -> float:
        """How long ago all of the view was last known to be current; infinite before `is_synced`."""
        if not self.is_synced:
            return math.inf
        proved = (reflector.proved_seconds for reflector in self._reflectors)
        return max(time.monotonic() - each for each in proved if each is not None)

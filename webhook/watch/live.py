"""The view of a running cluster: a cache, and a reflector for each kind in it."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import ParamSpec

import structlog

from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.resources import RESOURCES
from webhook.cluster.snapshot import Snapshot
from webhook.watch.api_server import Connect, JsonObject
from webhook.watch.reflector import Reflector
from webhook.watch.timing import Timing

_Told = ParamSpec("_Told")

# What a batch of events has changed is worked into a snapshot this soon, so that no admission has to do it.
_SETTLE_SECONDS = 0.05


class LiveCluster:
    """The cluster as its API server tells it, while `run()` runs.

    It follows a cluster, so it can be late. A kind that it can do without is in it once it has been listed. `on_bound`
    is told every pod that is bound while it is watched; `on_page` that a page of a list has been read; `on_fault` that
    something of ours failed meanwhile, which is logged and ends nothing: a view that cannot be renewed grows old.
    """

    is_live = True

    def __init__(
        self,
        connect: Connect,
        *,
        timing: Timing | None = None,
        on_bound: Callable[[JsonObject], None] = lambda _: None,
        on_page: Callable[[], None] = lambda: None,
        on_fault: Callable[[], None] = lambda: None,
        cache: ClusterCache | None = None,
    ) -> None:
        self._cache = cache or ClusterCache()
        self._on_fault = on_fault
        self._renewed: Snapshot | None = None
        self._renewed_seconds = -math.inf
        self._fails_to_renew = False
        self._log = structlog.get_logger()
        self._reflectors = [
            Reflector(
                resource,
                self._cache,
                connect,
                timing or Timing(),
                on_added=self._guarded(on_bound) if resource.name_in_cache == "Pod" else lambda _: None,
                on_page=self._guarded(on_page),
                on_fault=on_fault,
                on_reached=self._wake,
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
                    self._cache.compact()
                    self._renew()

    def _follow(self, group: asyncio.TaskGroup, reflectors: Iterable[Reflector]) -> None:
        for reflector in reflectors:
            group.create_task(reflector.run(), name=f"reflector of {reflector.resource.kind}")

    def _wake(self) -> None:
        """Let no reflector wait for an API server that answers another."""
        for reflector in self._reflectors:
            reflector.wake()

    def _guarded(self, callback: Callable[_Told, None]) -> Callable[_Told, None]:
        """`callback`, a fault of which is not one of the feed."""

        def told(*args: _Told.args, **kwargs: _Told.kwargs) -> None:
            try:
                callback(*args, **kwargs)
            except Exception:
                self._on_fault()
                self._log.exception("what follows the feed failed")

        return told

    def _renew(self) -> None:
        """Work what was told into the snapshot; where that fails, the last one stands."""
        try:
            self._renewed = self._cache.snapshot()
        except Exception:
            if not self._fails_to_renew:
                self._on_fault()
                self._log.exception("the view cannot be renewed")
            self._fails_to_renew = True
            return
        self._renewed_seconds = time.monotonic()
        self._fails_to_renew = False

    @property
    def is_synced(self) -> bool:
        """Whether every kind that a view needs has been listed."""
        return all(each.proved_seconds is not None for each in self._reflectors if each.resource.is_required)

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now; before `is_synced` its namespaces alone."""
        if self.is_synced:
            self._renew()
            if self._renewed is not None:
                return self._renewed
        return self._cache.namespaces_only()

    def age_seconds(self) -> float:
        """How long ago all of the view was last known to be current; infinite before `is_synced`."""
        if not self.is_synced:
            return math.inf
        proved = [each.proved_seconds for each in self._reflectors if each.proved_seconds is not None]
        if self._fails_to_renew:
            proved.append(self._renewed_seconds)
        return time.monotonic() - min(proved)

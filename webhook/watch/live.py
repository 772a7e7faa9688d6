"""The live view of a cluster: a cache, and a reflector for each kind in it."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec

import structlog

from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.object_key import Key
from webhook.cluster.cache.resources import RESOURCES
from webhook.cluster.snapshot import Snapshot
from webhook.watch.api_server import Connect, JsonObject
from webhook.watch.polling import Polling
from webhook.watch.reflector import Reflector
from webhook.watch.timing import Timing

_Arguments = ParamSpec("_Arguments")

# The interval at which changes are worked into a snapshot in the background, so that no admission has to do it.
_SETTLE_SECONDS = 0.05
# A snapshot that was taken for an admission so short a time ago will do.
_RECENT_SECONDS = 0.025


class LiveCluster:
    """A view of the cluster that is kept current while `run()` runs.

    It follows the API server, so it can be late. An optional kind is in the view once it has been listed. `on_bound` is
    called with every pod that is bound while it is watched, `on_page` after each page of a list, `on_settled` with each
    snapshot that is taken in the background, `on_object` as by `ClusterCache`. `on_fault` is called after an internal
    error, which is logged and ends nothing; a view that cannot be updated becomes stale. `on_configuration` is called
    with the MutatingWebhookConfiguration `webhook_configuration`, if it has a name, as by `Polling`.
    """

    is_live = True

    def __init__(
        self,
        connect: Connect,
        *,
        timing: Timing | None = None,
        on_bound: Callable[[Mapping[str, Any]], None] = lambda _: None,
        on_page: Callable[[], None] = lambda: None,
        on_settled: Callable[[Snapshot], None] = lambda _: None,
        on_object: Callable[[str, Key, Mapping[str, Any] | None], None] = lambda *_: None,
        on_fault: Callable[[], None] = lambda: None,
        webhook_configuration: str = "",
        on_configuration: Callable[[JsonObject | None], None] = lambda _: None,
        cache: ClusterCache | None = None,
    ) -> None:
        self._connect = connect
        self._timing = timing or Timing()
        self._on_fault = on_fault
        self._log = structlog.get_logger()
        self._cache = cache or ClusterCache(self._guarded(on_object), self._guarded(on_bound))
        self._on_settled = self._guarded(on_settled)
        self._webhook_configuration = webhook_configuration
        self._on_configuration = on_configuration
        self._snapshot: Snapshot | None = None
        self._snapshot_seconds = -math.inf
        self._fails_to_update = False
        gate = asyncio.Lock()
        self._reflectors = [
            Reflector(
                resource,
                self._cache,
                connect,
                self._timing,
                on_page=self._guarded(on_page),
                on_fault=on_fault,
                on_reachable=self._wake,
                gate=gate,
            )
            for resource in RESOURCES
        ]
        self._required = [each for each in self._reflectors if each.resource.is_required]

    async def run(self) -> None:
        """Keep the view current until cancelled; required kinds come first."""
        async with asyncio.TaskGroup() as group:
            self._follow(group, self._required)
            polling = Polling(self._connect, self._timing.evidence_seconds, self._on_fault)
            polled = {
                "signs of schedulers": polling.scheduler_evidence(self._cache.put_scheduler_evidence),
                "release of the cluster": polling.release(self._cache.put_release),
            }
            if self._webhook_configuration:
                configuration = polling.webhook_configuration(self._webhook_configuration, self._on_configuration)
                polled["webhook configuration"] = configuration
            for name, work in polled.items():
                group.create_task(work, name=name)
            optional = [each for each in self._reflectors if not each.resource.is_required]
            while True:
                await asyncio.sleep(_SETTLE_SECONDS)
                if self.is_synced:
                    self._follow(group, optional)
                    optional = []
                    self._settle()

    def _settle(self) -> None:
        """Work the changes into a snapshot, unless an admission has just done that, and pass it to the followers."""
        if time.monotonic() - self._snapshot_seconds > _RECENT_SECONDS:
            self._update()
        if self._snapshot is not None:
            self._on_settled(self._snapshot)

    def list_pods_again(self) -> None:
        """List all pods once more, after the current watches."""
        self._log.info("pods are listed again")
        for reflector in self._reflectors:
            if reflector.resource.kind == "Pod":
                reflector.list_again()

    def pace(self, timing: Timing) -> None:
        """Use `timing` from the next watch of each reflector on."""
        for reflector in self._reflectors:
            reflector.pace(timing)

    def _follow(self, group: asyncio.TaskGroup, reflectors: Iterable[Reflector]) -> None:
        for reflector in reflectors:
            group.create_task(reflector.run(), name=f"reflector of {reflector.resource.kind}")

    def _wake(self) -> None:
        """End the backoff of the reflectors that could not reach the API server: another reflector reached it."""
        for reflector in self._reflectors:
            reflector.wake()

    def _guarded(self, callback: Callable[_Arguments, None]) -> Callable[_Arguments, None]:
        """Return `callback` with its errors caught, so that they do not interrupt the watch."""

        def guarded(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> None:
            try:
                callback(*args, **kwargs)
            except Exception:
                self._on_fault()
                self._log.exception("a follower of the view failed")

        return guarded

    def _update(self) -> None:
        """Take a new snapshot of the cache; if that fails, keep the last one."""
        try:
            self._snapshot = self._cache.snapshot()
        except Exception:
            if not self._fails_to_update:
                self._on_fault()
                self._log.exception("the view cannot be renewed")
            self._fails_to_update = True
            return
        self._snapshot_seconds = time.monotonic()
        self._fails_to_update = False

    @property
    def is_synced(self) -> bool:
        """Return true once every required kind has been listed."""
        return None not in [each.current_as_of_seconds for each in self._required]

    @property
    def has_namespaces(self) -> bool:
        """Return true once the namespaces have been listed."""
        (namespaces,) = (each for each in self._reflectors if each.resource.kind == "Namespace")
        return namespaces.current_as_of_seconds is not None

    @property
    def next_generation(self) -> int:
        """Return the generation of the first snapshot that has every change until now."""
        return self._cache.next_generation

    def snapshot(self) -> Snapshot:
        """Return the current state of the cluster; before `is_synced`, only its namespaces."""
        if self.is_synced:
            self._update()
            if self._snapshot is not None:
                return self._snapshot
        return self._cache.namespaces_only()

    def age_seconds(self) -> float:
        """Return the age of the stalest watch in seconds; infinite before `is_synced`."""
        if not self.is_synced:
            return math.inf
        current = [each.current_as_of_seconds for each in self._reflectors if each.current_as_of_seconds is not None]
        if self._fails_to_update:
            current.append(self._snapshot_seconds)
        return time.monotonic() - min(current)

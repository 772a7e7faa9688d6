"""The live view of a cluster: a cache, and a reflector for each kind in it."""

import asyncio
import math
import time
from collections.abc import Iterable

import structlog

from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.resources import RESOURCES
from webhook.cluster.snapshot import Snapshot
from webhook.watch.api_server import Connect
from webhook.watch.polling import Polling
from webhook.watch.reflector import Reflector
from webhook.watch.timing import Timing

# The interval at which changes are worked into a snapshot in the background, so that no admission has to do it.
_SETTLE_SECONDS = 0.05
# A snapshot that was taken for an admission so short a time ago will do.
_RECENT_SECONDS = 0.025


class LiveCluster:
    """A view of the cluster that is kept current while `run()` runs.

    The view can lag behind the API server. An optional kind is in the view once it has been listed. `follower` gets all
    changes, and the MutatingWebhookConfiguration `webhook_configuration` if it is given. An internal error is logged
    and does not end the view; a view that cannot be updated becomes stale.
    """

    is_live = True

    def __init__(
        self,
        connect: Connect,
        follower: ClusterFollower | None = None,
        *,
        timing: Timing | None = None,
        webhook_configuration: str = "",
        cache: ClusterCache | None = None,
    ) -> None:
        self._connect = connect
        self._follower = follower or ClusterFollower()
        self._timing = timing or Timing()
        self._log = structlog.get_logger()
        self._cache = cache or ClusterCache(self._follower)
        self._webhook_configuration = webhook_configuration
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
                on_page=self._page_read,
                on_fault=self._follower.failed,
                on_reachable=self._wake,
                gate=gate,
            )
            for resource in RESOURCES
        ]
        self._required = [each for each in self._reflectors if each.resource.is_required]

    async def run(self) -> None:
        """Keep the view current until cancelled. Required kinds are listed first."""
        async with asyncio.TaskGroup() as group:
            self._follow(group, self._required)
            polling = Polling(self._connect, self._timing.evidence_seconds, self._follower.failed)
            polled = {
                "signs of schedulers": polling.scheduler_evidence(self._cache.put_scheduler_evidence),
                "release of the cluster": polling.release(self._cache.put_release),
            }
            if self._webhook_configuration:
                polled["webhook configuration"] = polling.webhook_configuration(
                    self._webhook_configuration, self._follower.configuration_changed
                )
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
        """Make a snapshot of the changes, unless an admission has just done this, and pass it to the follower."""
        if time.monotonic() - self._snapshot_seconds > _RECENT_SECONDS:
            self._update()
        try:
            if self._snapshot is not None and self._follower.settled(self._snapshot):
                self._list_pods_again()
        except Exception:
            self._follower.raised()

    def _list_pods_again(self) -> None:
        self._log.info("pods are listed again")
        for reflector in self._reflectors:
            if reflector.resource.kind == "Pod":
                reflector.list_again()

    def pace(self, timing: Timing) -> None:
        """Use `timing` for the next watches of all reflectors."""
        for reflector in self._reflectors:
            reflector.pace(timing)

    def _follow(self, group: asyncio.TaskGroup, reflectors: Iterable[Reflector]) -> None:
        for reflector in reflectors:
            group.create_task(reflector.run(), name=f"reflector of {reflector.resource.kind}")

    def _wake(self) -> None:
        """End the backoff of reflectors that could not reach the API server, after another reflector has reached it."""
        for reflector in self._reflectors:
            reflector.wake()

    def _page_read(self) -> None:
        try:
            self._follower.page_read()
        except Exception:
            self._follower.raised()

    def _update(self) -> None:
        """Take a new snapshot of the cache. If this fails, keep the last snapshot."""
        try:
            self._snapshot = self._cache.snapshot()
        except Exception:
            if not self._fails_to_update:
                self._follower.failed()
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

    def snapshot(self) -> Snapshot:
        """Return the current state of the cluster. Before `is_synced`, it only has namespaces."""
        if self.is_synced:
            self._update()
            if self._snapshot is not None:
                return self._snapshot
        return self._cache.namespaces_only()

    def age_seconds(self) -> float:
        """Return the age of the stalest watch in seconds, or infinity before `is_synced`."""
        if not self.is_synced:
            return math.inf
        current = [each.current_as_of_seconds for each in self._reflectors if each.current_as_of_seconds is not None]
        if self._fails_to_update:
            current.append(self._snapshot_seconds)
        return time.monotonic() - min(current)

"""Keep one kind of object in the cache, with a list and then a watch.

                  every page read
      listing ----------------------> watching ----+
       ^  ^ |                          |  ^ |      | the server ends the watch: on from
       |  | |                   other  |  | |      | the last resourceVersion
       |  | | failure        failure   v  | +------+
       |  | +-----> backing off     backing off
       |  |               |                 |
       |  +---------------+     410 Gone    |  410 comes as an answer or as an ERROR event:
       +------------------------------------+  the resourceVersion is too old

After each backoff the reflector connects again, with the current token and certificates.

A watch that continues after an interruption must catch up: its first events are old, so they do not prove that the view
is current. A list with limit 1 returns the newest resourceVersion. Once the watch has passed this resourceVersion, the
view is current as of the time of that list. Without events, it is current as of the end of a short watch.

An optional kind may be forbidden (403) or not served (404). Then its objects are not known, and the reflector retries
with long pauses.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import structlog

from webhook.cluster.cache.cluster_cache import InvalidObject
from webhook.cluster.cache.resources import Resource
from webhook.documents.documents import field
from webhook.documents.field import InvalidInput
from webhook.kube.pod.stored_pod import StoredPod
from webhook.watch.api_errors import PAGE_BYTES, ApiServerError, UnreachableError
from webhook.watch.api_server import (
    GONE,
    METADATA_LIST,
    NOT_FOUND,
    NOT_READABLE,
    ApiServer,
    Connect,
)
from webhook.watch.pages import list_pages
from webhook.watch.store import Store, changed_within
from webhook.watch.timing import CatchUpTarget, Timing
from webhook.watch.watch_event import read_event

_FAILURES_OF_A_START = 2
# Tolerance for the difference between the clocks of two machines.
_EARLY_SECONDS = 0.1


# The status codes of a resourceVersion that is expired or invalid; 504 is "Too large resource version".
_LIST_AGAIN = (400, GONE, 422, 504)


class Reflector:
    """Keeps one resource in the cache.

    `current_as_of_seconds` is the monotonic time at which the cached objects were last known to be current, or None
    before the first list is complete. `version` is the resourceVersion of the cached objects. `is_refused` is true if
    the API server forbids or does not serve the resource, and the cache has none of it; `is_forbidden` is true if it
    forbids it. `is_unreachable` is true if the last request got no response. Reflectors that share `gate` decode one
    page at a time.
    """

    def __init__(
        self,
        resource: Resource,
        cache: Store,
        connect: Connect,
        timing: Timing,
        *,
        on_page: Callable[[], None] = lambda: None,
        on_fault: Callable[[], None] = lambda: None,
        on_reachable: Callable[[], None] = lambda: None,
        gate: asyncio.Lock | None = None,
    ) -> None:
        self.resource = resource
        self.current_as_of_seconds: float | None = None
        self.is_refused = self.is_forbidden = False
        self._cache = cache
        self._connect = connect
        self._timing = timing
        self._gate = gate or asyncio.Lock()
        self._on_page = on_page
        self._on_fault = on_fault
        self._on_reachable = on_reachable
        self.is_unreachable = False
        self._lists_again = False
        self._woken = asyncio.Event()
        self._target: CatchUpTarget | None = None
        self.version: str | None = None
        self._failures = 0
        self._slice_started = 0.0
        self._log = structlog.get_logger().bind(kind=resource.name_in_cache)

    def pace(self, timing: Timing) -> None:
        """Use `timing` for the next watches."""
        self._timing = timing

    def list_again(self) -> None:
        """List all objects once more, after the current watch."""
        self._lists_again = True

    async def run(self) -> None:
        """List and watch until cancelled; no failure ends it."""
        while True:
            # Not after the attempt: if others find the API server back during one that fails, the next follows at once.
            self._woken.clear()
            try:
                async with self._connect() as server:
                    await self._follow(server)
            except (ApiServerError, InvalidInput) as error:
                self._handle_error(error)
            except Exception:
                self.version = None
                self._on_fault()
                self._log.exception("feed failed")
            self._target = CatchUpTarget()
            await changed_within(self._woken, self._pause_seconds())

    def wake(self) -> None:
        """Retry now if the API server was unreachable, because it is reachable again."""
        if self.is_unreachable:
            self._woken.set()

    def _handle_error(self, error: ApiServerError | InvalidInput) -> None:
        code = error.code if isinstance(error, ApiServerError) else 0
        if isinstance(error, UnreachableError):
            self.is_unreachable = True
        elif code:
            self._mark_reachable()
        if code not in NOT_READABLE or self.resource.is_required:
            if code in _LIST_AGAIN:
                self.version = None
            self._log.warning("feed interrupted", error=str(error), failures=self._failures + 1)
            return
        self.version = self.current_as_of_seconds = None
        self.is_forbidden = code != NOT_FOUND
        self._cache.mark_unknown(self.resource.name_in_cache)
        if not self.is_refused:
            self.is_refused = True
            is_expected = self.resource.is_extension and code == NOT_FOUND
            (self._log.info if is_expected else self._log.warning)("kind is not known", error=str(error))

    async def _follow(self, server: ApiServer) -> None:
        while True:
            if self._lists_again:
                self._lists_again, self.version = False, None
            if self.version is None:
                self.version = await self._list(server)
            elif self._target:
                self._target = await self._catch_up_target(server)
                self._check_caught_up(self.version)
            await self._watch(server, self.version)

    async def _catch_up_target(self, server: ApiServer) -> CatchUpTarget:
        """Return the newest resourceVersion, by a consistent read of one object."""
        asked_seconds = time.monotonic()
        # Only the metadata: the object itself can be large.
        query = {**self._query(), "limit": 1}
        content = await server.get(self.resource.path, query, METADATA_LIST, most_bytes=PAGE_BYTES)
        self._mark_reachable()
        return CatchUpTarget(asked_seconds, str(field(content, "metadata", "resourceVersion") or ""))

    def _mark_reachable(self) -> None:
        """Record that the API server responds, even with an error, and notify the other reflectors."""
        if self.is_unreachable:
            self.is_unreachable = False
            # An API server that has just started rejects requests for a moment.
            self._failures = min(self._failures, _FAILURES_OF_A_START)
            self._on_reachable()

    def _check_caught_up(self, version: str) -> None:
        if self._target and self._target.is_reached_by(version):
            self._mark_current(self._target.asked_seconds)

    async def _list(self, server: ApiServer) -> str:
        asked_seconds = time.monotonic()
        listing = self._cache.listing(self.resource.name_in_cache)

        async def take(items: list[Any], is_first: bool) -> None:
            nonlocal listing
            if is_first:
                listing = self._cache.listing(self.resource.name_in_cache)
            self._mark_reachable()
            self._slice_started = time.monotonic()
            for item in items:
                self._log_invalid(listing.add((item,)))
                await self._yield_to_loop()
            self._on_page()

        version = await list_pages(
            server,
            self.resource.path,
            self._query(),
            take,
            self._timing.page_size,
            self._gate,
            StoredPod.in_list if self.resource.kind == "Pod" else None,
        )
        listing.finish()
        self._mark_current(asked_seconds)
        self.is_refused = self.is_forbidden = False
        self._log.info("listed", version=version, seconds=round(time.monotonic() - asked_seconds, 3))
        return version

    async def _watch(self, server: ApiServer, version: str) -> None:
        timing = self._timing
        seconds = timing.catching_up_seconds
        if not self._target:
            seconds = random.randint(timing.watch_seconds, timing.watch_seconds * 3 // 2)  # noqa: S311 - spreads load
        query = {
            **self._query(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": seconds,
        }
        started_seconds = time.monotonic()
        events, silence_seconds = 0, seconds + timing.silence_seconds
        async with aclosing(server.lines(self.resource.path, query, silence_seconds, self._gate)) as arriving:
            async for lines in arriving:
                self._slice_started = time.monotonic()
                for line in filter(None, lines):
                    self._apply(line)
                    events += 1
                    await self._yield_to_loop()
        lasted_seconds = time.monotonic() - started_seconds
        if not events and lasted_seconds < min(timing.shortest_watch_seconds, seconds - _EARLY_SECONDS):
            raise ApiServerError("the API server ended a watch at once")
        if lasted_seconds < seconds - _EARLY_SECONDS:
            # A server that stops, or finds this client too slow, ends watches early.
            self._target = self._target or CatchUpTarget()
        elif not (self._target and events):
            self._failures = 0
            self._mark_current(time.monotonic())

    def _apply(self, line: bytes) -> None:
        """Apply one event of a watch to the cache."""
        event, content, version = read_event(line, self.resource.kind)
        if event != "BOOKMARK":
            problem = self._cache.apply(self.resource.name_in_cache, event, content)
            if problem is not None:
                self._log_invalid([problem])
        self.version = version or self.version
        self._failures = 0
        if not self._target:
            self._mark_current(time.monotonic())
        elif self.version:
            self._check_caught_up(self.version)

    def _query(self) -> dict[str, str | int]:
        selector = self.resource.field_selector
        return {"fieldSelector": selector} if selector else {}

    def _mark_current(self, as_of_seconds: float) -> None:
        self.current_as_of_seconds = as_of_seconds
        self._target = None

    def _log_invalid(self, invalid: list[InvalidObject]) -> None:
        for each in invalid:
            self._log.warning("object left out of the view", name=str(each.key), error=each.message)

    async def _yield_to_loop(self) -> None:
        if time.monotonic() - self._slice_started > self._timing.slice_seconds:
            await asyncio.sleep(0)
            self._slice_started = time.monotonic()

    def _pause_seconds(self) -> float:
        timing = self._timing
        first, limit = timing.first_pause_seconds, timing.longest_pause_seconds
        if self.is_refused:
            first, limit = timing.first_pause_when_refused_seconds, timing.longest_pause_when_refused_seconds
        longest = min(first * 2 ** min(self._failures, 16), limit)
        self._failures += 1
        return float(longest * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load

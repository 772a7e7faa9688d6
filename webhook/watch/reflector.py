"""One kind of object kept in the cache, by a list and then a watch.

                  every page read
      listing ----------------------> watching ----+
       ^  ^ |                          |  ^ |      | the server ends the watch: on from
       |  | |               any other  |  | |      | the last resourceVersion
       |  | | failure        failure   v  | +------+
       |  | +-----> backing off     backing off
       |  |               |                 |
       |  +---------------+     410 Gone    |  410 comes as an answer or as an ERROR event:
       +------------------------------------+  the server has forgotten the resourceVersion

Each time after backing off, the connection is made anew, with the token and certificates that are in force then.

A watch that goes on after a break first has to catch up: its events are of the past, so they prove nothing. A list of
one object says how far there is to go. The view is current as of that list once the watch has passed its
resourceVersion; or, of a kind in which nothing happens, as of the end of a short watch without events.

A kind that a view can do without may be refused (403) or not served (404): then nothing of it is known, and it is
asked for again now and then.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import aclosing, suppress

import orjson
import structlog

from webhook.cluster.cache.cluster_cache import ClusterCache, InvalidObject
from webhook.cluster.cache.resources import Resource
from webhook.kube.documents import field
from webhook.kube.field import InvalidInput
from webhook.watch.api_server import (
    GONE,
    REFUSALS,
    ApiServer,
    ApiServerError,
    Connect,
    JsonObject,
    UnreachableError,
    listed,
)
from webhook.watch.progress import CatchUpTarget
from webhook.watch.timing import Timing

_FAILURES_OF_A_START = 2
# The clocks of two machines do not run quite alike.
_EARLY_SECONDS = 0.1


# Answers to a resourceVersion that can no longer be watched from, or never could: 504 is "Too large resource version".
_LIST_ANEW = (400, GONE, 422, 504)


class Reflector:
    """Keeps one resource in the cache.

    `proved_seconds`: when (on the monotonic clock) what the cache has was last known to be current; None before the
    first list is complete. `version`: the resourceVersion that the cache has come to. `is_refused`: the API server does
    not give this resource, and the cache has none of it. `is_unreachable`: nobody answered the last request.
    """

    def __init__(
        self,
        resource: Resource,
        cache: ClusterCache,
        connect: Connect,
        timing: Timing,
        *,
        on_added: Callable[[JsonObject], None] = lambda _: None,
        on_page: Callable[[], None] = lambda: None,
        on_fault: Callable[[], None] = lambda: None,
        on_reached: Callable[[], None] = lambda: None,
    ) -> None:
        self.resource = resource
        self.proved_seconds: float | None = None
        self.is_refused = False
        self._cache = cache
        self._connect = connect
        self._timing = timing
        self._on_added = on_added
        self._on_page = on_page
        self._on_fault = on_fault
        self._on_reached = on_reached
        self.is_unreachable = False
        self._woken = asyncio.Event()
        self._target: CatchUpTarget | None = None
        self.version: str | None = None
        self._failures = 0
        self._slice_began = 0.0
        self._log = structlog.get_logger().bind(kind=resource.name_in_cache)

    async def run(self) -> None:
        """List and watch until cancelled; no failure ends it."""
        while True:
            try:
                async with self._connect() as server:
                    await self._follow(server)
            except (ApiServerError, InvalidInput) as error:
                self._interrupted(error)
            except Exception:
                self.version = None
                self._on_fault()
                self._log.exception("feed failed")
            self._target = CatchUpTarget()
            await self._rest()

    def wake(self) -> None:
        """Try again now, if this waits for an API server that does not answer: it answers others."""
        if self.is_unreachable:
            self._woken.set()

    async def _rest(self) -> None:
        self._woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause_seconds()):
                await self._woken.wait()

    def _interrupted(self, error: ApiServerError | InvalidInput) -> None:
        code = error.code if isinstance(error, ApiServerError) else 0
        if isinstance(error, UnreachableError):
            self.is_unreachable = True
        elif code:
            self._is_reached()
        if code not in REFUSALS or self.resource.is_required:
            if code in _LIST_ANEW:
                self.version = None
            self._log.warning("feed interrupted", error=str(error), failures=self._failures + 1)
            return
        self.version = self.proved_seconds = None
        self._cache.forget_kind(self.resource.name_in_cache)
        if not self.is_refused:
            self.is_refused = True
            self._log.warning("kind is not known", error=str(error))

    async def _follow(self, server: ApiServer) -> None:
        """List where needed, then watch, until something fails."""
        while True:
            if self.version is None:
                self.version = await self._list(server)
            elif self._target:
                self._target = await self._newest(server)
                self._has_come_to(self.version)
            await self._watch(server, self.version)

    async def _newest(self, server: ApiServer) -> CatchUpTarget:
        """Return how far the API server is now: by a read that is consistent, and cheap."""
        asked_seconds = time.monotonic()
        content = await server.get(self.resource.path, {**self._query(), "limit": 1})
        self._is_reached()
        return CatchUpTarget(asked_seconds, str(field(content, "metadata", "resourceVersion") or ""))

    def _is_reached(self) -> None:
        """The API server answers, if only with a refusal: let those know that wait for it."""
        if self.is_unreachable:
            self.is_unreachable = False
            # One that has just started refuses for a moment.
            self._failures = min(self._failures, _FAILURES_OF_A_START)
            self._on_reached()

    def _has_come_to(self, version: str) -> None:
        """The view has come to `version`, which may be as far as there was to go."""
        if self._target and self._target.is_reached_by(version):
            self._is_current(self._target.asked_seconds)

    async def _list(self, server: ApiServer) -> str:
        asked_seconds = time.monotonic()
        listing = self._cache.listing(self.resource.name_in_cache)

        async def take(items: list[JsonObject], begins: bool) -> None:
            nonlocal listing
            if begins:
                listing = self._cache.listing(self.resource.name_in_cache)
            self._is_reached()
            self._slice_began = time.monotonic()
            for item in items:
                self._tell(listing.add((item,)))
                await self._breathe()
            self._on_page()

        version = await listed(server, self.resource.path, self._query(), take, self._timing.page_size)
        listing.finish()
        self._is_current(asked_seconds)
        self.is_refused = False
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
        began_seconds = time.monotonic()
        events = 0
        async with aclosing(server.lines(self.resource.path, query, seconds + timing.silence_seconds)) as arriving:
            async for lines in arriving:
                self._slice_began = time.monotonic()
                for line in filter(None, lines):
                    self._take(line)
                    events += 1
                    await self._breathe()
        lasted_seconds = time.monotonic() - began_seconds
        if not events and lasted_seconds < min(timing.shortest_watch_seconds, seconds - _EARLY_SECONDS):
            raise ApiServerError("the API server ended a watch at once")
        if lasted_seconds < seconds - _EARLY_SECONDS:
            # A server that stops, or thinks that this client is too slow, ends watches before their time.
            self._target = self._target or CatchUpTarget()
        elif not (self._target and events):
            self._failures = 0
            self._is_current(time.monotonic())

    def _take(self, line: bytes) -> None:
        """One event of a watch.

        Raises:
            ApiServerError: it is an ERROR event, or none at all.
        """
        try:
            event = orjson.loads(line)
        except ValueError as error:
            raise ApiServerError(f"the watch sent what is no JSON: {error}") from error
        kind, content = field(event, "type"), field(event, "object")
        if kind == "ERROR":
            raise ApiServerError(f"the watch ended with an error: {field(content, 'message')}", field(content, "code"))
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK") or not isinstance(content, dict):
            raise ApiServerError(f"the watch sent an unknown event: {kind}")
        if kind != "BOOKMARK":
            problem = self._cache.apply(self.resource.name_in_cache, kind, content)
            self._tell([] if problem is None else [problem])
            if kind == "ADDED":
                self._on_added(content)
        self.version = field(content, "metadata", "resourceVersion") or self.version
        self._failures = 0
        if not self._target:
            self._is_current(time.monotonic())
        elif self.version:
            self._has_come_to(self.version)

    def _query(self) -> dict[str, str | int]:
        selector = self.resource.field_selector
        return {"fieldSelector": selector} if selector else {}

    def _is_current(self, as_of_seconds: float) -> None:
        self.proved_seconds = as_of_seconds
        self._target = None

    def _tell(self, invalid: list[InvalidObject]) -> None:
        for each in invalid:
            self._log.warning("object left out of the view", name=str(each.key), error=each.message)

    async def _breathe(self) -> None:
        if time.monotonic() - self._slice_began > self._timing.slice_seconds:
            await asyncio.sleep(0)
            self._slice_began = time.monotonic()

    def _pause_seconds(self) -> float:
        """A random while, twice as long with each failure in a row."""
        timing = self._timing
        limit = timing.longest_pause_when_refused_seconds if self.is_refused else timing.longest_pause_seconds
        longest = min(timing.first_pause_seconds * 2 ** min(self._failures, 16), limit)
        self._failures += 1
        return float(longest * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load

"""Send the live view as server-sent events: the complete state at connect, then changed nodes.

Clients have no queues. The next event for a client is the difference between the snapshot that it has and the current
one. So a slow client costs no memory; it gets fewer and larger changes.
"""

import asyncio
import math
import zlib

from aiohttp import web

from placement_console.cluster_state import ClusterState
from webhook.serving.view.views import View

# Changes are sent at this interval at most. A person sees no difference, and a busy cluster changes all the time.
_INTERVAL_SECONDS = 0.5
# A comment or an age is sent at least this often, so that a connection that is gone is noticed.
_SILENCE_SECONDS = 10.0
_MOST_CLIENTS = 16
_GZIP, _LEVEL = 31, 3
HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Content-Encoding": "gzip", "X-Accel-Buffering": "no"}


class Feed:
    """Sends the state of `view` to clients, as `state` writes it. `name` is the name of the cluster in the title."""

    def __init__(self, view: View, state: ClusterState, name: str = "") -> None:
        self._view = view
        self._state = state
        self._name = name
        self._clients = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Send events to a client until it disconnects."""
        if self._clients >= _MOST_CLIENTS:
            return web.json_response({"errors": [f"{self._clients} browsers are connected already"]}, status=503)
        self._clients += 1
        response = web.StreamResponse(headers=HEADERS)
        try:
            await response.prepare(request)
            await self._send(response)
        except ConnectionError:
            # The client has left.
            return response
        finally:
            self._clients -= 1
        return response

    async def _send(self, response: web.StreamResponse) -> None:
        packed = zlib.compressobj(_LEVEL, wbits=_GZIP)
        sent, silent_seconds = None, math.inf

        async def send(event: str, data: bytes) -> None:
            nonlocal silent_seconds
            text = packed.compress(b"event: %b\ndata: %b\n\n" % (event.encode(), data))
            await response.write(text + packed.flush(zlib.Z_SYNC_FLUSH))
            silent_seconds = 0.0

        while True:
            age_seconds = self._view.age_seconds()
            if math.isinf(age_seconds):
                if silent_seconds >= _SILENCE_SECONDS:
                    await send("waiting", b"{}")
            else:
                snapshot = self._view.snapshot()
                if sent is None:
                    await send("state", self._state.full(snapshot, age_seconds, self._name))
                elif sent is not snapshot:
                    await send("change", self._state.change(sent, snapshot, age_seconds))
                elif silent_seconds >= _SILENCE_SECONDS:
                    await send("age", b"%.1f" % age_seconds)
                sent = snapshot
            await asyncio.sleep(_INTERVAL_SECONDS)
            silent_seconds += _INTERVAL_SECONDS

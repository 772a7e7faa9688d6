"""A fake API server with a Secret in order, for tests of the controller's loop."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any, Self

from certs.controller.reconciler import Options
from certs.inspection import Artifacts
from certs.names import server_names
from certs.plan import Observed, Rules, carried_out, plan
from certs.registration import Target
from certs.secret import new_secret
from tests.support.servers.server import utc_now
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, ClientConfig

RULES = Rules(server_names(["localhost"]), propagation_wait=timedelta(0))
OPTIONS = Options(Target(), ("00-placement-webhook",), RULES, "one")


def in_order() -> Artifacts:
    held = Artifacts()
    for _ in range(2):
        held = carried_out(plan(Observed(held), RULES, utc_now()), held, RULES, utc_now())
    return held


class Quiet(ApiServer):
    """An API server with a Secret in order, whose watches have one event, at a time of the test's choice."""

    def __init__(self, event: asyncio.Event, line: bytes = b'{"type": "MODIFIED"}') -> None:
        super().__init__(ClientConfig())
        self._event, self._line, self.reads = event, line, 0
        self._secret = new_secret(OPTIONS.target, in_order())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close nothing."""

    async def get(self, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        self.reads += 1
        if path == OPTIONS.watched[0].path:
            return self._secret
        raise ApiServerError("there is none", 404)

    async def lines(self, *_: Any) -> AsyncGenerator[list[bytes], None]:
        await self._event.wait()
        yield [self._line]
        await asyncio.Event().wait()

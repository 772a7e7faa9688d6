"""The live view of the server is as old as the policy allows, also after the policy has changed."""

from typing import Any, cast

import pytest

from tests.support.admission import policy_with
from tests.support.servers.server import policies_of
from webhook.runtime.metrics import Metrics
from webhook.serving.observed.predictions import Predictions
from webhook.serving.view import live_view as module
from webhook.serving.view.live_view import live_view
from webhook.watch.api_server import ClientConfig
from webhook.watch.timing import Timing


class Live:
    """Records the watches instead of a live view."""

    def __init__(self, *_: object, timing: Timing, webhook_configuration: str) -> None:
        self.watch_seconds, self.webhook_configuration = [timing.watch_seconds], webhook_configuration

    def pace(self, timing: Timing) -> None:
        self.watch_seconds.append(timing.watch_seconds)


def test_watches_follow_the_age_that_the_policy_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LiveCluster", Live)
    policies = policies_of(policy_with(placementCheck={"maxViewAgeSeconds": 50}))
    waiting: Any = None

    live = live_view(ClientConfig(None), Metrics(), Predictions(), waiting, policies, webhook_configuration="own")
    policies.replace(policy_with(placementCheck={"maxViewAgeSeconds": 10}))

    found = cast("Live", live)
    assert (found.watch_seconds, found.webhook_configuration) == ([20, 4], "own")

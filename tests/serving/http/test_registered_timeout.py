"""The timeout that a client states is bounded by that of the registered webhooks."""

from typing import Any

import pytest

from webhook.serving.http.request_head import RegisteredTimeout


@pytest.mark.parametrize(
    ("webhooks", "seconds"),
    [
        pytest.param([{"timeoutSeconds": 5}, {"timeoutSeconds": 3}], 5.0, id="the longest of them"),
        pytest.param([{"name": "pods"}], 10.0, id="the default of the API server"),
        pytest.param([{"timeoutSeconds": "5"}, None], 30.0, id="none is valid"),
        pytest.param([{"timeoutSeconds": 30}, {"timeoutSeconds": 5}], 30.0, id="as many as the API server allows"),
        pytest.param(
            [{"timeoutSeconds": 5}, {"timeoutSeconds": 31}, {"timeoutSeconds": 0}], 5.0, id="only the valid ones"
        ),
        pytest.param([{"timeoutSeconds": 31}], 30.0, id="more than the API server allows"),
        pytest.param(None, 30.0, id="no webhook"),
    ],
)
def test_the_timeout_is_that_of_the_registered_webhooks(webhooks: Any, seconds: float) -> None:
    timeout = RegisteredTimeout()
    timeout.follow({"webhooks": webhooks})
    assert timeout.seconds == seconds


def test_without_a_configuration_it_is_the_longest_possible_one() -> None:
    timeout = RegisteredTimeout()
    timeout.follow({"webhooks": [{"timeoutSeconds": 5}]})
    timeout.follow(None)
    assert timeout.seconds == 30.0

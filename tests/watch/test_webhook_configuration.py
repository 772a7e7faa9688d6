"""The registered webhook is followed, also while servers do not answer or answer otherwise."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from certs.registration import Target, manifest
from tests.support.servers.fake_api import Answer, fake_api, json, refusal
from tests.support.servers.live import until
from tests.support.servers.server import connections_gone
from webhook.documents.field import InvalidInput, required
from webhook.watch.api_server import ClientConfig
from webhook.watch.polling import Polling

NAME = Target().configuration
PATH = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{NAME}"
SHIPPED = manifest(Target())
Found = list[dict[str, Any] | None]


def polled(folder: Path, answers: list[Answer], wanted: int) -> tuple[Found, list[str]]:
    """Return what a server with these answers gives, until there are `wanted`, and the errors that were logged."""
    found: Found = []

    def take(content: dict[str, Any] | None) -> None:
        if content is not None and "webhooks" not in content:
            raise InvalidInput([required("webhooks", "must have one")])
        found.append(content)

    async def poll() -> None:
        async with fake_api(PATH, *answers) as api:
            config = ClientConfig(api.kubeconfig(folder))
            task = asyncio.create_task(Polling(config.connect, 0.0).webhook_configuration(NAME, take))
            await until(lambda: len(found) >= wanted)
            task.cancel()
        await connections_gone()

    with capture_logs() as logs:
        asyncio.run(poll())
    assert {(each["event"], each["name"]) for each in logs} <= {("the webhook configuration is not known", NAME)}
    return found[:wanted], [str(each["error"]) for each in logs]


@pytest.mark.parametrize("code", [403, 404])
def test_a_configuration_that_cannot_be_read_is_not_known_and_logged_once(tmp_path: Path, code: int) -> None:
    answers = [json(SHIPPED), *[refusal(code, "it is so")] * 3, json(SHIPPED)]

    found, errors = polled(tmp_path, answers, 5)

    assert found == [SHIPPED, None, None, None, SHIPPED]
    assert errors == [f"GET {PATH}: {code} because it is so"]


def test_a_failure_keeps_what_is_known(tmp_path: Path) -> None:
    found, errors = polled(tmp_path, [json(SHIPPED), refusal(503, "later"), json(SHIPPED)], 2)

    assert found == [SHIPPED, SHIPPED]
    assert errors == [f"GET {PATH}: 503 because later"]


def test_a_failure_at_the_start_is_answered_without_a_configuration(tmp_path: Path) -> None:
    found, _ = polled(tmp_path, [refusal(503, "later"), refusal(503, "later"), json(SHIPPED)], 2)

    assert found == [None, SHIPPED]


def test_an_invalid_configuration_is_not_known(tmp_path: Path) -> None:
    found, errors = polled(tmp_path, [json({}), json(SHIPPED)], 2)

    assert found == [None, SHIPPED]
    assert errors == ["webhooks: Required value: must have one"]


def test_configuration_of_up_to_3_mib_is_read(tmp_path: Path) -> None:
    small = {"webhooks": [], "padding": ""}
    padding = "x" * (3 * 1024 * 1024 - len(orjson.dumps(small)))
    largest, larger = small | {"padding": padding}, small | {"padding": f"{padding}x"}

    found, errors = polled(tmp_path, [json(largest), json(larger), json(SHIPPED)], 2)

    assert [each == largest for each in found] == [True, False]
    assert errors == [f"GET {PATH}: the response is larger than 3145728 bytes"]


@pytest.mark.slow
@pytest.mark.parametrize("answer", [refusal(404, "it is so"), json({})], ids=["not readable", "invalid"])
def test_internal_error_without_a_configuration_ends_nothing(tmp_path: Path, answer: Answer) -> None:
    def take(content: dict[str, Any] | None, faults: list[str]) -> None:
        if content is None and not faults:
            raise LookupError
        if content is not None and "webhooks" not in content:
            raise InvalidInput([required("webhooks", "must have one")])

    assert followed(tmp_path, [answer, json(SHIPPED)], take) == (["fault"], [SHIPPED])


def followed(
    folder: Path,
    answers: list[Answer],
    take: Callable[[dict[str, Any] | None, list[str]], None],
) -> tuple[list[str], Found]:
    """Return the faults and what was taken of these answers until it was something; `take` gets the faults."""
    faults: list[str] = []
    found: Found = []

    def taken(content: dict[str, Any] | None) -> None:
        take(content, faults)
        found.append(content)

    async def poll() -> None:
        async with fake_api(PATH, *answers) as api:
            config = ClientConfig(api.kubeconfig(folder))
            polling = Polling(config.connect, 0.0, lambda: faults.append("fault"))
            task = asyncio.create_task(polling.webhook_configuration(NAME, taken))
            await until(lambda: bool(found) or task.done())
            task.cancel()
        await connections_gone()

    asyncio.run(poll())
    return faults, found

"""The view becomes equal to the API server's state after every kind of failure."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.support.servers.fake_api import Answer, FakeApi, events, fake_api, page, refusal
from tests.support.servers.live import NODES, TIMING, bookmark, kinds_in_view, names, until, versioned_node
from webhook.watch.api_server import ClientConfig
from webhook.watch.live import LiveCluster
from webhook.watch.timing import Timing

Object = dict[str, Any]

PODS = "/api/v1/pods"
GONE = refusal(410, "Expired")
GONE_EVENT = ("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})


@asynccontextmanager
async def following(api: FakeApi, folder: Path, token: str = "", timing: Timing = TIMING) -> AsyncIterator[LiveCluster]:
    """Run a live view of the kinds that are required, and of the one whose answers are scripted."""
    live = LiveCluster(ClientConfig(api.kubeconfig(folder, token)).connect, timing=timing)
    # The others, each with a connection, take three quarters of the time.
    live._reflectors = [
        each for each in live._reflectors if each.resource.is_required or each.resource.path == api.path
    ]
    task = asyncio.create_task(live.run())
    try:
        yield live
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def followed(folder: Path, *script: Answer, wanted: list[str], asked: int) -> FakeApi:
    """Return the server after its script, when the view has the expected nodes and the number of requests has come."""

    async def run() -> FakeApi:
        async with fake_api(NODES, *script) as api, following(api, folder) as live:
            await until(lambda: live.is_synced and names(live) == wanted and len(api.asked) >= asked)
            assert api.script == []
        return api

    return asyncio.run(run())


def test_list_is_read_to_the_last_page_and_then_watched(tmp_path: Path) -> None:
    api = followed(
        tmp_path,
        page([versioned_node("a")], "7", "next"),
        page([versioned_node("b")], "7"),
        events(("ADDED", versioned_node("c", 8)), ("DELETED", versioned_node("a", 9)), lasting_seconds=0.05),
        wanted=["b", "c"],
        asked=4,
    )
    first, second, third, fourth = api.asked
    assert first == {"limit": "100"}
    assert second == {"limit": "100", "continue": "next"}
    assert third["resourceVersion"] == "7"
    assert (third["watch"], third["allowWatchBookmarks"]) == ("true", "true")
    assert fourth["resourceVersion"] == "9"


def test_objects_of_all_pages_are_kept_and_older_ones_are_not(tmp_path: Path) -> None:
    script = (
        page([versioned_node("old"), versioned_node("a")], "4"),
        GONE,
        page([versioned_node("a")], "7", "next"),
        page([versioned_node("b")], "7", "last"),
        page([versioned_node("c")], "7"),
    )
    followed(tmp_path, *script, wanted=["a", "b", "c"], asked=6)


def test_pods_are_listed_again_after_the_watch_in_which_that_is_asked_for(tmp_path: Path) -> None:
    async def run() -> list[str | None]:
        async def watch(request: web.Request) -> web.StreamResponse:
            live._list_pods_again()
            return await events()(request)

        async with fake_api(PODS, page([], "7"), watch, page([], "9")) as api, following(api, tmp_path) as live:
            await until(lambda: len(api.asked) == 4)
        return [each.get("resourceVersion") for each in api.asked]

    assert asyncio.run(run()) == [None, "7", None, "9"]


def test_watch_continues_from_the_last_bookmark(tmp_path: Path) -> None:
    api = followed(tmp_path, page([versioned_node("a")], "7"), events(bookmark(30)), wanted=["a"], asked=3)
    assert [each.get("resourceVersion") for each in api.asked] == [None, "7", "30"]


@pytest.mark.parametrize(
    ("script", "versions"),
    [
        pytest.param(
            [page([versioned_node("old")], "1", "next"), GONE, page([versioned_node("a")], "9")],
            [None, None, None, "9"],
            id="between pages",
        ),
        pytest.param(
            [page([versioned_node("old")], "1"), GONE, page([versioned_node("a")], "9")],
            [None, "1", None, "9"],
            id="at a watch",
        ),
        pytest.param(
            [page([versioned_node("old")], "1"), events(GONE_EVENT), page([versioned_node("a")], "9")],
            [None, "1", None, "9"],
            id="within a watch",
        ),
        pytest.param([GONE, page([versioned_node("a")], "9")], [None, None, "9"], id="at the first page"),
    ],
)
def test_410_leads_to_a_new_list(tmp_path: Path, script: list[Answer], versions: list[str | None]) -> None:
    api = followed(tmp_path, *script, wanted=["a"], asked=len(versions))
    assert [each.get("resourceVersion") for each in api.asked][: len(versions)] == versions


def test_list_that_expires_between_pages_is_requested_in_pages_again(tmp_path: Path) -> None:
    api = followed(tmp_path, page([], "1", "next"), GONE, GONE, page([versioned_node("a")], "9"), wanted=["a"], asked=5)
    assert [each.get("limit") for each in api.asked[:4]] == ["100"] * 4


@pytest.mark.parametrize("code", [410, 504])
def test_list_that_fails_at_its_first_page_is_retried_after_a_pause(tmp_path: Path, code: int) -> None:
    """Only a list that expires between two pages is requested again at once."""
    with capture_logs() as logs:
        api = followed(tmp_path, refusal(code, "Refused"), page([versioned_node("a")], "9"), wanted=["a"], asked=3)

    assert [(each.get("limit"), each.get("resourceVersion")) for each in api.asked] == [
        ("100", None),
        ("100", None),
        (None, "9"),
    ]
    assert [each["failures"] for each in logs if each["event"] == "feed interrupted"] == [1]


@pytest.mark.parametrize("code", [400, 410, 422, 504])
def test_invalid_resource_version_leads_to_a_new_list(tmp_path: Path, code: int) -> None:
    script = (page([versioned_node("old")], "4"), refusal(code, "Refused"), page([versioned_node("a")], "9"))
    api = followed(tmp_path, *script, wanted=["a"], asked=4)
    assert [each.get("resourceVersion") for each in api.asked] == [None, "4", None, "9"]


@pytest.mark.parametrize("code", [429, 500, 503])
def test_version_is_kept_if_a_watch_fails_for_another_reason(tmp_path: Path, code: int) -> None:
    script = (page([versioned_node("a")], "4"), refusal(code, "Trouble"))
    api = followed(tmp_path, *script, wanted=["a"], asked=3)
    assert [each.get("resourceVersion") for each in api.asked] == [None, "4", "4"]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(events(("ADDED", versioned_node("b", 5)), cut=b'{"type":"ADDED","obj'), id="cut within an object"),
        pytest.param(
            events(("ADDED", versioned_node("b", 5)), ("ERROR", {"code": 500, "message": "boom"})), id="ERROR event"
        ),
        pytest.param(events(("ADDED", versioned_node("b", 5)), ("STRANGE", {})), id="unknown event"),
    ],
)
def test_interrupted_watch_continues_from_the_last_event(tmp_path: Path, broken: Answer) -> None:
    after = events(("ADDED", versioned_node("c", 6)), lasting_seconds=0.05)
    api = followed(tmp_path, page([versioned_node("a")], "4"), broken, after, wanted=["a", "b", "c"], asked=4)
    assert [each.get("resourceVersion") for each in api.asked] == [None, "4", "5", "6"]


@pytest.mark.parametrize("code", [429, 500, 503, 504])
def test_failed_request_is_retried(tmp_path: Path, code: int) -> None:
    failure = refusal(code, "Trouble")
    followed(tmp_path, failure, failure, page([versioned_node("a")], "4"), failure, wanted=["a"], asked=5)


def test_expired_token_is_read_again(tmp_path: Path) -> None:
    """When the server rejects a token, the reflector uses the token that is in the file then."""
    token = tmp_path / "token"
    token.write_text("first")

    async def refuse_and_renew(request: Any) -> Any:
        token.write_text("second")
        return await refusal(401, "Unauthorized")(request)

    async def run() -> list[str]:
        script = (page([versioned_node("a")], "4"), refuse_and_renew)
        async with fake_api(NODES, *script) as api, following(api, tmp_path, str(token)):
            await until(lambda: len(api.asked) == 3)
            return [each["token"] for each in api.asked]

    assert asyncio.run(run()) == ["Bearer first", "Bearer first", "Bearer second"]


def test_malformed_node_is_left_out_and_logged_once(tmp_path: Path) -> None:
    bad = versioned_node("bad", 5, capacity={"cpu": "many"})
    with capture_logs() as logs:
        followed(
            tmp_path,
            page([versioned_node("a")], "4"),
            events(("ADDED", bad), ("MODIFIED", bad), ("ADDED", versioned_node("c", 6)), lasting_seconds=0.05),
            wanted=["a", "c"],
            asked=3,
        )
    (entry,) = [each for each in logs if each["event"] == "object left out of the view"]
    assert entry["name"] == "bad"
    assert 'status.allocatable[cpu]: Invalid value: "many"' in entry["error"]


DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


@pytest.mark.parametrize("code", [403, 404])
def test_forbidden_kind_is_not_known_until_it_is_readable(tmp_path: Path, code: int) -> None:
    """It is logged once and retried, and the other kinds continue."""
    refused = refusal(code, "Refused")
    gpu = {"metadata": {"name": "gpu", "resourceVersion": "4"}, "spec": {}}

    async def run() -> None:
        script = (refused, refused, page([gpu], "4"), refused, refused, page([gpu], "5"))
        async with fake_api(DEVICE_CLASSES, *script) as api, following(api, tmp_path) as live:
            await until(lambda: live.is_synced and live.age_seconds() < 60)
            await until(lambda: len(api.asked) == 7)
            assert "DeviceClass" in kinds_in_view(live)
            assert list(live.snapshot().devices.classes or ()) == ["gpu"]

    with capture_logs() as logs:
        asyncio.run(run())
    entries = [each for each in logs if each["event"] == "kind is not known"]
    assert [(each["kind"], each["log_level"]) for each in entries] == [("DeviceClass", "warning")] * 2
    assert f"{code} because Refused" in entries[0]["error"]


def test_kind_that_becomes_forbidden_is_no_longer_known(tmp_path: Path) -> None:
    gpu = {"metadata": {"name": "gpu", "resourceVersion": "4"}, "spec": {}}
    known: list[bool] = []

    async def run() -> None:
        async def refuse(request: Any) -> Any:
            known.append(live.snapshot().devices.classes is not None)
            return await refusal(403, "Forbidden")(request)

        async with fake_api(DEVICE_CLASSES, page([gpu], "4"), *[refuse] * 50) as api, following(api, tmp_path) as live:
            await until(lambda: len(known) >= 2)

    asyncio.run(run())
    assert known[-1] is False


def test_view_age_is_the_time_since_it_was_known_to_be_current(tmp_path: Path) -> None:
    async def run() -> None:
        async with fake_api(NODES, page([versioned_node("a")], "4"), events(bookmark(5), lasting_seconds=60)) as api:
            live = LiveCluster(ClientConfig(api.kubeconfig(tmp_path)).connect, timing=TIMING)
            assert live.age_seconds() == float("inf")
            assert not live.is_synced
            began_seconds = time.monotonic()
            async with following(api, tmp_path) as live:
                await until(lambda: live.is_synced)
                age_seconds, ended_seconds = live.age_seconds(), time.monotonic()
                assert 0 <= age_seconds <= ended_seconds - began_seconds

    asyncio.run(run())


@pytest.mark.slow
def test_silent_connection_is_closed(tmp_path: Path) -> None:
    """A lost peer looks like a watch without events that lasts too long."""
    timing = Timing(watch_seconds=0, silence_seconds=0.2, first_pause_seconds=0.001, longest_pause_seconds=0.01)

    async def run() -> None:
        script = (page([versioned_node("a")], "4"), events(lasting_seconds=60))
        async with fake_api(NODES, *script) as api, following(api, tmp_path, timing=timing):
            await until(lambda: len(api.asked) >= 3)

    asyncio.run(run())


def test_watches_that_end_at_once_are_retried_with_pauses(tmp_path: Path) -> None:
    """Each such watch is a failure, and the pauses grow with consecutive failures."""
    timing = Timing(first_pause_seconds=0.001, longest_pause_seconds=0.01, shortest_watch_seconds=1.0)

    async def run() -> int:
        script = (page([versioned_node("a")], "4"), *[events()] * 200)
        async with fake_api(NODES, *script) as api, following(api, tmp_path, timing=timing):
            await until(lambda: len(api.asked) >= 6)
            return len(api.asked)

    with capture_logs() as logs:
        asked = asyncio.run(run())
    paused = [each for each in logs if each["event"] == "feed interrupted" and each["kind"] == "Node"]
    assert {each["error"] for each in paused} == {"the API server ended a watch at once"}
    # Before the last watch: the list, and watches with a pause after each.
    assert [each["failures"] for each in paused][: asked - 2] == list(range(1, asked - 1))

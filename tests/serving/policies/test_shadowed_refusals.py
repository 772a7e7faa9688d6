"""A pod whose policy is known to be in shadow mode is left alone where a limit or an error would refuse it."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.support.admission import PRODUCT, TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.servers.server import World, review_bytes, running
from webhook.policy.policy import Policy

SHADOW = {"mode": "shadow"}
TRAINING = make_pod("trainer").annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-H20").gpu(1).obj()
LARGE = TRAINING | {"data": "x" * 60_000}
MANY_VALUES = TRAINING | {"data": [0] * 600_001}
JSON = {"Content-Type": "application/json"}


def team_policy(mode: str, *namespaces: str) -> Policy:
    values = [*namespaces]
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": values}]}
    return policy_with(mode=mode, namespaceSelector=selector)


def world_of(*, default: str = "shadow", team_a: str | None = None) -> World:
    """A world whose policies have these modes."""
    others = () if team_a is None else (team_policy(team_a, "team-a"),)
    return World(policy=policy_with(mode=default), others=others)


def statuses(world: World, folder: Path, *bodies: Any, **settings: Any) -> list[int]:
    """The statuses of the answers to these bodies, one after the other."""

    async def story() -> list[int]:
        found = []
        async with running(world, folder, **settings) as server:
            connector = aiohttp.TCPConnector(ssl=server.tls)
            async with aiohttp.ClientSession(connector=connector) as client:
                for body in bodies:
                    async with client.post(server.url, data=body, headers=JSON) as response:
                        found.append(response.status)
                        if response.status == 200:
                            answer = (await response.json())["response"]
                            assert (answer["uid"], answer["allowed"]) == ("705ab4f5-6393-11e8-b7cc-42010a800002", True)
                            assert "patch" not in answer
        return found

    return asyncio.run(story())


async def in_pieces(body: bytes) -> Any:
    for start in range(0, len(body), 8192):
        yield body[start : start + 8192]


@pytest.mark.parametrize(
    ("world", "status"),
    [
        pytest.param(world_of(), 200, id="all are"),
        pytest.param(world_of(default="enforce"), 413, id="none is"),
        pytest.param(world_of(default="enforce", team_a="shadow"), 200, id="that of the namespace is"),
        pytest.param(world_of(team_a="enforce"), 413, id="only that of other namespaces is"),
    ],
)
def test_a_pod_beyond_the_size_limits_is_left_alone_in_shadow_mode(tmp_path: Path, world: World, status: int) -> None:
    body = review_bytes(LARGE)

    assert statuses(world, tmp_path, body, in_pieces(body), max_body_bytes=50_000) == [status] * 2
    assert [record.outcome for record in world.records] == (["Bypassed"] * 2 if status == 200 else [])
    for record in world.records:
        assert (record.uid, record.namespace) == ("705ab4f5-6393-11e8-b7cc-42010a800002", "team-a")
        assert record.shadow is not None
        assert record.shadow.outcome == "Error"


@pytest.mark.parametrize(("world", "status"), [(world_of(), 200), (world_of(default="enforce"), 413)])
def test_a_pod_of_too_many_values_is_left_alone_in_shadow_mode(world: World, status: int) -> None:

    answer = world.admissions().answer(review_bytes(MANY_VALUES), 1000.0, None)

    assert answer.status == status
    messages = [record.shadow and record.shadow.message for record in world.records]
    expected = ["TooManyValuesError: the review has more than 600000 JSON values"]
    assert messages == (expected if status == 200 else [])


@pytest.mark.parametrize(("size_bytes", "status"), [(16 * 1024, 200), (16 * 1024 + 1, 413)])
def test_namespace_and_operation_are_read_in_16_kib_before_the_user(size_bytes: int, status: int) -> None:
    """An API server writes some hundred bytes there."""
    beginning, user, rest = review_bytes(MANY_VALUES).partition(b',"userInfo":')
    more = b',"more":"%b"'
    more %= b"x" * (size_bytes - len(beginning + user + more % b""))

    answer = world_of().admissions().answer(beginning + more + user + rest, 1000.0, None)

    assert answer.status == status


@pytest.mark.parametrize(("world", "status"), [(world_of(), 200), (world_of(default="enforce"), 503)])
def test_a_pod_that_gets_no_memory_is_left_alone_in_shadow_mode(tmp_path: Path, world: World, status: int) -> None:
    async def story() -> int:
        async with running(world, tmp_path, max_bytes_in_flight=100_000) as server:
            _, slow = await asyncio.open_connection(server.address.host, server.address.port, ssl=server.tls)
            slow.write(b"POST /mutate HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\n")
            slow.write(b"Content-Length: 90000\r\n\r\n" + b" " * 60_000)
            connector = aiohttp.TCPConnector(ssl=server.tls)
            async with aiohttp.ClientSession(connector=connector) as client:
                text = ""
                while "admissions_in_flight 1.0" not in text:
                    async with client.get(server.admin_url + "/metrics") as response:
                        text = await response.text()
                url = f"{server.url}?timeout=200ms"
                async with client.post(url, data=review_bytes(LARGE), headers=JSON) as response:
                    found = response.status
            slow.transport.abort()
            return found

    assert asyncio.run(story()) == status


@pytest.mark.parametrize(("world", "status"), [(world_of(), 200), (world_of(default="enforce"), 503)])
def test_a_pod_whose_turn_comes_too_late_is_left_alone_in_shadow_mode(
    tmp_path: Path, world: World, status: int
) -> None:
    async def story() -> int:
        async with running(world, tmp_path) as server:
            connector = aiohttp.TCPConnector(ssl=server.tls)
            url, body = f"{server.url}?timeout=1ns", review_bytes(TRAINING)
            async with (
                aiohttp.ClientSession(connector=connector) as client,
                client.post(url, data=body, headers=JSON) as response,
            ):
                return response.status

    assert asyncio.run(story()) == status


@pytest.mark.parametrize(("spec", "status"), [({}, 500), (SHADOW, 200), ({"canaryPercent": 0}, 200)])
def test_an_error_at_the_end_of_an_admission_refuses_nothing_in_shadow_mode(spec: dict[str, Any], status: int) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError("out of order")

    world = World(policy=policy_with(**spec), audit=fail)

    answer = world.admissions().answer(review_bytes(TRAINING), 1000.0, None)

    assert answer.status == status
    if status == 200:
        assert orjson.loads(answer.body)["response"]["allowed"] is True


@pytest.mark.parametrize(
    "body",
    [b'{"kind":"AdmissionReview"', b"x" * 100_000, review_bytes(LARGE).replace(b'"uid":"705a', b'"id":"705a')],
    ids=["an end too early", "no review", "no uid"],
)
def test_a_body_that_does_not_begin_as_a_review_is_refused_in_shadow_mode(tmp_path: Path, body: bytes) -> None:
    world = world_of()

    (status,) = statuses(world, tmp_path, body, max_body_bytes=50_000)

    assert status == (413 if len(body) > 50_000 else 400)
    assert world.records == []


def test_the_labels_of_a_namespace_are_not_in_the_beginning(tmp_path: Path) -> None:
    """Another policy may select them, so a Namespace is left alone only if every policy is in shadow mode."""
    kind = {"kind": {"group": "", "version": "v1", "kind": "Namespace"}}
    own = {"name": "team-b", "namespace": "team-b"}
    body = review_bytes({"metadata": {"name": "team-b"}, "data": "x" * 60_000}, **kind, **own)
    worlds = [world_of(), world_of(team_a="enforce")]

    found = [statuses(each, tmp_path, body, max_body_bytes=50_000) for each in worlds]

    assert found == [[200], [413]]

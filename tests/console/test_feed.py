"""The feed sends the whole state once, then changed nodes, to a bounded number of clients."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from placement_console.cluster_state import ClusterState
from tests.console.example_cluster import gpu_node, pod
from tests.console.followed import Followed, console_following
from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from webhook.policy.loader import built_in_policy

Event = tuple[str, Any]
NODES = [gpu_node(name, "training", "NVIDIA-H20", {"nvidia.com/gpu": 8}) for name in ("node-1", "node-2")]


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    name = ""
    async for line in response.content:
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, orjson.loads(value)


def _run(view: Followed, use: Callable[[aiohttp.ClientSession, str], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        # A line of the state can be long.
        async with console_following(view) as address, aiohttp.ClientSession(read_bufsize=2**20) as session:
            return await asyncio.wait_for(use(session, f"{address}/api/events"), 20)

    return asyncio.run(run())


@pytest.mark.slow
def test_a_client_gets_all_nodes_and_then_those_that_change() -> None:
    view = Followed(NODES)

    async def follow(session: aiohttp.ClientSession, address: str) -> list[Event]:
        found: list[Event] = []
        async with session.get(address) as response:
            async for event in _events(response):
                found.append(event)
                if len(found) == 1:
                    bound = pod("team-a", "worker-0", 3, "node-2", owner=("Job", "train"), type="training")
                    view.apply(bound)
                elif len(found) == 2:
                    view.apply(gpu_node("node-1", "", "", {}), "DELETED")
                else:
                    break
        return found

    (first, state), (second, change), (third, removal) = _run(view, follow)

    assert (first, second, third) == ("state", "change", "change")
    assert [each["name"] for each in state["nodes"]] == ["node-1", "node-2"]
    assert [each["name"] for each in change["nodes"]] == ["node-2"]
    assert change["nodes"][0]["cards"][0]["used"] == [["team-a", "worker-0", 3, "Job/train", "training"]]
    assert [(each["cards"], each["free"], each["largest"]) for each in change["groups"]] == [(16, 13, 8)]
    assert (removal["nodes"], removal["gone"]) == ([], ["node-1"])


@pytest.mark.slow
def test_a_client_waits_for_the_first_lists() -> None:
    view = Followed(NODES, is_synced=False)

    async def follow(session: aiohttp.ClientSession, address: str) -> list[str]:
        found = []
        async with session.get(address) as response:
            async for name, _ in _events(response):
                found.append(name)
                view.is_synced = True
                if name == "state":
                    break
        return found

    assert _run(view, follow) == ["waiting", "state"]


def test_the_number_of_clients_is_bounded_and_one_that_leaves_makes_room() -> None:
    async def connect(session: aiohttp.ClientSession, address: str) -> tuple[list[int], int]:
        async def opened() -> aiohttp.ClientResponse:
            return await session.get(address)

        clients = [await opened() for _ in range(17)]
        statuses = [each.status for each in clients]
        for each in clients:
            each.close()
        again = await opened()
        while again.status != 200:
            again = await opened()
        again.close()
        return statuses, again.status

    statuses, later = _run(Followed(NODES), connect)

    assert statuses == [200] * 16 + [503]
    assert later == 200


def test_a_node_is_written_once_for_each_of_its_states() -> None:
    view, written = Followed(NODES), list[str]()

    class Counted(ClusterState):
        def _facts_of(self, info: Any) -> dict[str, Any]:
            written.append(info.node.name)
            return super()._facts_of(info)

    state, before = Counted(built_in_policy(), view.facts), view.snapshot()
    state.full(before, 0.0)
    state.full(before, 0.0)
    view.apply(pod("team-a", "worker-0", 3, "node-2"))
    state.change(before, view.snapshot(), 0.0)

    assert written == ["node-1", "node-2", "node-2"]


def test_a_change_leads_from_the_state_of_a_client_to_that_of_the_view() -> None:
    """As the page applies it: nodes that come, go, change, are replaced by as many others, and their groups."""
    view, worker = Followed(NODES), pod("team-a", "worker-0", 3, "node-2")
    third, fourth = (gpu_node(name, "inference", "NVIDIA-L4", {"nvidia.com/gpu": 4}) for name in ("node-0", "node-9"))
    steps: list[list[tuple[dict[str, Any], str]]] = [
        [(worker, "ADDED")],
        [(third, "ADDED")],
        [(NODES[0], "DELETED"), (fourth, "ADDED")],
        [(worker, "DELETED"), ({**third, "spec": {"unschedulable": True}}, "MODIFIED")],
        [(third, "DELETED"), (fourth, "DELETED")],
        [],
    ]
    state = ClusterState(built_in_policy(), view.facts)
    before = view.snapshot()
    shown = orjson.loads(state.full(before, 0.0))
    nodes = {each["name"]: each for each in shown["nodes"]}
    for events in steps:
        for content, event in events:
            view.apply(content, event)
        after = view.snapshot()
        change = orjson.loads(state.change(before, after, 0.0))
        nodes |= {each["name"]: each for each in change["nodes"]}
        for name in change["gone"]:
            del nodes[name]
        whole = orjson.loads(ClusterState(built_in_policy(), view.facts).full(after, 0.0))

        assert nodes == {each["name"]: each for each in whole["nodes"]}
        assert {key: change[key] for key in ("groups", "pending", "generation")} == {
            key: whole[key] for key in ("groups", "pending", "generation")
        }
        before = after


OF_POD = "namespace=a&name=waits"


@pytest.mark.parametrize(
    "path", ["pending", f"pending/explain?{OF_POD}", f"pending/room?{OF_POD}", "admissions", "try"]
)
def test_only_the_serving_thread_asks_a_live_view_for_its_snapshot(path: str, tmp_path: Path) -> None:
    """The worker thread would see the view between the steps of a change."""
    view, waiting = Followed([*NODES, pod("a", "waits", 1)]), pod("a", "tried", 1)
    audit = write_lines(tmp_path / "audit.jsonl", chain_lines([make_record(1)]))

    async def ask() -> int:
        async with console_following(view, audit) as address, aiohttp.ClientSession() as session:
            origin = {"Origin": address}
            method, body = ("POST", orjson.dumps(waiting)) if path == "try" else ("GET", b"")
            async with session.request(method, f"{address}/api/{path}", data=body, headers=origin) as response:
                return response.status

    assert asyncio.run(ask()) == 200

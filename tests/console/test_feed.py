"""The feed sends the whole state once, then changed nodes, to a bounded number of clients."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from tests.console.example_cluster import node, pod
from webhook.cli.console.cluster_state import ClusterState
from webhook.cli.console.pod_facts import PodFacts
from webhook.cli.console.serving import listening
from webhook.cli.console.sources import Sources
from webhook.cli.inputs.session import Session
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.pods.bound_pods import BoundPods
from webhook.cluster.snapshot import Snapshot
from webhook.policy.loader import built_in_policy
from webhook.runtime.settings import Address

_DOMAIN = "maip.mxsf.io"
Event = tuple[str, Any]


@dataclass
class Followed:
    """A live view without an API server: the test applies the events."""

    facts: PodFacts = field(default_factory=lambda: PodFacts(_DOMAIN))
    is_synced: bool = True
    is_live: bool = True
    has_namespaces: bool = True

    def __post_init__(self) -> None:
        self.cache = ClusterCache(self.facts.note)
        for name in ("node-1", "node-2"):
            self.cache.apply("Node", "ADDED", node(name, "training", "NVIDIA-H20", {"nvidia.com/gpu": 8}))

    def snapshot(self) -> Snapshot:
        return self.cache.snapshot()

    def age_seconds(self) -> float:
        return 0.5 if self.is_synced else math.inf


@asynccontextmanager
async def _console(view: Followed) -> AsyncIterator[str]:
    session = Session(cluster="unused", needs_pods=False)
    sources = Sources(
        session, view, view.facts, lambda: (view.snapshot(), Disruptions(BoundPods({}), None)), name="test"
    )
    async with listening(sources, Address("127.0.0.1", 0)) as address:
        yield f"http://{address}/api/events"


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
        async with _console(view) as address, aiohttp.ClientSession(read_bufsize=2**20) as session:
            return await asyncio.wait_for(use(session, address), 20)

    return asyncio.run(run())


def test_a_client_gets_all_nodes_and_then_those_that_change() -> None:
    view = Followed()

    async def follow(session: aiohttp.ClientSession, address: str) -> list[Event]:
        found: list[Event] = []
        async with session.get(address) as response:
            async for event in _events(response):
                found.append(event)
                if len(found) == 1:
                    bound = pod("team-a", "worker-0", 3, "node-2", owner=("Job", "train"), type="training")
                    view.cache.apply("Pod", "ADDED", bound)
                elif len(found) == 2:
                    view.cache.apply("Node", "DELETED", node("node-1", "", "", {}))
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


def test_a_client_waits_for_the_first_lists() -> None:
    view = Followed(is_synced=False)

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

    statuses, later = _run(Followed(), connect)

    assert statuses == [200] * 16 + [503]
    assert later == 200


def test_a_node_is_written_once_for_each_of_its_states() -> None:
    view, written = Followed(), list[str]()

    class Counted(ClusterState):
        def _facts_of(self, info: Any) -> dict[str, Any]:
            written.append(info.node.name)
            return super()._facts_of(info)

    state, before = Counted(built_in_policy(), view.facts), view.snapshot()
    state.full(before, 0.0)
    state.full(before, 0.0)
    view.cache.apply("Pod", "ADDED", pod("team-a", "worker-0", 3, "node-2"))
    state.change(before, view.snapshot(), 0.0)

    assert written == ["node-1", "node-2", "node-2"]

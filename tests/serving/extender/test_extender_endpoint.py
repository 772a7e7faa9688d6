"""The scheduler extender over real TLS: what a kube-scheduler gets, and that it is never kept from placing a pod."""

import asyncio
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from structlog.testing import capture_logs

from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import node
from tests.support.servers.server import Clock, World, arrival, make_work_budget, running
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.node_info import NodeInfo, RunningPod
from webhook.cluster.pods.pending_pods import PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.placement.profiles.profile import PACK_GPUS, Profile
from webhook.serving.connection import Connection
from webhook.serving.extender.extender_endpoint import Extender
from webhook.serving.extender.extender_pods import RecentlyBound
from webhook.serving.work_budget import TimeSliceEndedError

_GPUS = {"nvidia.com/gpu": 8}
_NODES = (node("empty", capacity=_GPUS), node("part", make_pod("r").gpu(1), capacity=_GPUS))
_VIEW = ClusterView(Snapshot.of(_NODES), None)


class FaultyProfile:
    """A profile without any plugin, not even an attribute for them."""


def world_with(view: ClusterView, profile: Any = PACK_GPUS) -> World:
    world = World(clock=time.monotonic)
    chosen: Profile = profile
    world.extender = Extender(lambda: chosen, lambda: view, world.metrics, world.clock)
    return world


def ask(world: World, folder: Path, *calls: tuple[str, Any]) -> list[tuple[int, Any]]:
    """Return status and answer of each call, a path and a body, one after the other."""

    async def run() -> list[tuple[int, Any]]:
        found = []
        async with running(world, folder) as server:
            connector = aiohttp.TCPConnector(ssl=server.tls)
            async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(30)) as client:
                for path, body in calls:
                    url = server.url.replace("/mutate", path)
                    data = body if isinstance(body, bytes) else orjson.dumps(body)
                    async with client.post(
                        url, data=io.BytesIO(data), headers={"Content-Type": "application/json"}
                    ) as response:
                        text = await response.text()
                        found.append((response.status, orjson.loads(text) if response.status == 200 else text))
        return found

    return asyncio.run(run())


def args(pod: PodBuilder, names: Sequence[str] = ("empty", "part")) -> Mapping[str, Any]:
    return {"Pod": pod.namespace("team-a").obj(), "Nodes": None, "NodeNames": list(names)}


def filtering(*call: Any) -> tuple[str, Any]:
    return "/extender/filter", args(*call)


def prioritizing(*call: Any) -> tuple[str, Any]:
    return "/extender/prioritize", args(*call)


@pytest.mark.parametrize("call", [filtering, prioritizing])
def test_work_for_a_client_that_has_left_ends(call: Any) -> None:
    """A neutral answer would cost time that another call waits for."""

    def expired() -> bool:
        raise TimeSliceEndedError

    world = world_with(_VIEW)
    path, body = call(make_pod("p").gpu(1))
    assert world.extender is not None

    with pytest.raises(TimeSliceEndedError):
        world.extender.judge(path.rpartition("/")[2], orjson.dumps(body), "", PACK_GPUS, _VIEW, expired)


def priorities(answer: Any) -> dict[str, int]:
    return {each["Host"]: each["Score"] for each in answer}


def test_best_node_by_the_profile_has_the_highest_priority(tmp_path: Path) -> None:
    world = world_with(_VIEW)

    ((status, answer),) = ask(world, tmp_path, prioritizing(make_pod("p").gpu(1)))

    assert status == 200
    assert priorities(answer) == {"empty": 0, "part": 10}
    assert world.count("extender_requests_total", verb="prioritize", result="scored") == 1
    assert world.count("extender_duration_seconds_count") == 1


def test_nodes_that_can_never_take_the_pod_are_filtered(tmp_path: Path) -> None:
    view = replace(_VIEW, snapshot=Snapshot.of([*_NODES, node("cpu-only")]))
    names = ["cpu-only", "empty", "part"]

    ((_, answer),) = ask(world_with(view), tmp_path, filtering(make_pod("p").gpu(8), names))

    assert answer["NodeNames"] == ["empty", "part"]
    assert answer["FailedAndUnresolvableNodes"] == {"cpu-only": "Insufficient nvidia.com/gpu"}
    assert (answer["FailedNodes"], answer["Error"]) == ({}, "")


def test_whole_nodes_are_answered_with_whole_nodes(tmp_path: Path) -> None:
    nodes = [make_node_object(name, capacity=_GPUS) for name in ("empty", "part")]
    body = {"Pod": make_pod("p").gpu(1).obj(), "Nodes": {"items": nodes}, "NodeNames": None}

    filtered, prioritized = ask(world_with(_VIEW), tmp_path, ("/extender/filter", body), ("/extender/prioritize", body))

    assert filtered[1]["Nodes"]["items"] == nodes
    assert filtered[1]["NodeNames"] is None
    assert priorities(prioritized[1]) == {"empty": 0, "part": 10}


@pytest.mark.parametrize(
    ("caller", "other", "best"),
    [
        pytest.param(Connection("10.0.0.1"), Connection("10.0.0.9"), "a", id="a client without a certificate"),
        pytest.param(Connection("10.0.0.1"), Connection("10.0.0.1"), "b", id="the same client"),
        pytest.param(
            Connection("10.0.0.1", "kube-scheduler"), Connection("10.0.0.2", "kube-scheduler"), "b", id="mTLS"
        ),
    ],
)
def test_a_client_without_a_certificate_moves_pods_for_its_own_calls_only(
    caller: Connection, other: Connection, best: str
) -> None:
    """The other client names the same pod, and only a node where it cannot be together with the next pod."""
    view = ClusterView(Snapshot.of([node(name, capacity=_GPUS) for name in ("a", "b")]), None)
    extender = world_with(view).extender
    assert extender is not None

    def call(connection: Connection, name: str, gpus: int, *nodes: str) -> dict[str, int]:
        path, body = prioritizing(make_pod(name).gpu(gpus), nodes)
        work = extender.work(path, orjson.dumps(body), arrival()._replace(connection=connection))
        return priorities(orjson.loads(work.finish(work.begin(make_work_budget())()).body))

    call(caller, "first", 4, "a", "b")
    call(other, "first", 4, "b")

    found = call(caller, "second", 2, "a", "b")
    assert max(found, key=found.__getitem__) == best


def test_a_bound_pod_is_forgotten_for_all_callers() -> None:
    """Two of them have placed it, and another one calls first after it was bound."""
    bound, pod = RecentlyBound(), make_pod("p").gpu(4).namespace("team-a")
    extender = Extender(lambda: PACK_GPUS, lambda: _VIEW, World().metrics, time.monotonic, bound)
    kept = [extender._assumed_by(address) for address in "ab"]
    for each in kept:
        each.assume(RunningPod.of(pod.obj()).assumed_on("empty", 0), 1, _VIEW.snapshot)

    bound.note(PodIdentity.of(pod.obj()), 1)
    extender._assumed_by("c")

    later = replace(_VIEW.snapshot, generation=1)
    shown = [each.on(later, PodKey("team-a", "other")) for each in kept]
    assert [int(each.requested("nvidia.com/gpu").sum()) for each in shown] == [1, 1]


def test_the_pods_of_four_callers_are_kept() -> None:
    extender = world_with(_VIEW).extender
    assert extender is not None
    kept = {address: extender._assumed_by(address) for address in "abcd"}
    for address in "cacb":
        assert extender._assumed_by(address) is kept[address]
    assert [*extender._assumed] == ["d", "a", "c", "b"]
    extender._assumed_by("e")
    assert [*extender._assumed] == ["a", "c", "b", "e"]


@pytest.mark.parametrize(("path", "verb"), [("/extender/filter", "filter"), ("/extender/prioritize", "prioritize")])
def test_the_duration_of_a_call_begins_with_its_arrival(path: str, verb: str) -> None:
    """It has waited for the worker since then. Its timeout plays no part."""
    world, clock = world_with(_VIEW), Clock(1000.0)
    extender = Extender(lambda: PACK_GPUS, lambda: _VIEW, world.metrics, clock)
    came = arrival(arrived_seconds=997.0)._replace(overdue_seconds=1002.0)
    work = extender.work(path, orjson.dumps(args(make_pod("p").gpu(1))), came)
    clock.seconds = 1001.0
    assert work.finish(work.begin(make_work_budget())()).status == 200
    assert world.count("extender_duration_seconds_sum") == 4.0
    assert world.count("extender_requests_total", verb=verb, result="scored") == 1


def test_next_pod_finds_the_node_used_that_the_last_one_got(tmp_path: Path) -> None:
    """The view does not show the first pod yet; of two empty nodes, the one that it has opened is filled."""
    view = ClusterView(Snapshot.of([node(name, capacity=_GPUS) for name in ("a", "b")]), None)
    pods = [prioritizing(make_pod(f"p{number}").gpu(2), ["b", "a"]) for number in range(3)]

    found = ask(world_with(view), tmp_path, *pods)

    assert [priorities(each)["a"] for _, each in found] == [10, 10, 10]


def test_single_node_that_passes_the_filter_is_used_by_the_pod(tmp_path: Path) -> None:
    """kube-scheduler does not ask for its priority."""
    view = ClusterView(Snapshot.of([node(name, capacity=_GPUS) for name in ("a", "b")]), None)

    _, (_, answer) = ask(
        world_with(view), tmp_path, filtering(make_pod("p").gpu(4), ["b"]), prioritizing(make_pod("q").gpu(4), "ab")
    )

    assert priorities(answer) == {"a": 0, "b": 10}


@pytest.mark.parametrize(
    ("view", "profile", "result"),
    [
        pytest.param(replace(_VIEW, stale_reason="too old"), PACK_GPUS, "neutral", id="a view that is too old"),
        pytest.param(ClusterView(Snapshot.of([]), None), PACK_GPUS, "neutral", id="a view without nodes"),
        pytest.param(_VIEW, FaultyProfile(), "failed", id="an internal error"),
    ],
)
def test_answer_is_neutral_without_scores(tmp_path: Path, view: ClusterView, profile: Any, result: str) -> None:
    world, pod = world_with(view, profile), make_pod("p").gpu(99)

    filtered, prioritized = ask(world, tmp_path, filtering(pod), prioritizing(pod))

    assert filtered[1]["NodeNames"] == ["empty", "part"]
    assert filtered[1]["FailedAndUnresolvableNodes"] == {}
    assert priorities(prioritized[1]) == {"empty": 0, "part": 0}
    assert world.count("extender_requests_total", verb="filter", result=result) == 1
    assert world.count("extender_requests_total", verb="prioritize", result=result) == 1


def test_internal_error_is_logged_with_the_pod(tmp_path: Path) -> None:
    with capture_logs() as logs:
        ask(world_with(_VIEW, FaultyProfile()), tmp_path, filtering(make_pod("p")))

    (logged,) = [each for each in logs if each["event"] == "scheduler extender failed"]
    assert (logged["verb"], logged["namespace"], logged["pod"]) == ("filter", "team-a", "p")
    assert logged["log_level"] == "error"


def test_pod_that_takes_too_long_gets_a_neutral_answer(tmp_path: Path) -> None:
    world = world_with(_VIEW)
    pod = make_pod("p").obj()
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["v"]}]}}
    terms = {"preferredDuringSchedulingIgnoredDuringExecution": [term] * 20_000}
    pod["spec"]["affinity"] = {"nodeAffinity": terms}
    world.policy = policy_with(placementCheck={"workBudgetMilliseconds": 1})

    ((_, answer),) = ask(world, tmp_path, ("/extender/prioritize", {"Pod": pod, "NodeNames": ["empty", "part"]}))

    assert priorities(answer) == {"empty": 0, "part": 0}
    assert world.count("extender_requests_total", verb="prioritize", result="neutral") == 1


def test_nodes_that_the_view_does_not_have_pass_with_priority_0(tmp_path: Path) -> None:
    pod, names = make_pod("p").gpu(1), ["new", "part"]

    filtered, prioritized, alone = ask(
        world_with(_VIEW), tmp_path, filtering(pod, names), prioritizing(pod, names), prioritizing(pod, ["new"])
    )

    assert filtered[1]["NodeNames"] == names
    assert priorities(prioritized[1]) == {"new": 0, "part": 10}
    assert priorities(alone[1]) == {"new": 0}


def test_body_that_is_no_call_is_refused(tmp_path: Path) -> None:
    world = world_with(_VIEW)
    malformed = {"Pod": {"metadata": {"name": "p"}, "spec": {"tolerations": 1}}, "NodeNames": ["part"]}

    not_json, no_nodes, bad_pod = ask(
        world,
        tmp_path,
        ("/extender/filter", b"{"),
        ("/extender/filter", {"Pod": {}}),
        ("/extender/prioritize", malformed),
    )

    assert not_json[0] == no_nodes[0] == bad_pod[0] == 400
    assert no_nodes[1] == "NodeNames: Required value: must be set; or Nodes, with nodeCacheCapable: false\n"
    assert bad_pod[1].startswith("spec.tolerations: Invalid value: 1; ")
    assert world.count("http_refused_requests_total", code="400") == 3


def test_body_with_too_many_values_is_refused(tmp_path: Path) -> None:
    world = world_with(_VIEW)
    body = b'{"Pod":{},"NodeNames":[' + b"1," * 600_001 + b"1]}"

    ((status, text),) = ask(world, tmp_path, ("/extender/filter", body))

    assert (status, text) == (413, "the call has more than 600000 JSON values\n")


def test_call_with_600000_values_is_read(tmp_path: Path) -> None:
    ((status, text),) = ask(world_with(_VIEW), tmp_path, ("/extender/filter", b"[" + b"1," * 599_998 + b"1]"))

    assert status == 400
    assert text.endswith("must be the ExtenderArgs of a kube-scheduler\n")


def test_extender_is_off_by_default(tmp_path: Path) -> None:
    world = World()

    found = ask(world, tmp_path, filtering(make_pod("p")), prioritizing(make_pod("p")))

    assert [status for status, _ in found] == [404, 404]
    assert world.count("http_refused_requests_total", code="404") == 2


def test_large_view_is_answered(tmp_path: Path) -> None:
    nodes: list[NodeInfo] = [node(f"node-{number:05}", capacity=_GPUS) for number in range(2000)]
    view = ClusterView(Snapshot.of(nodes), None)
    names = [info.node.name for info in nodes]

    filtered, prioritized = ask(
        world_with(view), tmp_path, filtering(make_pod("p").gpu(1), names), prioritizing(make_pod("p").gpu(1), names)
    )

    assert filtered[1]["NodeNames"] == names
    assert sum(priorities(prioritized[1]).values()) == 10

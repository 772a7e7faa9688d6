"""Evictions on an API server in memory: a gang is evicted whole, or left alone."""

import asyncio
import os
import signal
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from placement_reclaim.cluster import full_name
from placement_reclaim.eviction import Evictions
from placement_reclaim.held import EVICTABLE
from placement_reclaim.report import Limits, rows_of_pods
from tests.reclaim.reports import objects_of
from tests.support.admission import policy_with
from tests.support.objects.batch_objects import volcano_group
from tests.support.objects.builders import PodBuilder
from tests.support.objects.held import HOUR, NOW_SECONDS, ago, card_pod, gang_pod, gpu_node, waiting
from webhook.audit.writer import AuditWriter
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer, Query

Object = dict[str, Any]
LISTED = policy_with(reclaim={"namespaces": ["team-*"]})
PLURALS = {"Node": "nodes", "Pod": "pods", "Namespace": "namespaces", "PodGroup": "podgroups"}


class InMemory(ApiServer):
    """An API server with the objects `given`, which refuses the evictions of `refused`."""

    def __init__(self, given: tuple[Object | PodBuilder, ...], refused: tuple[str, ...] = ()) -> None:
        self.objects = [deepcopy(each.obj() if isinstance(each, PodBuilder) else each) for each in given]
        self.refused, self.evicted = refused, list[str]()
        for each in self.objects:
            each["metadata"]["resourceVersion"] = "1"

    async def body(self, path: str, query: Query, *_: object, **__: object) -> bytes:
        selected = str(query.get("fieldSelector", "")).removeprefix("metadata.name=")
        namespace = path.partition("/namespaces/")[2].partition("/")[0]
        found = [
            each
            for each in self.objects
            if path.startswith(f"/api{'s' * ('/' in each['apiVersion'])}/{each['apiVersion']}/")
            and path.endswith(f"/{PLURALS[each['kind']]}")
            and selected in ("", each["metadata"]["name"])
            and namespace in ("", each["metadata"].get("namespace"))
        ]
        return orjson.dumps({"metadata": {}, "items": found})

    async def create(self, path: str, content: Object, query: Query) -> Object:
        name = content.get("metadata", {}).get("name")
        if path.endswith("/eviction"):
            if name in self.refused:
                raise ApiServerError(f"POST {path}: 429 disruption budget", 429)
            found = self.named(name)["metadata"]
            if content["deleteOptions"]["preconditions"] != {key: found[key] for key in ("uid", "resourceVersion")}:
                raise ApiServerError(f"POST {path}: 409 the pod has changed", 409)
            if "dryRun" not in query:
                self.evicted.append(name)
                self.end(self.named(name))
        return {}

    def named(self, name: str) -> Object:
        """Return the object `name`."""
        return next(each for each in self.objects if each["metadata"]["name"] == name)

    def end(self, pod: Object) -> None:
        """Make an evicted pod Terminating for its grace period."""
        pod["metadata"]["deletionTimestamp"] = ago(-30)


def evict(
    server: InMemory,
    *,
    is_confirmed: bool = True,
    change: Callable[[InMemory], object] | None = None,
    pause_seconds: float = 0,
    least_seconds: float = 300,
) -> dict[str, tuple[str, str]]:
    """Evict the only row of `server`, after `change`. Return outcome and detail by pod."""
    objects = objects_of(deepcopy(server.objects))
    (row,) = (each for each in rows_of_pods(objects, NOW_SECONDS) if each.reason in EVICTABLE)
    if change is not None:
        change(server)

    async def run() -> dict[str, tuple[str, str]]:
        evictions = Evictions(
            server,
            objects,
            lambda _: LISTED,
            Limits(9, 9, pause_seconds, least_seconds),
            is_confirmed=is_confirmed,
            now=lambda: NOW_SECONDS,
        )
        return {full_name(each.pod)[1]: (each.outcome, each.detail) async for each in evictions.run([(row, "")], None)}

    return asyncio.run(run())


NODES = [gpu_node(f"n{number}") for number in range(4)]
GANG: tuple[Object | PodBuilder, ...] = (
    *NODES,
    *(gang_pod(number, f"n{number}" if number < 3 else "", since=HOUR) for number in range(8)),
)
NAMES = ["bert-0", "bert-1", "bert-2"]


def test_a_gang_is_evicted_whole() -> None:
    server = InMemory(GANG)

    assert evict(server) == dict.fromkeys(NAMES, ("Evicted", ""))
    assert server.evicted == NAMES


def test_ctrl_c_ends_the_pause_between_two_pods_of_a_gang() -> None:
    class Interrupted(InMemory):
        def end(self, pod: Object) -> None:
            super().end(pod)
            os.kill(os.getpid(), signal.SIGINT)

    server = Interrupted(GANG)

    assert evict(server, pause_seconds=600) == {"bert-0": ("Evicted", "")}
    assert server.evicted == ["bert-0"]


def test_there_is_a_pause_between_two_evictions_and_none_on_dry_run_or_after_a_pod_that_is_left_alone() -> None:
    class Counted(asyncio.Event):
        waits = 0

        async def wait(self) -> Literal[True]:
            self.waits += 1
            return True

    pods = [waiting(card_pod(f"crash-{number}", "n0", 1), "CrashLoopBackOff", HOUR) for number in range(4)]

    def pauses(*, is_confirmed: bool) -> int:
        objects, stop = objects_of((*NODES, *pods)), Counted()
        rows = sorted(rows_of_pods(objects, NOW_SECONDS), key=lambda each: each.name)
        chosen = [*zip(rows, ("it is forbidden", "", "", "it is forbidden"), strict=True)]

        async def run() -> None:
            server, limits = InMemory((*NODES, *pods)), Limits(9, 9, pause_seconds=600)
            evictions = Evictions(server, objects, lambda _: LISTED, limits, is_confirmed, lambda: NOW_SECONDS, stop)
            assert len([each async for each in evictions.run(chosen, None)]) == 4

        asyncio.run(run())
        return stop.waits

    assert (pauses(is_confirmed=True), pauses(is_confirmed=False)) == (1, 0)


class Obeying(InMemory):
    """An API server whose pods exit with 0 at once."""

    def end(self, pod: Object) -> None:
        pod["status"]["phase"] = "Succeeded"


class Ending(InMemory):
    """An API server whose other pods of the gang end when the first one is evicted."""

    def end(self, pod: Object) -> None:
        super().end(pod)
        self.named("bert-1")["status"]["phase"] = "Succeeded"
        self.named("bert-2")["status"]["phase"] = "Failed"


def test_pods_of_a_gang_that_have_ended_meanwhile_are_left_alone() -> None:
    server = Ending(GANG)

    left_alone = ("Bypassed", "it is gone, has ended, or is Terminating")
    assert evict(server) == {"bert-0": ("Evicted", ""), "bert-1": left_alone, "bert-2": left_alone}
    assert server.evicted == ["bert-0"]


def test_a_gang_is_evicted_whole_though_a_pod_of_it_exits_with_0() -> None:
    assert evict(Obeying(GANG)) == dict.fromkeys(NAMES, ("Evicted", ""))


def test_a_gang_is_left_alone_if_the_eviction_of_one_pod_is_refused() -> None:
    for is_confirmed in (True, False):
        server = InMemory(GANG, refused=("bert-1",))
        found = evict(server, is_confirmed=is_confirmed)

        assert found["bert-0"] == found["bert-2"] == ("Bypassed", "pod bert-1 of its gang is not evicted")
        assert found["bert-1"][0] == "Denied"
        assert server.evicted == []


def test_a_gang_is_left_alone_if_its_first_eviction_is_refused_after_the_dry_run() -> None:
    class Changed(InMemory):
        async def create(self, path: str, content: Object, query: Query) -> Object:
            self.refused = () if "dryRun" in query else ("bert-0",)
            return await super().create(path, content, query)

    server = Changed(GANG)
    found = evict(server)

    assert (found["bert-0"][0], found["bert-1"]) == ("Denied", ("Bypassed", "pod bert-0 of its gang is not evicted"))
    assert server.evicted == []


def test_a_gang_that_has_lost_a_pod_meanwhile_is_left_alone() -> None:
    server = InMemory(GANG)

    found = evict(server, change=lambda server: server.end(server.named("bert-2")))

    assert found == dict.fromkeys(NAMES, ("Bypassed", "its gang has changed, or is gone"))
    assert server.evicted == []


def test_a_gang_of_which_one_more_pod_starts_meanwhile_is_left_alone() -> None:
    server = InMemory(GANG)

    def start_one(server: InMemory) -> None:
        server.objects.remove(server.named("bert-3"))
        server.objects.append(gang_pod(3, "n3", since=HOUR).obj())

    assert evict(server, change=start_one) == dict.fromkeys(NAMES, ("Bypassed", "its gang has changed, or is gone"))
    assert server.evicted == []


def test_a_pod_of_a_gang_that_is_replaced_while_others_are_evicted_is_left_alone() -> None:
    class Replacing(InMemory):
        def end(self, pod: Object) -> None:
            super().end(pod)
            self.named("bert-1")["metadata"]["uid"] = "another"

    server = Replacing(GANG)

    assert evict(server)["bert-1"] == ("Bypassed", "it is gone, has ended, or is Terminating")
    assert server.evicted == ["bert-0", "bert-2"]


def test_a_pod_that_ends_while_its_gang_is_evicted_is_not_evicted() -> None:
    class Losing(InMemory):
        def end(self, pod: Object) -> None:
            super().end(pod)
            super().end(self.named("bert-2"))

    server = Losing(GANG)

    assert evict(server)["bert-2"] == ("Bypassed", "it is gone, has ended, or is Terminating")
    assert server.evicted == ["bert-0", "bert-1"]


KEY = "maip.mxsf.io/reclaim"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
CRASH = waiting(card_pod("crash", "n0"), "CrashLoopBackOff", HOUR)


@pytest.mark.parametrize(("name", "subject"), [("crash", "pod crash"), ("team-a", "its namespace")])
def test_an_annotation_that_was_set_meanwhile_counts(name: str, subject: str) -> None:
    server = InMemory((*NODES, NAMESPACE, CRASH))

    def annotate(server: InMemory) -> None:
        server.named(name)["metadata"]["annotations"] = {KEY: "never"}

    found = evict(server, change=annotate)

    assert found == {"crash": ("Bypassed", f"{subject} has the annotation {KEY}")}
    assert server.evicted == []


@pytest.mark.parametrize(("code", "outcome"), [(0, "Error"), (502, "Error"), (504, "Error"), (500, "Denied")])
def test_an_eviction_that_the_api_server_may_go_on_with_is_no_refusal(code: int, outcome: str) -> None:
    class Broken(InMemory):
        async def create(self, path: str, content: Object, query: Query) -> Object:
            if path.endswith("/eviction") and "dryRun" not in query:
                raise ApiServerError("it breaks", code)
            return await super().create(path, content, query)

    begin = "it may be evicted: " if outcome == "Error" else ""
    assert evict(Broken((*NODES, CRASH))) == {"crash": (outcome, f"{begin}it breaks")}


def test_a_pod_is_evicted_though_its_event_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    class WithoutEvents(InMemory):
        async def create(self, path: str, content: Object, query: Query) -> Object:
            if path.endswith("/events"):
                raise ApiServerError("it is forbidden", 403)
            return await super().create(path, content, query)

    assert evict(WithoutEvents((*NODES, CRASH))) == {"crash": ("Evicted", "")}
    assert capsys.readouterr().err == "no Event on team-a/crash: it is forbidden\n"


def set_reason(server: InMemory, reason: str) -> None:
    server.named("pull")["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] = reason


def test_a_pull_that_fails_once_more_is_evicted() -> None:
    server = InMemory((*NODES, waiting(card_pod("pull", "n0"), "ImagePullBackOff", HOUR)))

    assert evict(server, change=lambda server: set_reason(server, "ErrImagePull")) == {"pull": ("Evicted", "")}


def start(server: InMemory) -> None:
    server.objects.remove(server.named("pull"))
    server.objects.append(card_pod("pull", "n0", since=HOUR).obj())


def end(server: InMemory) -> None:
    server.named("pull")["status"]["phase"] = "Failed"


def replace(server: InMemory) -> None:
    server.named("pull")["metadata"]["uid"] = "another"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(start, id="starts"),
        pytest.param(end, id="ends"),
        pytest.param(replace, id="is replaced"),
        pytest.param(lambda server: server.end(server.named("pull")), id="is deleted"),
        pytest.param(lambda server: server.objects.remove(server.named("pull")), id="is gone"),
        pytest.param(lambda server: set_reason(server, "ContainerCreating"), id="pulls once more"),
        pytest.param(lambda server: set_reason(server, "CrashLoopBackOff"), id="has another class"),
    ],
)
def test_a_pod_is_left_alone_that_meanwhile(change: Callable[[InMemory], object]) -> None:
    server = InMemory((*NODES, waiting(card_pod("pull", "n0"), "ImagePullBackOff", HOUR)))

    assert evict(server, change=change) == {"pull": ("Bypassed", "it is gone, or not held any more")}
    assert server.evicted == []


PULL = waiting(card_pod("pull", "n0"), "ImagePullBackOff", HOUR)


@pytest.mark.parametrize(
    ("least_seconds", "expected"),
    [
        (HOUR - 1, ("Evicted", "")),
        (HOUR, ("Evicted", "")),
        (HOUR + 1, ("Bypassed", "it has changed meanwhile")),
    ],
)
def test_a_pod_that_is_read_again_must_be_held_for_at_least_the_time(
    least_seconds: float, expected: tuple[str, str]
) -> None:
    assert evict(InMemory((*NODES, PULL)), least_seconds=least_seconds) == {"pull": expected}


@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
def test_a_pod_that_changes_after_it_was_read_is_not_evicted(key: str) -> None:
    class Changed(InMemory):
        async def create(self, path: str, content: Object, query: Query) -> Object:
            found = await super().create(path, content, query)
            if "dryRun" in query:
                self.named("pull")["metadata"][key] = "another"
            return found

    server = Changed((*NODES, PULL))
    (outcome, detail) = evict(server)["pull"]

    assert (outcome, "409" in detail, server.evicted) == ("Denied", True, [])


def test_a_list_that_begins_again_has_only_the_pods_of_its_second_time() -> None:
    class Expired(InMemory):
        async def body(self, path: str, query: Query, *_: object, **__: object) -> bytes:
            page = orjson.loads(await super().body(path, query))
            if path.endswith("/pods") and "continue" in query:
                self.objects.remove(self.named("pull"))
                raise ApiServerError(f"GET {path}: 410 the token has expired", 410)
            if any(each["metadata"]["name"] == "pull" for each in page["items"]):
                page["metadata"] = {"continue": "token"}
            return orjson.dumps(page)

    server = Expired((*NODES, PULL))

    assert evict(server) == {"pull": ("Bypassed", "it is gone, or not held any more")}
    assert server.evicted == []


def test_each_result_is_on_record_before_it_is_printed(tmp_path: Path) -> None:
    """Also if what prints it fails or is interrupted."""
    pods = [waiting(card_pod(f"crash-{number}", "n0", 1), "CrashLoopBackOff", HOUR) for number in range(3)]
    objects = objects_of((*NODES, *pods))
    rows = sorted(rows_of_pods(objects, NOW_SECONDS), key=lambda each: each.name)
    recorded: list[list[str]] = []

    async def run() -> None:
        server = InMemory((*NODES, *pods), refused=("crash-2",))
        evictions = Evictions(server, objects, lambda _: LISTED, Limits(9, 9), True, lambda: NOW_SECONDS)
        with AuditWriter(tmp_path / "audit.jsonl") as audit:
            async for _ in evictions.run([*zip(rows, ("it is forbidden", "", ""), strict=True)], audit):
                lines = (tmp_path / "audit.jsonl").read_bytes().splitlines()
                recorded.append([orjson.loads(each)["outcome"] for each in lines])

    asyncio.run(run())

    assert recorded == [["Bypassed"], ["Bypassed", "Evicted"], ["Bypassed", "Evicted", "Denied"]]


def test_a_pull_that_fails_after_the_pod_has_run_is_left_alone() -> None:
    server = InMemory((*NODES, waiting(card_pod("pull", "n0"), "ImagePullBackOff", HOUR)))

    def run_again(server: InMemory) -> None:
        set_reason(server, "ErrImagePull")
        server.named("pull")["status"]["conditions"][-1]["lastTransitionTime"] = ago(HOUR // 2)

    assert evict(server, change=run_again) == {"pull": ("Bypassed", "it has changed meanwhile")}


def test_a_crash_loop_that_has_run_for_long_meanwhile_is_left_alone() -> None:
    server = InMemory((*NODES, CRASH))

    def run_for_long(server: InMemory) -> None:
        ended = {"exitCode": 1, "startedAt": ago(HOUR), "finishedAt": ago(60)}
        server.named("crash")["status"]["containerStatuses"][0]["lastState"] = {"terminated": ended}

    assert evict(server, change=run_for_long) == {"crash": ("Bypassed", "it has changed meanwhile")}
    assert server.evicted == []


def test_all_pages_are_read_again() -> None:
    class Paged(InMemory):
        async def body(self, path: str, query: Query, *_: object, **__: object) -> bytes:
            page = orjson.loads(await super().body(path, query))
            at = int(query.get("continue", 0))
            is_last = at + 1 >= len(page["items"])
            page["items"] = page["items"][at : at + 1]
            page["metadata"] = {} if is_last else {"continue": str(at + 1)}
            return orjson.dumps(page)

    assert evict(Paged(GANG)) == dict.fromkeys(NAMES, ("Evicted", ""))


def test_a_pod_of_a_gang_that_is_annotated_while_others_are_evicted_is_left_alone() -> None:
    class Annotated(InMemory):
        def end(self, pod: Object) -> None:
            super().end(pod)
            self.named("bert-2")["metadata"]["annotations"][KEY] = "never"

    server = Annotated(GANG)

    assert evict(server)["bert-2"] == ("Bypassed", f"pod bert-2 has the annotation {KEY}")
    assert server.evicted == ["bert-0", "bert-1"]


def test_a_gang_whose_node_has_returned_meanwhile_is_left_alone() -> None:
    four = [gang_pod(number, f"n{number}", size=4) for number in range(4)]
    server = InMemory((*NODES[:3], gpu_node("n3", down_for=HOUR), *four))

    def ready(server: InMemory) -> None:
        server.objects.remove(server.named("n3"))
        server.objects.append(gpu_node("n3"))

    found = evict(server, change=ready)

    assert found == dict.fromkeys(NAMES, ("Bypassed", "its gang has changed, or is gone"))
    assert server.evicted == []


def test_a_gang_whose_pod_group_needs_fewer_pods_meanwhile_is_left_alone() -> None:
    pods = [each for each in GANG if isinstance(each, PodBuilder)]
    grouped = [each.annotate("scheduling.k8s.io/group-name", "bert").scheduler("volcano") for each in pods]
    server = InMemory((*NODES, volcano_group("bert", namespace="team-c", members=8), *grouped))

    def shrink(server: InMemory) -> None:
        server.named("bert")["spec"]["minMember"] = 3

    found = evict(server, change=shrink)

    assert found == dict.fromkeys(NAMES, ("Bypassed", "its gang has changed, or is gone"))
    assert server.evicted == []


def test_a_gang_whose_pod_group_does_not_exist_is_evicted_by_its_annotations() -> None:
    pods = [each for each in GANG if isinstance(each, PodBuilder)]
    grouped = [each.annotate("scheduling.k8s.io/group-name", "bert").scheduler("volcano") for each in pods]
    server = InMemory((*NODES, volcano_group("other", namespace="team-a"), *grouped))

    assert evict(server) == dict.fromkeys(NAMES, ("Evicted", ""))


def bind_the_rest(server: InMemory) -> None:
    """Bind the pods of the gang that wait, so that it runs whole."""
    for number in range(3, 8):
        server.objects.remove(server.named(f"bert-{number}"))
        server.objects.append({**gang_pod(number, "n3").obj()})
        server.objects[-1]["metadata"]["resourceVersion"] = "2"


def test_a_gang_that_starts_while_it_is_asked_about_is_left_alone() -> None:
    class Starting(InMemory):
        async def create(self, path: str, content: Object, query: Query) -> Object:
            if content.get("metadata", {}).get("name") == "bert-2" and "dryRun" in query:
                bind_the_rest(self)
            return await super().create(path, content, query)

    server = Starting(GANG)
    found = evict(server)

    assert found["bert-0"] == ("Bypassed", "its gang runs, or has ended")
    assert found["bert-1"] == found["bert-2"] == ("Bypassed", "pod bert-0 of its gang is not evicted")
    assert server.evicted == []


def test_a_gang_that_starts_while_many_nodes_are_read_is_left_alone() -> None:
    class Large(InMemory):
        node_lists = 0

        async def body(self, path: str, query: Query, *_: object, **__: object) -> bytes:
            if path.endswith("/nodes"):
                self.node_lists += 1
                if self.node_lists == 2:
                    bind_the_rest(self)
            return await super().body(path, query)

    server = Large(GANG)

    assert evict(server)["bert-0"] == ("Bypassed", "its gang runs, or has ended")
    assert server.evicted == []


def test_a_gang_that_starts_while_it_is_evicted_keeps_its_other_pods() -> None:
    class Replaced(InMemory):
        def end(self, pod: Object) -> None:
            super().end(pod)
            bind_the_rest(self)
            again = gang_pod(8, "n3").obj()
            again["metadata"]["resourceVersion"] = "3"
            self.objects.append(again)

    server = Replaced(GANG)

    assert evict(server)["bert-1"] == ("Bypassed", "its gang runs, or has ended")
    assert server.evicted == ["bert-0"]

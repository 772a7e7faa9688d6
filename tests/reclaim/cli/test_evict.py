"""`reclaim --evict` and the Eviction API of a real API server."""

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from placement_reclaim.cluster import Objects
from placement_reclaim.eviction import Evictions, Result
from placement_reclaim.report import Limits, rows_of_pods
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.on_cluster.held import ago
from tests.support.programs.command import Outcome, Run
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.policy.loader import built_in_policy
from webhook.watch.api_errors import PAGE_BYTES, UnreachableError
from webhook.watch.api_server import ApiServer, ClientConfig, Query

Object = dict[str, Any]
HOUR = 3600


def held_pod(cluster: Cluster, name: str, reason: str = "CrashLoopBackOff", pod: PodBuilder | None = None) -> Object:
    """Create a pod with two cards that waits for `reason` since an hour, and return it."""
    made = (pod or make_pod(name)).gpu(2).label("app", name).node_name("held-1").obj()
    created = cluster.create(made).object
    waiting = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 1}
    status = {
        "phase": "Pending" if reason == "ImagePullBackOff" else "Running",
        "startTime": ago(2 * HOUR),
        "conditions": [
            {"type": "ContainersReady", "status": "False", "lastTransitionTime": ago(HOUR)},
            {"type": "Ready", "status": "True", "lastTransitionTime": ago(HOUR)},
        ],
        "containerStatuses": [{**waiting, "state": {"waiting": {"reason": reason}}}],
    }
    return cluster.client.patch(
        "Pod", name, {"status": status}, namespace=created["metadata"]["namespace"], subresource="status"
    ).object


def budget(cluster: Cluster, name: str, app: str) -> None:
    """Create a budget that allows no disruption."""
    api_version = "policy/v1"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    metadata = {"name": name, "namespace": cluster.namespace}
    kind = "PodDisruptionBudget"
    cluster.client.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    status = {
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        "observedGeneration": 1,
    }
    cluster.client.patch(
        kind, name, {"status": status}, namespace=cluster.namespace, api_version=api_version, subresource="status"
    )


class Evict:
    """Runs `reclaim --evict` on the namespace of a test."""

    def __init__(self, cluster: Cluster, run: Run, folder: Path) -> None:
        self._cluster, self._run, self._folder = cluster, run, folder

    def __call__(self, *flags: object, listed: bool = True) -> Outcome:
        spec = {"reclaim": {"namespaces": [self._cluster.namespace]}} if listed else {}
        head = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
        file = self._folder / "policy.json"
        file.write_bytes(orjson.dumps({**head, "metadata": {"name": "own"}, "spec": spec}))
        kubeconfig, namespace = self._cluster.control_plane.kubeconfig, self._cluster.namespace
        given = ("--kubeconfig", kubeconfig, "--policy", file, "-n", namespace)
        return self._run("reclaim", "--evict", *given, *flags)

    def results(self, *flags: object, listed: bool = True) -> dict[str, tuple[str, str]]:
        """Return result and message of each pod by its name."""
        found = (orjson.loads(line) for line in self(*flags, "-o", "json", listed=listed).output.splitlines())
        return {each["pod"].partition("/")[2]: (each["result"], each["message"] or "") for each in found}


@pytest.fixture
def evict(cluster: Cluster, run: Run, tmp_path: Path) -> Evict:
    cluster.make_nodes(make_node_object("held-1", capacity={"nvidia.com/gpu": 16}))
    return Evict(cluster, run, tmp_path)


def terminating(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.pods() if each["metadata"].get("deletionTimestamp")]


def test_without_confirm_the_api_server_is_only_asked(cluster: Cluster, evict: Evict, tmp_path: Path) -> None:
    held_pod(cluster, "crash")
    held_pod(cluster, "pull", "ImagePullBackOff")
    held_pod(cluster, "full")
    held_pod(cluster, "double")
    for name, app in (("a", "full"), ("b", "double"), ("c", "double"), ("d", "pull")):
        budget(cluster, name, app)

    found = evict.results("--audit", tmp_path / "audit.jsonl")

    # A budget does not count for a pod that is Pending.
    assert (found["crash"], found["pull"]) == (("would be evicted", ""), ("would be evicted", ""))
    assert found["full"][0] == found["double"][0] == "refused"
    assert "429 Cannot evict pod as it would violate the pod's disruption budget." in found["full"][1]
    assert "500 This pod has more than one PodDisruptionBudget" in found["double"][1]
    assert terminating(cluster) == []
    assert [each for each in cluster.client.list("Event", cluster.namespace) if each["reason"] == "Reclaimed"] == []
    records = [orjson.loads(each) for each in (tmp_path / "audit.jsonl").read_bytes().splitlines()]
    assert {each["name"]: (each["outcome"], each["dryRun"]) for each in records} == {
        "crash": ("Evicted", True),
        "pull": ("Evicted", True),
        "full": ("Denied", True),
        "double": ("Denied", True),
    }


def test_pods_are_left_alone_unless_their_namespace_is_listed(cluster: Cluster, evict: Evict) -> None:
    held_pod(cluster, "crash")
    held_pod(cluster, "kept", pod=make_pod("kept").annotate("maip.mxsf.io/reclaim", "never"))

    assert evict.results()["kept"] == ("left alone", "pod kept has the annotation maip.mxsf.io/reclaim")
    assert evict.results(listed=False)["crash"] == (
        "left alone",
        "spec.reclaim.namespaces of the policy does not list its namespace",
    )


def test_limits_leave_the_rest_alone(cluster: Cluster, evict: Evict) -> None:
    for number in range(3):
        held_pod(cluster, f"web-{number}", pod=make_pod(f"web-{number}").owner("StatefulSet", "web"))

    by_owner, by_number = evict.results(), evict.results("--max", 2, "--max-per-owner", 9)

    assert [result for result, _ in by_owner.values()] == ["would be evicted", "left alone", "left alone"]
    assert by_owner["web-1"][1] == "--max-per-owner 1: 1 more pod of its owner"
    assert by_number["web-2"] == ("left alone", "--max 2: 1 more pod")


def test_with_confirm_a_pod_is_evicted_with_an_event_and_a_record(
    cluster: Cluster, evict: Evict, run: Run, tmp_path: Path
) -> None:
    held_pod(cluster, "crash", pod=make_pod("crash").owner("StatefulSet", "crash"))

    outcome = evict("--confirm", "--audit", tmp_path / "audit.jsonl")

    assert outcome.output.splitlines() == [
        f"evicted: {cluster.namespace}/crash: crash-loop; returns at once: a controller makes it again",
        "1 evicted",
    ]
    assert outcome.code == 3
    assert terminating(cluster) == ["crash"]
    (event,) = [each for each in cluster.client.list("Event", cluster.namespace) if each["reason"] == "Reclaimed"]
    assert event["message"].startswith("evicted, because its cards are held and not used: crash-loop: 2 nvidia.com/gpu")
    assert (event["action"], event["type"], event["source"]["component"]) == ("Evict", "Warning", "placement-webhook")
    assert run("audit", "verify", tmp_path / "audit.jsonl").code == 0
    (record,) = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    found = orjson.loads(record)
    assert (found["kind"], found["operation"], found["outcome"]) == ("reclaim", "EVICT", "Evicted")
    assert (found["owner"], found["policy"]["name"], found["dryRun"]) == (
        {"kind": "StatefulSet", "name": "crash"},
        "own",
        False,
    )
    assert found["user"]


def test_a_gang_is_evicted_whole_with_a_record_for_each_pod(cluster: Cluster, evict: Evict, tmp_path: Path) -> None:
    for number in range(3):
        pod = make_pod(f"bert-{number}").gpu(2).annotate("maip.mxsf.io/gang", "bert")
        pod = pod.annotate("maip.mxsf.io/gang-size", "3").owner("Job", "bert", api_version="batch/v1")
        cluster.create(pod.node_name("held-1") if number else pod.scheduler("absent"))
        running = {"phase": "Running", "startTime": ago(HOUR)}
        if number:
            namespace = cluster.namespace
            cluster.client.patch(
                "Pod", f"bert-{number}", {"status": running}, namespace=namespace, subresource="status"
            )
    limits = ("--older-than", "0", "--max-per-owner", 2)

    assert evict.results(*limits)["bert-1"] == evict.results(*limits)["bert-2"] == ("would be evicted", "")
    found = evict.results(*limits, "--confirm", "--audit", tmp_path / "audit.jsonl", "--pause", "0")

    assert found == {"bert-1": ("evicted", ""), "bert-2": ("evicted", "")}
    assert terminating(cluster) == ["bert-1", "bert-2"]
    assert len((tmp_path / "audit.jsonl").read_bytes().splitlines()) == 2


def test_ctrl_c_ends_after_the_eviction_that_is_under_way(cluster: Cluster, evict: Evict, tmp_path: Path) -> None:
    for number in range(3):
        held_pod(cluster, f"crash-{number}")

    def interrupt() -> None:
        wait_for(lambda: terminating(cluster) or None, "an eviction")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    outcome = evict("--confirm", "--audit", tmp_path / "audit.jsonl", "--pause", "60s")
    thread.join()

    assert outcome.code == 130
    assert outcome.output.splitlines()[-1] == "interrupted: 1 evicted"
    assert len(terminating(cluster)) == 1


def test_an_error_keeps_the_summary_and_an_eviction_without_an_answer_is_no_refusal(
    cluster: Cluster, evict: Evict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        held_pod(cluster, f"crash-{number}")
    create, evicted = ApiServer.create, list[str]()

    async def answers_once(server: ApiServer, path: str, content: Object, query: Query) -> Object:
        answer = await create(server, path, content, query)
        if path.endswith("/eviction") and "dryRun" not in query:
            evicted.append(content["metadata"]["name"])
            if len(evicted) == 2:
                server.get = server.body = no_answer  # type: ignore[method-assign]
                await no_answer()
        return answer

    async def no_answer(*_: object, **__: object) -> Any:
        raise UnreachableError("the API server does not answer: TimeoutError")

    monkeypatch.setattr(ApiServer, "create", answers_once)
    outcome = evict("--confirm", "--audit", tmp_path / "audit.jsonl", "--pause", "0s")

    message = "it may be evicted: the API server does not answer: TimeoutError"
    assert outcome.code == 1
    assert outcome.output.splitlines()[1:] == [
        f"no answer: {cluster.namespace}/{evicted[1]}: {message}",
        "1 evicted, 1 no answer",
    ]
    records = [orjson.loads(each) for each in (tmp_path / "audit.jsonl").read_bytes().splitlines()]
    assert [(each["outcome"], each.get("error")) for each in records] == [("Evicted", None), ("Error", message)]


class Stale(ApiServer):
    """An API server whose lists have the uid of a pod that was there before."""

    async def body(self, path: str, query: Query, most_bytes: int) -> bytes:
        found = orjson.loads(await super().body(path, query, most_bytes))
        for each in found["items"]:
            each["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
        return orjson.dumps(found)


class Recovering(ApiServer):
    """An API server on which a pod runs right before its eviction, after the dry run."""

    async def create(self, path: str, content: Object, query: Query) -> Object:
        if path.endswith("/eviction") and "dryRun" not in query:
            running = {"running": {"startedAt": ago(0)}}
            status = {"name": "main", "image": "x", "imageID": "", "ready": True, "restartCount": 2, "state": running}
            await self.patch(path.removesuffix("eviction") + "status", {"status": {"containerStatuses": [status]}}, {})
        return await super().create(path, content, query)


@pytest.mark.parametrize(
    ("server_type", "expected"),
    [
        (Stale, "the UID in the precondition (00000000-0000-0000-0000-000000000000)"),
        (Recovering, "the ResourceVersion in the precondition"),
    ],
)
def test_a_pod_that_was_replaced_or_recovers_meanwhile_is_not_evicted(
    cluster: Cluster, evict: Evict, server_type: type[ApiServer], expected: str
) -> None:
    held_pod(cluster, "crash")
    node = make_node_object("held-1", capacity={"nvidia.com/gpu": 16})
    objects = Objects(built_in_policy(), snapshot_from_documents([Document("the test", node)]))
    found: list[Result] = []

    async def run() -> None:
        async with server_type(ClientConfig(cluster.control_plane.kubeconfig)) as server:
            objects.take(node)
            pods = await server.body(f"/api/v1/namespaces/{cluster.namespace}/pods", {}, PAGE_BYTES)
            for each in orjson.loads(pods)["items"]:
                objects.take({"apiVersion": "v1", "kind": "Pod", **each})
            (row,) = rows_of_pods(objects, int(time.time()))
            policy = policy_with(reclaim={"namespaces": ["*"]})
            evictions = Evictions(server, objects, lambda _: policy, Limits(1, 1), is_confirmed=True)
            found.extend([each async for each in evictions.run([(row, "")], None)])

    asyncio.run(run())

    assert (found[0].outcome, terminating(cluster)) == ("Denied", [])
    assert "409" in found[0].detail
    assert expected in found[0].detail

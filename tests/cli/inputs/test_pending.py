"""`check` places the pending pods of the cluster before the pods that it is asked for."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, documents, lines
from tests.support.programs.command import Run
from webhook.cli.inputs.pending import Reserved, place_pending_pods
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler

NODES = [make_node_object(name, capacity={"nvidia.com/gpu": 4}) for name in ("a", "b")]
ASKED = make_pod("asked").gpu(4)
NO_ROOM = (
    "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. "
    "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
)
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
LOW = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 5}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pending(name: str, cards: int = 4, *, second: int = 0, priority: int = 0) -> dict[str, Any]:
    pod = make_pod(name).gpu(cards).spec(priority=priority).obj()
    pod["metadata"]["creationTimestamp"] = f"2026-05-01T08:00:{second:02}Z"
    return pod


def deployment(replicas: int, cards: int) -> dict[str, Any]:
    labels = {"app": "web"}
    template = make_pod().label("app", "web").gpu(cards).template()
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.fixture
def check(run: Run, tmp_path: Path) -> Any:
    def check(asked: dict[str, Any] | PodBuilder, *cluster: dict[str, Any] | PodBuilder, options: Any = ()) -> Any:
        path = tmp_path / "cluster.json"
        path.write_text(as_list(*NODES, *cluster))
        outcome = run("check", "-f", "-", "--cluster", path, "-o", "json", *options, stdin=as_list(asked))
        assert outcome.errors == ""
        (line,) = lines(outcome.output)
        return line

    return check


def test_pod_waits_if_pending_pods_take_its_room(check: Any) -> None:
    line = check(ASKED, pending("first"), pending("second"), pending("third"))

    assert (line["verdict"], line["node"], line["nodes"]) == (
        "Waiting",
        None,
        {"total": 2, "feasible": 0, "reasons": {"wants 4 nvidia.com/gpu, free 0 of 4": ["a", "b"]}},
    )
    assert line["message"] == f"{NO_ROOM} It would fit, but 2 pods that wait before it need the room."
    assert line["reserved"] == {"pods": 2, "nodes": {"a": 1, "b": 1}, "withoutRoom": 1}


def test_pod_gets_the_room_that_pending_pods_leave(check: Any) -> None:
    first = check(ASKED, pending("first"))
    on = next(iter(first["reserved"]["nodes"]))

    assert (first["verdict"], first["nodes"]["feasible"]) == ("Feasible", 1)
    assert {first["node"], on} == {"a", "b"}


def test_best_node_is_the_first_by_name(check: Any) -> None:
    nodes = {check(make_pod(name).gpu(1))["node"] for name in ("asked", "other", "third", "fourth")}

    assert nodes == {"a"}


def test_pending_pods_can_be_ignored(check: Any) -> None:
    line = check(ASKED, pending("first"), pending("second"), options=("--pending", "ignore"))

    assert (line["verdict"], line["node"], "reserved" in line) == ("Feasible", "a", False)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(make_pod("gated").gpu(4).spec(schedulingGates=[{"name": "quota"}]), id="gated"),
        pytest.param(make_pod("told").gpu(4).status(conditions=[UNSCHEDULABLE]), id="found unschedulable"),
        pytest.param(make_pod("ended").gpu(4).status(phase="Succeeded"), id="ended"),
        pytest.param(pending("later", priority=-1), id="lower priority"),
    ],
)
def test_pods_that_do_not_come_before_do_not_count(check: Any, other: dict[str, Any] | PodBuilder) -> None:
    line = check(ASKED, pending("first"), other)

    assert (line["verdict"], line["reserved"]["pods"], line["reserved"]["withoutRoom"]) == ("Feasible", 1, 0)


def test_pending_pod_of_the_cluster_does_not_count_against_itself(check: Any) -> None:
    line = check(ASKED, pending("asked"), make_pod("load").node_name("a").gpu(4))

    assert (line["verdict"], line["node"], "reserved" in line) == ("Feasible", "b", False)


def test_only_earlier_pods_count_for_a_pending_pod(check: Any) -> None:
    queue = [pending("late", second=3), pending("asked", second=2), pending("early", second=1)]

    line = check(ASKED, *queue, make_pod("load").node_name("a").gpu(4))

    assert (line["verdict"], line["reserved"]) == ("Waiting", {"pods": 1, "nodes": {"b": 1}, "withoutRoom": 0})
    assert line["message"].endswith("It would fit, but 1 pod that waits before it needs the room.")


def test_higher_priority_comes_before_an_earlier_pod(check: Any) -> None:
    queue = [pending("urgent", second=9, priority=10), pending("asked", second=2)]

    line = check(ASKED, *queue, make_pod("load").node_name("a").gpu(4))

    assert (line["verdict"], line["reserved"]["pods"]) == ("Waiting", 1)


def test_pending_pod_whose_manifest_states_no_priority_has_that_of_the_stored_pod() -> None:
    others = (pending("first", priority=5), pending("second", priority=5))
    asked = pending("asked", second=9, priority=10)
    snapshot = snapshot_from_documents([Document("-", each) for each in (*NODES, *others, asked)])
    queue = place_pending_pods(snapshot, Scheduler(), counts=True)
    del asked["spec"]["priority"]

    _, reserved = queue.before(asked, queue.assumed)

    assert (dict(reserved.nodes), reserved.without_room) == ({}, 0)


def test_first_of_the_pending_pods_has_room_whatever_follows(check: Any) -> None:
    line = check(ASKED, pending("asked", second=1), *(pending(f"p{each}", second=2) for each in range(5)))

    assert (line["verdict"], "reserved" in line) == ("Feasible", False)


def test_priority_that_only_a_class_states_orders_the_queue(check: Any) -> None:
    urgent = make_pod("urgent").gpu(4).spec(priorityClassName="high")
    load = make_pod("load").node_name("a").gpu(4).spec(priority=5)

    line = check(ASKED.spec(priorityClassName="low"), urgent, load, HIGH, LOW)

    assert (line["verdict"], line["reserved"]["pods"]) == ("Waiting", 1)


def test_suggestions_free_no_room_of_pods_that_wait(check: Any) -> None:
    load = make_pod("load").node_name("b").gpu(4)

    on_a_pending_pod = check(ASKED, pending("first"), load)
    beside_a_pending_pod = check(ASKED, pending("first", 2), load, make_pod("two").node_name("a").gpu(2))

    assert on_a_pending_pod["suggestions"] == ["b fits once 4 nvidia.com/gpu are freed"]
    assert "b fits once 4 nvidia.com/gpu are freed" in beside_a_pending_pod["suggestions"]
    assert not [each for each in beside_a_pending_pod["suggestions"] if each.startswith("a ")]


def test_no_pod_that_waits_is_to_be_evicted(check: Any) -> None:
    urgent = [make_pod(name).gpu(4).spec(priorityClassName="high") for name in ("first", "second")]

    line = check(ASKED.spec(priorityClassName="low"), *urgent, HIGH, LOW)

    assert (line["verdict"], line["reserved"]["pods"]) == ("Waiting", 2)
    assert line["suggestions"] == []


def test_later_replicas_wait_for_pending_pods(check: Any) -> None:
    line = check(deployment(4, 2), pending("first", 2))

    assert (line["verdict"], line["fits"], line["replicas"]) == ("Waiting", 3, 4)
    assert line["message"] == f"{NO_ROOM} It would fit, but 1 pod that waits before it needs the room."


def test_replica_without_room_on_any_node_does_not_wait_for_pending_pods(check: Any) -> None:
    line = check(deployment(4, 4), pending("first", 1), options=())

    assert (line["verdict"], line["fits"]) == ("Waiting", 1)
    assert "It would fit, but 1 pod" in line["message"]
    line = check(deployment(4, 4), pending("first", 1), options=("--pending", "ignore"))
    assert (line["fits"], line["message"]) == (2, NO_ROOM)


def test_pending_pods_of_the_object_do_not_count_against_it(check: Any) -> None:
    own = [make_pod(f"web-{each}").label("app", "web").gpu(2) for each in range(4)]

    line = check(deployment(4, 2), *own)

    assert (line["verdict"], line["fits"], line["replaced"], "reserved" in line) == ("Feasible", 4, 0, False)


def test_text_names_the_pending_pods_and_the_nodes_without_them(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(as_list(*NODES, *(pending(f"p{each}", 2) for each in range(5))))

    outcome = run("check", "-f", "-", "--cluster", path, stdin=as_list(ASKED))

    assert (outcome.code, outcome.errors) == (3, "")
    assert "  4 pending pods take their places first: a 2, b 2; 1 fits nowhere\n" in outcome.output
    assert "  would fit without the pods that wait before it: a, b\n" in outcome.output
    assert "if running pods were gone" not in outcome.output


@pytest.mark.parametrize(
    ("reserved", "text"),
    [
        (Reserved(), ""),
        (Reserved({"a": 1}), "1 pending pod takes its place first: a 1"),
        (
            Reserved({"b": 2, "a": 2, "c": 9}, 1),
            "13 pending pods take their places first: c 9, a 2, b 2; 1 fits nowhere",
        ),
        (Reserved({}, 1), "1 pending pod fits nowhere"),
        (Reserved({}, 4), "4 pending pods fit nowhere"),
        (
            Reserved(dict.fromkeys("abcdefg", 1)),
            "7 pending pods take their places first: a 1, b 1, c 1, d 1, e 1, 2 more nodes",
        ),
    ],
)
def test_reserved_pods_in_one_line(reserved: Reserved, text: str) -> None:
    assert reserved.text == text


def test_last_pods_of_a_long_queue_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    pods = [pending(f"p{each}", 1, second=each, priority=each % 2) for each in range(6)]
    # Its room is kept by the filters.
    pods.append(pending("nominated", 1) | {"status": {"nominatedNodeName": "a"}})
    snapshot = snapshot_from_documents(
        Document(f"document {number}", content) for number, content in enumerate(documents(as_list(*NODES, *pods)))
    )

    queue = place_pending_pods(snapshot, Scheduler(), counts=True, most=4)

    assert sorted(key.name for key in queue.assumed.by_key) == ["p0", "p1", "p3", "p5"]
    assert capsys.readouterr().err == "left out: 2 pending pods, the last of 6 in the queue\n"


def test_pending_pods_that_cannot_be_read_are_named(run: Run, tmp_path: Path) -> None:
    malformed = [make_pod(name).requests(cpu="much") for name in ("first", "second")]
    path = tmp_path / "cluster.json"
    path.write_text(as_list(*NODES, *malformed))

    outcome = run("check", "-f", "-", "--cluster", path, stdin=as_list(ASKED))

    assert (outcome.code, outcome.errors) == (
        0,
        "left out: 2 pending pods that cannot be read, the first is default/first\n",
    )


def test_of_equal_pods_of_a_long_queue_the_latest_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    pods = [pending(f"p{each}", 1, second=9 - each) for each in range(4)]
    snapshot = snapshot_from_documents(Document("f", each) for each in documents(as_list(*NODES, *pods)))

    queue = place_pending_pods(snapshot, Scheduler(), counts=True, most=2)

    assert sorted(key.name for key in queue.assumed.by_key) == ["p2", "p3"]


def test_pods_before_a_pending_pod_count_if_none_of_them_has_room(check: Any) -> None:
    line = check(pending("second", 4, second=2), pending("first", 16, second=1), pending("second", 16, second=2))

    assert line["reserved"] == {"pods": 0, "nodes": {}, "withoutRoom": 1}

"""What is known of a bound pod beside its load, by each way in which a pod is read."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
import yaml

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.running_pod_reader import RunningPodReader
from webhook.documents.documents import Document, parse
from webhook.documents.field import InvalidInput
from webhook.kube.names import KUEUE_POD_SET, KUEUE_WORKLOAD
from webhook.kube.pod.stored_pod import StoredPod

POD = make_pod("p").node_name("a")
PLACED = POD.label(KUEUE_POD_SET, "main")
STARTED, DELETED = "2026-01-31T12:00:00Z", "2026-01-31T12:00:30.5+01:00"
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
BACK_OFF, CREATING = ({"waiting": {"reason": reason}} for reason in ("ImagePullBackOff", "ContainerCreating"))
FACTS = ("started_seconds", "deletion_seconds", "is_preempted", "controller", "waiting_reason")


def of_event(pod: dict[str, Any]) -> RunningPod:
    event = StoredPod.in_event(orjson.dumps({"type": "ADDED", "object": pod}))
    assert event is not None
    return RunningPodReader().read(event[1])


def in_file(text: str) -> RunningPod:
    ((found,),) = (info.pods for info in snapshot_from_documents(parse(text, "f")).nodes)
    return found


WAYS: dict[str, Callable[[dict[str, Any]], RunningPod]] = {
    "alone": RunningPod.of,
    "watch": of_event,
    "JSON": lambda pod: in_file(orjson.dumps({"kind": "List", "items": [make_node_object("a"), pod]}).decode()),
    "YAML": lambda pod: in_file(f"{yaml.safe_dump(make_node_object('a'))}---\n{yaml.safe_dump(pod)}"),
}


def states(**containers: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": name, "state": state} for name, state in containers.items()]}


def status(**containers: Any) -> PodBuilder:
    return POD.container("logs").status(**states(**containers))


def with_init(container: dict[str, Any], state: Any, *others: Any) -> PodBuilder:
    """A pod with the init container `c` in `state`, and `others`, statuses of sidecars."""
    sidecars = [{"name": each["name"], "restartPolicy": "Always"} for each in others]
    pod = POD.spec(initContainers=[*sidecars, {"name": "c", **container}])
    return pod.status(initContainerStatuses=[*others, {"name": "c", "state": state}])


DEBUGGER = {"name": "debugger", "state": {"running": {"startedAt": "2026-01-31T12:00:00Z"}}}
CARD = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
WITH_CARD = POD.gpu(1).container("logs")
WITH_CLAIM = POD.spec(
    containers=[
        {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}},
        {"name": "logs", "image": "x"},
    ]
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("pod", "facts"),
    [
        pytest.param(POD, {}, id="none"),
        pytest.param(POD.status(startTime=STARTED), {"started_seconds": 1769860800}, id="started"),
        pytest.param(POD.deletion(DELETED), {"deletion_seconds": 1769857230}, id="being deleted"),
        pytest.param(
            POD.deletion(STARTED).status(conditions=[{"type": "Ready"}, PREEMPTED]),
            {"deletion_seconds": 1769860800, "is_preempted": True},
            id="preempted",
        ),
        pytest.param(POD.status(conditions=[PREEMPTED]), {}, id="preempted and not yet deleted"),
        pytest.param(
            POD.deletion(STARTED).status(conditions=[{**PREEMPTED, "reason": "EvictionByEvictionAPI"}, PREEMPTED]),
            {"deletion_seconds": 1769860800},
            id="the first condition of the type decides",
        ),
        pytest.param(
            POD.deletion(STARTED).status(conditions=[{**PREEMPTED, "status": "False"}]),
            {"deletion_seconds": 1769860800},
            id="not the target",
        ),
        pytest.param(POD.owner("Job", "train-1"), {"controller": "Job/train-1"}, id="controller"),
        pytest.param(
            POD.owner("Node", "x" * 2000).owner("Job", "y"), {"controller": f"Node/{'x' * 2000}"}, id="large reference"
        ),
        pytest.param(
            PLACED.annotate(KUEUE_WORKLOAD, "job-x").annotate("a/gang", "x"), {"workload": "job-x"}, id="workload"
        ),
        pytest.param(PLACED.annotate(KUEUE_WORKLOAD, "x" * 254), {}, id="no name of a workload"),
        pytest.param(PLACED, {}, id="no workload"),
        pytest.param(status(main={"running": {}}, logs={"terminated": {}}, other=None), {}, id="nothing waits"),
        pytest.param(
            status(main=BACK_OFF), {"waiting_reason": "ImagePullBackOff"}, id="the only container does not start"
        ),
        pytest.param(status(main=CREATING), {}, id="the container is about to start"),
        pytest.param(status(main={"running": {}}, logs=BACK_OFF), {}, id="one of two containers runs"),
        pytest.param(
            status(main={"terminated": {"exitCode": 1}}, logs=BACK_OFF),
            {"waiting_reason": "ImagePullBackOff"},
            id="one of two containers has ended",
        ),
        pytest.param(
            WITH_CARD.status(**states(main={"running": {}}, logs=BACK_OFF)), {}, id="a sidecar does not start"
        ),
        pytest.param(
            WITH_CARD.status(**states(main=BACK_OFF, logs={"running": {}})),
            {"waiting_reason": "ImagePullBackOff"},
            id="only a sidecar runs",
        ),
        pytest.param(
            WITH_CLAIM.status(**states(main=BACK_OFF, logs={"running": {}})),
            {"waiting_reason": "ImagePullBackOff"},
            id="only a sidecar of a container with a claim runs",
        ),
        pytest.param(
            POD.status(**states(main=BACK_OFF), ephemeralContainerStatuses=[DEBUGGER]),
            {},
            id="it is being debugged",
        ),
        pytest.param(
            status(main=BACK_OFF).status(
                **states(main=BACK_OFF), ephemeralContainerStatuses=[{**DEBUGGER, "state": {"terminated": {}}}]
            ),
            {"waiting_reason": "ImagePullBackOff"},
            id="it was debugged",
        ),
        pytest.param(
            POD.status(**states(main=CREATING), initContainerStatuses=[{"name": "c", "state": BACK_OFF}]),
            {"waiting_reason": "ImagePullBackOff"},
            id="an init container does not start",
        ),
        pytest.param(
            with_init({"restartPolicy": "Always"} | CARD, {"running": {}}).status(**states(main=BACK_OFF)),
            {},
            id="a sidecar with a card runs",
        ),
        pytest.param(
            with_init({"restartPolicy": "Always"}, {"running": {}}).status(**states(main=BACK_OFF)),
            {"waiting_reason": "ImagePullBackOff"},
            id="only a sidecar without a card runs",
        ),
        pytest.param(
            with_init({}, {"terminated": {}}).status(**states(main=BACK_OFF)),
            {"waiting_reason": "ImagePullBackOff"},
            id="the init container has ended",
        ),
        pytest.param(
            with_init({}, {"running": {}}, {"name": "proxy", "state": BACK_OFF}).status(**states(main=CREATING)),
            {},
            id="an init container runs while a sidecar does not start",
        ),
    ],
)
def test_facts_are_read(way: str, pod: PodBuilder, facts: dict[str, Any]) -> None:
    found = WAYS[way](pod.obj())

    assert {name: getattr(found, name) for name in FACTS} | {"workload": found.rare.workload} == {
        **dict.fromkeys(("started_seconds", "deletion_seconds"), 0),
        "is_preempted": False,
        "controller": "",
        "waiting_reason": "",
        "workload": "",
        **facts,
    }
    assert found.is_terminating is bool(found.deletion_seconds)


def test_an_owner_that_does_not_control_the_pod_is_none() -> None:
    pod = POD.owner("Job", "train-1").obj()
    pod["metadata"]["ownerReferences"][0]["controller"] = False

    assert [read(pod).controller for read in WAYS.values()] == [""] * len(WAYS)


@pytest.mark.parametrize("time", ["yesterday", "2026-01-31T12:00:00", 5])
@pytest.mark.parametrize(("part", "field"), [("status", "startTime"), ("metadata", "deletionTimestamp")])
def test_a_malformed_time_is_an_error(part: str, field: str, time: object) -> None:
    pod = POD.status(phase="Running").obj()
    pod[part][field] = time

    for read in (RunningPod.of, RunningPodReader().read):
        with pytest.raises(InvalidInput) as caught:
            read(pod)
        assert [error.path for error in caught.value.errors] == [f"{part}.{field}"]


def test_the_facts_are_no_load() -> None:
    full = POD.owner("Job", "x").deletion(STARTED).status(startTime=STARTED, conditions=[PREEMPTED])
    full = full.status(containerStatuses=[{"name": "c", "state": BACK_OFF}])

    assert RunningPod.of(full.obj()).is_same_load(RunningPod.of(POD.deletion(DELETED).obj()))
    assert not RunningPod.of(full.obj()).is_same_load(RunningPod.of(POD.obj()))


def test_a_malformed_file_names_the_pod() -> None:
    pod = POD.status(startTime="soon").obj()
    with pytest.raises(InvalidInput, match=r"f: Pod p: status\.startTime: Invalid value: \"soon\"; must be a"):
        snapshot_from_documents([Document("f", pod)])

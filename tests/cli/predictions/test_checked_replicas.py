"""The result for the pods of one template: its texts, and its JSON."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.objects.builders import make_pod
from webhook.cli.inputs.pending import Reserved
from webhook.cli.inputs.policies import PlacedPolicies
from webhook.cli.inputs.workloads import Workload, read_pods
from webhook.cli.predictions.checked_replicas import Answer
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import required
from webhook.placement.framework.result import Placement
from webhook.placement.replicas.replicas import Replicas
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicySet

POD = make_pod("web").obj()
FITS = Placement("Feasible", "n", 3, 2, "", {"n": {"total": 1}, "m": {"total": 1}})
WAITS = Placement("Waiting", None, 3, 0, "0/3 nodes are available.")


def workload(kind: str = "Deployment", **spec: Any) -> Workload:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]}
    content: dict[str, Any] = {
        "apiVersion": "apps/v1" if kind != "Job" else "batch/v1",
        "kind": kind,
        "metadata": {"name": "web"},
    }
    selector = {"selector": {"matchLabels": {"app": "web"}}} if kind != "Job" else {}
    content["spec"] = {"template": template, **selector, **spec}
    (found,), _ = read_pods([Document("f", content)], PlacedPolicies(PolicySet(built_in_policy())), None)
    return found


def answer(of: Workload, *, asked: int = 4, placed: int = 3, **more: Any) -> Answer:
    stopped = None if placed == asked else WAITS
    nodes = {"b": 1, "c": placed - 2, "a": 1}
    found = Replicas(asked, placed, nodes, FITS, stopped, is_complete=True, snapshot=Snapshot.of(()))
    given: dict[str, Any] = {"placement": found.placement, "replicas": found, "first": POD}
    return Answer(of, **(given | more))


@pytest.mark.parametrize(
    ("of", "more", "text"),
    [
        pytest.param(
            workload(replicas=5),
            {"asked": 5, "placed": 4},
            "Deployment default/web: 4 of 5 replicas fit now (2 on c, 1 on a, 1 on b)",
            id="the most pods first, then by name",
        ),
        pytest.param(workload("DaemonSet"), {}, "DaemonSet default/web: a pod on each node", id="a pod on each node"),
        pytest.param(
            workload(replicas=4),
            {"replaced": 2},
            "Deployment default/web: 3 of 4 replicas fit now (1 on a, 1 on b, 1 on c); "
            "the 2 running pods of the object count as gone",
            id="running pods",
        ),
        pytest.param(
            workload("Job", parallelism=4, suspend=True),
            {"replaced": 1},
            "Job default/web: 3 of 4 replicas fit now (1 on a, 1 on b, 1 on c); no pods are created while spec.suspend "
            "is set; the 1 running pod of the object counts as gone",
            id="a suspended job",
        ),
        pytest.param(workload(replicas=4), {"replicas": None}, "Deployment default/web", id="not evaluated"),
    ],
)
def test_the_text_about_replicas(of: Workload, more: dict[str, Any], text: str) -> None:
    assert answer(of, **more).replicas_text == text


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"placement": replace(WAITS, scores=FITS.scores)}, "nodes for the next replica, after 3:"),
        ({"placed": 4}, "nodes for the first replica:"),
        ({"placed": 0, "placement": WAITS, "reasons": {"m": ["full"]}}, "nodes for the first replica:"),
        ({"asked": 1, "placed": 1}, ""),
        ({"placed": 4, "placement": WAITS}, ""),
        ({"placed": 4, "placement": WAITS, "reasons": {"m": ["full"]}}, "nodes for the first replica:"),
    ],
)
def test_the_replica_of_the_nodes_is_named(more: dict[str, Any], text: str) -> None:
    assert answer(workload(replicas=4), **more).nodes_for == text


def test_reasons_of_the_most_nodes_come_first() -> None:
    reasons = {"c": ["full"], "a": ["full", "taint"], "b": ["full"]}
    found = answer(workload(replicas=4), reasons=reasons)

    assert [*found.nodes_by_reasons.items()] == [("full", ["b", "c"]), ("full; taint", ["a"])]
    assert [*found.to_json()["nodes"]["reasons"].items()] == [("full", ["a", "b", "c"]), ("taint", ["a"])]


def test_faults_come_before_a_denial_and_a_denial_before_the_placement() -> None:
    of = workload(replicas=4)

    assert answer(of, faults=(required("f", "x"),), refusal="denied").verdict == "Invalid"
    assert answer(of, refusal="denied").verdict == "Refused"
    assert answer(of).to_json()["verdict"] == "Waiting"


OPTIONAL: list[tuple[dict[str, Any], str, Any]] = [
    (
        {"reserved": Reserved({"b": 2, "a": 1}, 3)},
        "reserved",
        {"pods": 3, "nodes": {"a": 1, "b": 2}, "withoutRoom": 3},
    ),
    ({"reserved": Reserved({}, 1)}, "reserved", {"pods": 0, "nodes": {}, "withoutRoom": 1}),
    ({"preemption_note": "a note"}, "preemptionNote", "a note"),
    ({"overdue": ("one", "two")}, "overdue", ["one", "two"]),
    ({"completed_by": ("LimitRange a",)}, "added", ["LimitRange a"]),
]


@pytest.mark.parametrize(("more", "key", "value"), OPTIONAL)
def test_json_has_what_is_said_of_the_pods_only_if_there_is_something(
    more: dict[str, Any], key: str, value: object
) -> None:
    of = workload(replicas=4)

    assert answer(of, **more).to_json()[key] == value
    assert key not in answer(of).to_json()


def test_json_has_the_object_and_its_replicas() -> None:
    line = answer(workload("Job", parallelism=4, suspend=True), replaced=1).to_json()

    keys = ("object", "role", "replicas", "fits", "isComplete", "suspended", "replaced", "replicasByNode", "qosClass")
    expected = ("Job default/web", "", 4, 3, True, True, 1, {"b": 1, "c": 1, "a": 1}, "BestEffort")
    assert tuple(line[key] for key in keys) == expected


def test_json_of_pods_on_each_node_or_not_evaluated_has_no_counts() -> None:
    of_each, unknown = answer(workload("DaemonSet")).to_json(), answer(workload(replicas=4), replicas=None).to_json()

    assert (of_each["replicas"], of_each["fits"], of_each["isComplete"], of_each["suspended"]) == (
        None,
        None,
        True,
        False,
    )
    assert (unknown["replicas"], unknown["fits"], unknown["isComplete"], unknown["replicasByNode"]) == (
        4,
        None,
        False,
        {},
    )

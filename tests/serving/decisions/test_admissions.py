"""Admissions turn the body of an AdmissionReview into the body of its answer."""

import base64
from typing import Any

import jsonpatch
import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.case import cluster_of
from tests.support.admission import PRODUCT, TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod, match_expressions
from tests.support.random.random_json import json_values, replace_somewhere
from tests.support.random.random_pods import pods
from tests.support.scorers import ScorerOfNoNodes
from tests.support.servers.server import Clock, World, review, review_bytes
from webhook.admission.cluster_view import ClusterView
from webhook.audit.lines import UnsealedRecord
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.mutation.rules import RULES
from webhook.placement.scheduler import Scheduler
from webhook.serving.decisions.admissions import Answer

TRAINING = make_pod("trainer").annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-H20")


def answer_to(world: World, body: bytes, deadline_seconds: float | None = None) -> Answer:
    return world.admissions().answer(body, 1000.0, deadline_seconds)


def response_to(world: World, body: bytes) -> dict[str, Any]:
    answer = answer_to(world, body)
    assert answer.status == 200, answer.body
    review = orjson.loads(answer.body)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = review["response"]
    return response


def test_the_answer_repeats_the_uid_and_carries_patch_and_type_together() -> None:
    pod = TRAINING.obj()

    response = response_to(World(), review_bytes(pod))

    assert response["uid"] == "705ab4f5-6393-11e8-b7cc-42010a800002"
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"
    patched = jsonpatch.apply_patch(pod, orjson.loads(base64.b64decode(response["patch"])))
    assert patched["spec"]["schedulerName"] == "volcano"


def test_a_bypassed_pod_gets_no_patch() -> None:
    response = response_to(World(), review_bytes(make_pod("web").obj()))

    assert response["allowed"] is True
    assert "patch" not in response
    assert "patchType" not in response


def test_a_denial_has_code_and_message_and_no_patch() -> None:
    response = response_to(World(), review_bytes(make_pod("web").annotate(TYPE, "trainning").obj()))

    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert '"trainning"; supported values: "inference", "training"' in response["status"]["message"]
    assert "patch" not in response


def test_the_decision_of_the_audit_annotations_is_that_of_the_record() -> None:
    world = World()

    response = response_to(world, review_bytes(TRAINING.obj()))

    (record,) = world.records
    assert response["auditAnnotations"]["decision"] == record.decision == "decision-1"
    assert response["auditAnnotations"]["policy"] == world.policy.identity


def test_audit_annotations_hold_the_prediction() -> None:
    nodes = [
        make_node_object(f"n{gpus}", labels={USAGE: "inference"}, capacity={"nvidia.com/gpu": gpus}) for gpus in (4, 8)
    ]
    world = World(cluster=cluster_of({"cluster": nodes}))
    pod = make_pod().annotate(TYPE, "inference")

    answers = [response_to(world, review_bytes(pod.gpu(gpus).obj()))["auditAnnotations"] for gpus in (8, 16)]

    keys = ("placement", "node", "feasible", "total")
    assert [[answer.get(key) for key in keys] for answer in answers] == [
        ["Feasible", "n8", "1", "2"],
        ["Infeasible", None, "0", "2"],
    ]


def test_the_best_suggestion_is_a_warning_of_its_own_after_the_message() -> None:
    taints = ["team=vision:NoSchedule"]
    nodes = [make_node_object(f"n{index}", labels={USAGE: "inference"}, taints=taints) for index in range(3)]
    world = World(cluster=cluster_of({"cluster": nodes}))

    response = response_to(world, review_bytes(make_pod().annotate(TYPE, "inference").obj()))

    assert response["warnings"] == [
        "placement check: Infeasible: 0/3 nodes are available: 3 node(s) had untolerated taint(s).",
        "placement check: suggestion: 3 nodes would fit if the pod tolerated team=vision",
    ]


def test_the_record_holds_user_pod_and_reason() -> None:
    world = World(now=lambda: "2026-01-31T12:00:00.000000Z")
    pod = TRAINING.owner("Job", "train").obj()

    response_to(world, review_bytes(pod, dryRun=True))

    (record,) = world.records
    assert (record.time, record.namespace, record.name, record.user) == (
        "2026-01-31T12:00:00.000000Z",
        "team-a",
        "trainer",
        "jane",
    )
    assert record.owner is not None
    assert (record.owner.kind, record.owner.name) == ("Job", "train")
    assert (record.dry_run, record.outcome, record.workload_type) == (True, "Patched", "training")
    assert [rule.name for rule in record.rules] == [*RULES]
    assert record.patch
    assert record.placement is not None
    assert record.placement.verdict == "Unknown"


def test_the_record_holds_the_replaced_scheduler_name() -> None:
    world = World()

    response_to(world, review_bytes(TRAINING.scheduler("default-scheduler").obj()))

    assert world.records[0].before == {"/spec/schedulerName": "default-scheduler"}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param(b"", "body: Invalid value", id="empty"),
        pytest.param(b"{", "must be JSON", id="no JSON"),
        pytest.param(b"[]", "must be an AdmissionReview", id="a list"),
        pytest.param(b"{}", 'kind: Unsupported value: null; supported values: "AdmissionReview"', id="no kind"),
        pytest.param(b'{"kind":"Pod","apiVersion":"v1"}', 'kind: Unsupported value: "Pod"', id="a pod"),
        pytest.param(
            orjson.dumps(review({}) | {"apiVersion": "admission.k8s.io/v1beta1"}),
            'apiVersion: Unsupported value: "admission.k8s.io/v1beta1"; supported values: "admission.k8s.io/v1"',
            id="another version",
        ),
        pytest.param(orjson.dumps(review({}) | {"request": None}), "request: Required value", id="no request"),
        pytest.param(review_bytes({}, uid=""), "request.uid: Required value", id="no uid"),
        pytest.param(review_bytes(None), "request.object: Required value", id="no object"),
    ],
)
def test_an_invalid_admission_review_is_answered_400_with_the_errors(body: bytes, error: str) -> None:
    world = World()

    answer = answer_to(world, body)

    assert answer.status == 400
    assert error in answer.body.decode()
    assert world.records == []
    assert world.count("http_refused_requests_total", code="400") == 1


@pytest.mark.parametrize(
    ("pod", "error"),
    [
        pytest.param({"metadata": {}}, "request.object.spec: Required value", id="no spec"),
        pytest.param(
            {"metadata": {"annotations": {"a": 1}}, "spec": {}},
            "request.object.metadata.annotations[a]: Invalid value: 1; must be text",
            id="annotation that is no text",
        ),
    ],
)
def test_an_object_that_is_no_pod_is_answered_400_and_audited(pod: dict[str, Any], error: str) -> None:
    world = World()

    answer = answer_to(world, review_bytes(pod))

    assert answer.status == 400
    assert error in answer.body.decode()
    (record,) = world.records
    assert (record.outcome, record.uid, record.decision) == (
        "Error",
        "705ab4f5-6393-11e8-b7cc-42010a800002",
        "decision-1",
    )
    assert record.error is not None
    assert error in record.error
    assert world.count("http_refused_requests_total", code="400") == 1


class BrokenScorer(ScorerOfNoNodes):
    """A fault of ours."""

    def answer(self, *_: object) -> Any:
        raise RuntimeError("out of order")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(TRAINING.requests(cpu="-1"), id="a negative request"),
        pytest.param(TRAINING.prefer_node(1, match_expressions(("a", "Gt", ["x"]))), id="a bound that is no integer"),
    ],
)
def test_a_pod_that_the_scorer_cannot_read_is_patched(pod: PodBuilder) -> None:
    """The API server takes or refuses it; a 400 of ours would be a failed call, and the pod stored unpatched."""
    node = {"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}}
    world = World(cluster=cluster_of({"cluster": [node]}))

    response = response_to(world, review_bytes(pod.obj()))

    assert response["allowed"] is True
    assert "patch" in response
    assert world.records[0].placement is not None
    assert world.records[0].placement.verdict == "Unknown"


def test_an_internal_error_is_a_500_with_the_decision_and_never_a_denial() -> None:
    world = World(cluster=ClusterView(snapshot_from_documents([]), BrokenScorer()))

    with structlog.testing.capture_logs() as logs:
        answer = answer_to(world, review_bytes(TRAINING.obj()))

    assert [(each["log_level"], each["decision"]) for each in logs] == [("error", "decision-1")]
    assert answer.status == 500
    assert b"decision-1" in answer.body
    (record,) = world.records
    assert (record.outcome, record.error) == ("Error", "RuntimeError: out of order")
    assert world.count("admission_requests_total", outcome="Error", workload_type="") == 1


@pytest.mark.parametrize(
    "pod", [pytest.param(TRAINING.obj(), id="a pod"), pytest.param({"metadata": {}}, id="an object that is no pod")]
)
def test_a_failed_audit_record_is_a_500_with_the_decision_counted_and_logged(pod: dict[str, Any]) -> None:
    def broken(_: UnsealedRecord) -> None:
        raise RuntimeError("out of ink")

    world = World(audit=broken)

    with structlog.testing.capture_logs() as logs:
        answer = answer_to(world, review_bytes(pod))

    assert answer.status == 500
    assert b"decision-1" in answer.body
    assert world.count("admission_requests_total", outcome="Error", workload_type="") == 1
    assert [(log["event"], log["decision"]) for log in logs] == [
        ("admission failed", "decision-1"),
        ("admission is not on record", "decision-1"),
    ]


def test_an_error_in_auditing_is_audited() -> None:
    world = World()

    def broken_once(draft: UnsealedRecord) -> None:
        world.audit = world.keep
        raise RuntimeError("out of ink")

    world.audit = broken_once

    with structlog.testing.capture_logs() as logs:
        answer = answer_to(world, review_bytes(TRAINING.obj()))

    assert [(each["log_level"], each["decision"]) for each in logs] == [("error", "decision-1")]
    assert answer.status == 500
    (record,) = world.records
    assert (record.decision, record.outcome, record.error) == ("decision-1", "Error", "RuntimeError: out of ink")


def test_after_the_deadline_the_patch_is_returned_without_the_check() -> None:
    node = {"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}}
    world = World(cluster=cluster_of({"cluster": [node]}), clock=Clock(1000.0))

    late = answer_to(world, review_bytes(TRAINING.obj()), deadline_seconds=999.0)
    in_time = answer_to(world, review_bytes(TRAINING.obj()), deadline_seconds=1001.0)

    assert "patch" in orjson.loads(late.body)["response"]
    assert "patch" in orjson.loads(in_time.body)["response"]
    verdicts = [record.placement.verdict for record in world.records if record.placement]
    assert verdicts == ["Unknown", "Infeasible"]


def test_the_namespace_of_the_request_is_that_of_the_pod() -> None:
    """Another pod of team-a excludes every pod of team-a from its node, but no pod of another namespace."""
    anti = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
    running = make_pod("running").namespace("team-a").node_name("node-1")
    running = running.affinity({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [anti]}})
    node = make_node_object("node-1", labels={USAGE: "training", "kubernetes.io/hostname": "node-1"})
    objects = [Document("node", node), Document("pod", running.obj() | {"status": {"phase": "Running"}})]
    world = World(cluster=ClusterView(snapshot_from_documents(objects), Scheduler()))

    for namespace in ("team-a", "team-b"):
        response_to(world, review_bytes(make_pod("next").annotate(TYPE, "training").obj(), namespace=namespace))

    assert [record.placement.verdict for record in world.records if record.placement] == ["Waiting", "Feasible"]


def test_every_admission_is_counted_with_its_edits_and_verdict() -> None:
    world = World()

    for pod in (TRAINING.obj(), make_pod("web").obj()):
        response_to(world, review_bytes(pod))

    assert world.count("admission_requests_total", outcome="Patched", workload_type="training") == 1
    assert world.count("admission_requests_total", outcome="Bypassed", workload_type="") == 1
    assert world.count("rule_edits_total", rule="NodeUsageAffinity") == 4
    assert world.count("placement_verdicts_total", verdict="Unknown") == 1
    assert world.count("admission_duration_seconds_count") == 2


@given(json_values)
def test_any_json_is_answered_below_500(value: Any) -> None:
    assert answer_to(World(), orjson.dumps(value)).status == 400


@given(st.data())
def test_a_review_with_anything_anywhere_is_answered_below_500(data: st.DataObject) -> None:
    """A valid review with one or two of its values, at any depth, replaced by any JSON."""
    body = review(data.draw(pods()))
    for _ in range(data.draw(st.integers(1, 2))):
        replace_somewhere(body, data)

    answer = answer_to(World(), orjson.dumps(body))

    assert answer.status in (200, 400), answer.body

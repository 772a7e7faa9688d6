"""The answer, the record and the counts of a workload object and a Namespace."""

from typing import Any

import orjson

from tests.golden.case import cluster_of
from tests.support.admission import TYPE, USAGE, make_request, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workloads import SAMPLES
from tests.support.servers.server import World, review_bytes
from webhook.kube.api.admission import AdmissionRequest
from webhook.objects.admission import admit_request
from webhook.serving.decisions.rendering import render

DEPLOYMENT = SAMPLES[0]
CLUSTER = {"cluster": [make_node_object("n1", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": 8})]}
KIND = {"group": "apps", "version": "v1", "kind": "Deployment"}
RESOURCE = {"group": "apps", "version": "v1", "resource": "deployments"}


def deployment(gpus: int = 4) -> dict[str, Any]:
    template = make_pod("").gpu(gpus).label("app", "web").annotate(TYPE, "training").template()
    return DEPLOYMENT.object(template, replicas=4)


def test_an_object_is_allowed_without_a_patch_and_counted_apart_from_pods() -> None:
    world = World(cluster=cluster_of(CLUSTER))

    answer = world.admissions().answer(
        review_bytes(deployment(), kind=KIND, resource=RESOURCE, name="web"), 1000.0, None
    )

    response = orjson.loads(answer.body)["response"]
    assert response.keys() == {"uid", "allowed", "warnings", "auditAnnotations"}
    assert response["allowed"] is True
    assert response["warnings"][0].startswith("placement check: Waiting: 2 of 4 replicas fit now; the next: 0/1 nodes")
    assert response["auditAnnotations"]["placement"] == "Waiting"
    (record,) = world.records
    assert (record.kind, record.name, record.outcome) == ("Deployment", "web", "Unchanged")
    assert record.placement is not None
    assert record.placement.message.startswith("2 of 4 replicas fit now; the next: 0/1 nodes")
    assert world.count("object_admission_requests_total", kind="Deployment", outcome="Unchanged") == 1
    assert world.count("admission_requests_total", outcome="Unchanged", workload_type="training") == 0
    assert world.count("placement_verdicts_total", verdict="Waiting") == 0


def test_a_placement_of_an_object_is_no_prediction_for_a_pod() -> None:
    request: AdmissionRequest = make_request(deployment(1), kind="Deployment", group="apps", resource="deployments")

    rendered = render(request, admit_request(request, policy_with(), cluster_of(CLUSTER)), policy_with())

    assert rendered.placement is not None
    assert rendered.placement.verdict == "Feasible"
    assert rendered.prediction is None


def test_an_object_of_an_unknown_kind_is_left_alone() -> None:
    world = World(cluster=cluster_of(CLUSTER))
    other = {"group": "example.com", "version": "v1", "kind": "Deployment"}

    world.admissions().answer(review_bytes(deployment(), kind=other, resource=RESOURCE), 1000.0, None)

    assert [record.outcome for record in world.records] == ["Bypassed"]
    assert world.count("admission_requests_total", outcome="Bypassed", workload_type="") == 1

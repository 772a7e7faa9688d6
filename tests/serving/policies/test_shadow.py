"""Shadow mode and canary: decisions are computed, counted and on record, and change nothing for the user."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.case import cluster_of
from tests.serving.shadowed import answers, response_to
from tests.support.admission import PRODUCT, TYPE, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.random.random_pods import pods
from tests.support.servers.server import World, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.serving.decisions.deciders import Decider, WorkerDecider
from webhook.serving.decisions.decision_cache import DecisionCache

TRAINING = make_pod("trainer").annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-H20").gpu(1).obj()
SHADOW = {"mode": "shadow"}


@given(pod=pods(), spec=st.sampled_from([SHADOW, {"canaryPercent": 0}, {**SHADOW, "placementCheck": {"mode": "deny"}}]))
def test_shadow_mode_never_changes_a_pod(pod: dict[str, Any], spec: dict[str, Any]) -> None:
    response, _, _ = answers(pod, spec)
    assert response.keys() == {"uid", "allowed", "auditAnnotations"}
    assert response["allowed"]


def test_a_pod_that_no_node_can_take_is_not_denied() -> None:
    policy = policy_with(placementCheck={"mode": "deny"}, **SHADOW)
    cluster = cluster_of({"cluster": [make_node_object("n", capacity={"nvidia.com/gpu": 0})]}, policy)
    world = World(policy=policy, cluster=cluster)
    response = response_to(world.admissions(), TRAINING)
    assert response["allowed"]
    (record,) = world.records
    assert record.shadow is not None
    assert record.shadow.outcome == "Denied"
    assert record.shadow.placement is not None
    assert record.shadow.placement.verdict == "Infeasible"


class _Broken:
    """A scorer with a bug."""

    def answer(self, *_: object) -> Any:
        raise ZeroDivisionError("out of order")

    feasible_rows = answer


@pytest.mark.parametrize(("spec", "status"), [({}, 500), (SHADOW, 200)])
def test_an_internal_error_denies_nothing_in_shadow_mode(spec: dict[str, Any], status: int) -> None:
    cluster = cluster_of({"cluster": [make_node_object("n")]})
    assert cluster is not None
    world = World(policy=policy_with(**spec), cluster=ClusterView(cluster.snapshot, _Broken()))
    answer = world.admissions().answer(review_bytes(TRAINING), 1000.0, None)
    assert answer.status == status
    (record,) = world.records
    message = record.error if status == 500 else record.shadow and record.shadow.message
    assert message == "ZeroDivisionError: out of order"
    counted = {
        each.labels["outcome"]
        for metric in world.metrics.registry.collect()
        for each in metric.samples
        if each.name == "placement_webhook_admission_requests_total" and each.value
    }
    assert counted == {"Error" if status == 500 else record.outcome}


def test_equal_pods_of_owners_inside_and_outside_the_canary_share_no_answer() -> None:
    """The pods have no controller, so that all that is read of them is equal."""
    world = World(policy=policy_with(canaryPercent=50))
    answering = world.admissions()
    patched: dict[int, bool] = {}
    for _round in range(2):
        for number in range(40):
            pod = make_pod(f"pod-{number}").annotate(TYPE, "training").obj()
            is_patched = "patch" in response_to(answering, pod)
            assert patched.setdefault(number, is_patched) == is_patched
    assert set(patched.values()) == {True, False}


@pytest.mark.parametrize("decider", [DecisionCache, lambda: WorkerDecider(scheduler_for)])
def test_a_request_is_decided_by_its_policy_whatever_was_decided_before(decider: Callable[[], Decider]) -> None:
    """Two policies take turns in one decider: no answer, scorer or cache of one is used for the other."""
    cluster = cluster_of({"cluster": [make_node_object("n", capacity={"nvidia.com/gpu": 8})]})
    assert cluster is not None
    world, used = World(cluster=cluster), decider()
    policies = [policy_with(), policy_with(mode="shadow"), policy_with(placementCheck={"profile": "binpack"})]
    for policy in policies * 3:
        world.policy = policy
        world.cluster = ClusterView(cluster.snapshot, scheduler_for(policy))
        response = response_to(replace(world.admissions(), decider=used), TRAINING)
        assert ("patch" in response) == (policy.spec.mode == "enforce")
        assert response["auditAnnotations"]["policy"] == policy.identity

"""A PlacementPolicy is validated when it is written, whatever policy is in force."""

import asyncio
import time
from typing import Any

import orjson
import pytest

from tests.support.admission import TYPE, make_request, policy_with
from tests.support.objects.policy_objects import Object, policy
from tests.support.servers.server import World, arrival, review_bytes
from webhook.admission.injection import Denied
from webhook.admission.verdict import Advised, ObjectVerdict, Verdict
from webhook.kube.deadline import Expired, never
from webhook.objects.admission import admit_request, counted_kind
from webhook.policy.spec.document import GROUP, KIND
from webhook.serving.clock import rfc3339_now

CASE = {"name": "trainers are left alone", "annotations": {TYPE: "training"}, "expect": {"outcome": "Unchanged"}}
KIND_FIELDS: dict[str, Any] = {"group": GROUP, "kind": KIND}


def admitted(content: Object, expired: Expired = never, **spec: Any) -> Verdict | ObjectVerdict:
    request = make_request(content, name=content["metadata"]["name"], resource="placementpolicies", **KIND_FIELDS)
    return admit_request(request, policy_with(**spec), None, expired)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            policy("a", "a", tests=[CASE]),
            'spec.tests[0].expect.outcome: Invalid value: "Unchanged"; "trainers are left',
        ),
        (policy("a", "a", keyDomain="no domain"), "spec.keyDomain: Invalid value"),
        (policy("a", "a", workloadTyps={}), "spec.workloadTyps: Forbidden: unknown field"),
        (
            policy("a", "a", allowedSchedulers=["default-scheduler"]),
            'spec.allowedSchedulers: Invalid value: ["default-scheduler"]; must hold "volcano"',
        ),
        (policy("a"), "spec.namespaceSelector: Required value: must be set"),
        (policy("default", "a"), "spec.namespaceSelector: Forbidden: must be absent"),
    ],
    ids=["test case", "value", "unknown field", "reference", "no selector", "selector of the default"],
)
def test_a_policy_that_servers_would_reject_is_denied(content: Object, message: str) -> None:
    verdict = admitted(content)

    assert isinstance(verdict, Denied)
    assert (verdict.denial.code, verdict.denial.reason) == (422, "Invalid")
    assert f"PlacementPolicy {content['metadata']['name']}: {message}" in verdict.denial.message
    assert "; ".join(map(str, verdict.errors)) == verdict.denial.message


def test_a_valid_policy_is_allowed_without_a_word() -> None:
    passing = CASE | {"expect": {"outcome": "Patched"}}

    assert admitted(policy("a", "a", tests=[passing])) == Advised(None)


def test_a_policy_whose_test_cases_take_too_long_is_allowed_with_a_warning() -> None:
    verdict = admitted(policy("a", "a", tests=[CASE]), lambda: True)

    assert isinstance(verdict, Advised)
    assert "its status has the result" in verdict.warnings[0]


def test_an_exemption_does_not_concern_policies() -> None:
    exemptions = [{"users": ["kubernetes-*"], "reason": "administrators"}]

    assert isinstance(admitted(policy("a", "a", tests=[CASE]), exemptions=exemptions), Denied)


@pytest.mark.parametrize("other_group", ["example.com", "zoo.example.com"])
def test_policies_are_counted_by_their_kind_and_those_of_another_group_are_not(other_group: str) -> None:
    own = make_request(policy("a"), **KIND_FIELDS)
    other = make_request(policy("a"), kind=KIND, group=other_group)

    assert (counted_kind(own, policy_with()), counted_kind(other, policy_with())) == (KIND, "")


def test_a_server_in_shadow_mode_denies_an_invalid_policy() -> None:
    kind = {"group": GROUP, "version": "v1alpha1", "kind": KIND}
    body = review_bytes(policy("a", "a", tests=[CASE]), kind=kind, resource=kind, namespace="")
    world = World(policy=policy_with(mode="shadow"), clock=time.monotonic)

    async def story() -> bytes:
        dispatcher = world.dispatcher()
        answer = await dispatcher.answer(body, arrival(rfc3339_now()))
        dispatcher.close()
        return answer.body

    response = orjson.loads(asyncio.run(story()))["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 422)
    assert [record.kind for record in world.records] == [KIND]

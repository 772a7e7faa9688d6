"""For which requests a policy in shadow mode or with a canary is enforced."""

import hashlib
from typing import Any

import pytest

from tests.support.admission import DOMAIN, make_request, policy_with
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import AdmissionRequest
from webhook.policy.exempt import owner_bucket, pod_exemption, request_exemption, shadow_reason
from webhook.policy.loader import parse_policy

UID = "0b7d2d6c-7a3b-4a51-9e0e-2b0f6d0f7f11"


def pod(uid: str | None = UID, **metadata: Any) -> AdmissionRequest:
    owners = [{"kind": "Node", "uid": "not-the-controller"}]
    if uid:
        owners.append({"kind": "ReplicaSet", "controller": True, "uid": uid})  # type: ignore[dict-item]
    return make_request({"metadata": {"ownerReferences": owners, **metadata}, "spec": {}}, namespace="team-a")


def bucket_of(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:16], 16) % 100


@pytest.mark.parametrize(
    ("asked", "hashed"),
    [
        pytest.param(pod(name="a"), UID, id="the controller"),
        pytest.param(pod(name="b", generateName="x-", uid_=1), UID, id="whatever the pod is named"),
        pytest.param(pod(None, generateName="job-", name="job-abcde"), "team-a/job-", id="the generateName"),
        pytest.param(pod(None, name="single"), "team-a/single", id="the name"),
        pytest.param(pod(annotations={f"{DOMAIN}/gang": "llama"}), "team-a/llama", id="the gang, not the owner"),
        pytest.param(make_request({}, namespace="team-a"), "team-a/", id="no metadata"),
    ],
)
def test_the_bucket_is_the_hash_of_the_owner(asked: AdmissionRequest, hashed: str) -> None:
    assert owner_bucket(asked.object or {}, asked.namespace, f"{DOMAIN}/gang") == bucket_of(hashed)


@pytest.mark.parametrize("percent", [0, 1, 10, 50, 99, 100])
def test_the_canary_is_that_share_of_the_owners(percent: int) -> None:
    spec = policy_with(canaryPercent=percent).spec
    enforced = sum(shadow_reason(pod(str(number)), spec) is None for number in range(2000))
    assert abs(enforced - 20 * percent) <= 80 * (0 < percent < 100)


def test_a_larger_canary_keeps_the_owners_of_a_smaller_one() -> None:
    before, after = (policy_with(canaryPercent=percent).spec for percent in (10, 20))
    for number in range(500):
        if shadow_reason(pod(str(number)), before) is None:
            assert shadow_reason(pod(str(number)), after) is None


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({}, None),
        ({"mode": "shadow"}, "shadow mode"),
        ({"canaryPercent": 0}, "not in the canary of 0 %"),
        ({"canaryPercent": 99}, "not in the canary of 99 %"),
    ],
)
def test_other_objects_are_in_shadow_until_all_owners_are_enforced(spec: dict[str, Any], reason: str | None) -> None:
    asked = make_request({"metadata": {"name": "d"}}, kind="Deployment", resource="deployments")
    assert shadow_reason(asked, policy_with(**spec).spec) == reason


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("canaryPercent: 101", "must be in [0, 100]"),
        ("canaryPercent: '10'", "must be an integer"),
        ("mode: off", 'spec.mode: Invalid value|supported values: "enforce", "shadow"'),
        ("{mode: shadow, canaryPercent: 10}", "has no effect with mode: shadow"),
    ],
)
def test_a_mode_that_is_not_valid_is_an_error(spec: str, error: str) -> None:
    spec = spec if spec.startswith("{") else f"{{{spec}}}"
    text = f"apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nspec: {spec}\n"
    with pytest.raises(InvalidInput, match="spec") as raised:
        parse_policy(text, "policy.yaml")
    assert any(part in str(raised.value) for part in error.split("|"))


USERS, PODS = {"users": ["jane"], "reason": "r"}, {"namespaces": ["lab"], "reason": "r"}


@pytest.mark.parametrize("user", ["jane", "joe"])
@pytest.mark.parametrize("namespace", ["lab", "other"])
def test_an_exemption_of_users_is_of_the_request_and_others_are_of_the_pod(user: str, namespace: str) -> None:
    request = make_request({"metadata": {}}, namespace=namespace, user=user)
    for exemption in (USERS, PODS, USERS | PODS):
        spec = policy_with(exemptions=[exemption]).spec
        concerns_users = "users" in exemption
        holds = (user == "jane" or not concerns_users) and (namespace == "lab" or "namespaces" not in exemption)

        reason = "exempt by spec.exemptions[0]: r" if holds else None
        assert request_exemption(request, spec) == (reason if concerns_users else None)
        assert pod_exemption({"metadata": {}}, namespace, spec) == (None if concerns_users else reason)


@pytest.mark.parametrize(("kind", "holds"), [("", True), ("Pod", True), ("Deployment", False)])
def test_labels_of_pods_exempt_no_object_that_makes_pods(kind: str, holds: bool) -> None:
    spec = policy_with(
        exemptions=[{"users": ["jane"], "podLabels": {"matchLabels": {"app": "web"}}, "reason": "r"}]
    ).spec
    request = make_request({"metadata": {"labels": {"app": "web"}}}, user="jane", kind=kind)

    assert (request_exemption(request, spec) is not None) is holds

"""Who and what the policy exempts."""

from typing import Any

import pytest

from tests.support.admission import TYPE, make_request, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.injection import Bypassed
from webhook.admission.pipeline import admit
from webhook.documents.field import InvalidInput
from webhook.kube.api.admission import AdmissionRequest
from webhook.objects.admission import admit_request
from webhook.policy.loader import parse_policy

POD = make_pod("worker").annotate(TYPE, "training").label("app", "a").obj()
CI = "system:serviceaccount:ci:builder"


def request(user: str = "jane", groups: tuple[str, ...] = (), namespace: str = "team-a") -> AdmissionRequest:
    return make_request(POD, user=user, groups=groups, namespace=namespace)


def reason_for(asked: AdmissionRequest, **exemption: Any) -> str | None:
    """Return why the policy with this exemption leaves a pod alone; None if it does not."""
    verdict = admit(asked, policy_with(exemptions=[{**exemption, "reason": "because"}]), None)
    return verdict.reason if isinstance(verdict, Bypassed) else None


@pytest.mark.parametrize(
    ("exemption", "asked", "is_exempt"),
    [
        pytest.param({"users": ["jane"]}, request(), True, id="user"),
        pytest.param({"users": ["jan"]}, request(), False, id="a name is no prefix"),
        pytest.param({"users": ["j*e"]}, request(), True, id="pattern of users"),
        pytest.param({"users": ["j?ne", "[j]ane"]}, request(), False, id="only * is a wildcard"),
        pytest.param({"users": ["[j]ane"]}, request("[j]ane"), True, id="brackets are characters"),
        pytest.param({"users": ["system:serviceaccount:ci:*"]}, request(CI), True, id="service account as user"),
        pytest.param({"groups": ["ops", "admins"]}, request(groups=("dev", "admins")), True, id="one of the groups"),
        pytest.param({"groups": ["ops"]}, request(groups=("dev",)), False, id="none of the groups"),
        pytest.param({"serviceAccounts": ["ci:builder"]}, request(CI), True, id="service account"),
        pytest.param({"serviceAccounts": ["system:serviceaccount:ci:*"]}, request(CI), True, id="its whole name"),
        pytest.param({"serviceAccounts": ["ci:*"]}, request("ci:builder"), False, id="a user is no service account"),
        pytest.param({"namespaces": ["team-*"]}, request(), True, id="namespace"),
        pytest.param({"namespaces": ["team-b"]}, request(), False, id="other namespace"),
        pytest.param({"podLabels": {"matchLabels": {"app": "a"}}}, request(), True, id="label"),
        pytest.param({"podLabels": {"matchLabels": {"app": "b"}}}, request(), False, id="other label"),
        pytest.param(
            {"podLabels": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["b"]}]}},
            request(),
            True,
            id="expression",
        ),
        pytest.param({"users": ["jane"], "namespaces": ["team-b"]}, request(), False, id="every field must match"),
        pytest.param({"users": ["jane"], "podLabels": {"matchLabels": {"app": "a"}}}, request(), True, id="all match"),
    ],
)
def test_a_request_is_exempt_if_every_field_matches(
    exemption: dict[str, Any], asked: AdmissionRequest, is_exempt: bool
) -> None:
    assert reason_for(asked, **exemption) == ("exempt by spec.exemptions[0]: because" if is_exempt else None)


def deployment(user: str) -> AdmissionRequest:
    template = {"metadata": POD["metadata"], "spec": POD["spec"]}
    content = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "team-a"},
        "spec": {"replicas": 1, "template": template},
    }
    kind = {"kind": "Deployment", "group": "apps", "resource": "deployments"}
    return make_request(content, user=user, namespace="team-a", **kind)


@pytest.mark.parametrize("exemption", [{"users": ["jane"]}, {"podLabels": {"matchLabels": {"app": "a"}}}])
def test_workload_objects_are_exempt_by_user_and_by_the_labels_of_their_pods(exemption: dict[str, Any]) -> None:
    policy = policy_with(exemptions=[{**exemption, "reason": "because"}])
    verdict = admit_request(deployment("jane"), policy, None)
    assert isinstance(verdict, Bypassed)
    assert verdict.reason == "exempt by spec.exemptions[0]: because"


def test_a_namespace_is_exempt_by_user() -> None:
    content = {"metadata": {"name": "team-a", "annotations": {TYPE: "no-such-type"}}}
    asked = make_request(content, user="jane", kind="Namespace", resource="namespaces")
    assert admit_request(asked, policy_with(), None).outcome == "Denied"
    policy = policy_with(exemptions=[{"users": ["jane"], "reason": "because"}])
    assert admit_request(asked, policy, None).outcome == "Bypassed"


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ("{reason: x}", "must have users, groups, serviceAccounts, namespaces or podLabels"),
        ("{users: [a]}", "spec.exemptions[0].reason: Required value"),
        ("{users: [], reason: x}", "must hold at least one value"),
        ("{users: ['*'], reason: x}", "must be a name, or a pattern with *"),
        ("{serviceAccounts: [ci], reason: x}", "must be NAMESPACE:NAME"),
        ("{serviceAccounts: ['ci:'], reason: x}", "must be NAMESPACE:NAME"),
        ("{serviceAccounts: [':builder'], reason: x}", "must be NAMESPACE:NAME"),
        ("{serviceAccounts: ['ci:Builder'], reason: x}", "must be NAMESPACE:NAME"),
        ("{podLabels: {}, reason: x}", "an empty selector would exempt every pod"),
        ("{podLabels: {matchExpressions: [{key: a, operator: In}]}, reason: x}", "must have values with In and NotIn"),
        ("{users: [a], reason: ''}", "must be one line of 1 to 256 characters"),
    ],
)
def test_an_exemption_that_is_not_valid_is_an_error(entry: str, error: str) -> None:
    text = f"apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nspec:\n  exemptions: [{entry}]\n"
    with pytest.raises(InvalidInput, match=r"policy\.yaml:4: spec\.exemptions") as raised:
        parse_policy(text, "policy.yaml")
    assert error in str(raised.value)

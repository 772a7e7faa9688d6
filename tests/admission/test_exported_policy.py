"""The exported policy applies to the pods that the webhook is called for."""

from typing import Any

from certs.registration import Target, manifest
from tests.support.admission import policy_with
from webhook.admission.exported_policy import exported_policy, identity_of
from webhook.mutation.exported import Exported
from webhook.policy.policy import Withheld
from webhook.policy.policy_set import PolicySet

Object = dict[str, Any]
NAMESPACE = "gpu-system"
KNOWN = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "a"]}
CONDITION = {"name": "not-of-argo", "expression": "!request.userInfo.username.startsWith('argo')"}


def registered(**fields: Any) -> Object:
    configuration = manifest(Target(NAMESPACE))
    webhook = configuration["webhooks"][0]
    webhook |= fields
    return configuration


def spec_of(found: Exported) -> Object:
    spec: Object = found.objects[0]["spec"]
    return spec


def exported(configuration: Object | None, policies: PolicySet | None = None) -> Exported:
    return exported_policy(policies or PolicySet(policy_with()), 36, NAMESPACE, configuration)


def test_without_a_configuration_the_namespaces_of_the_webhook_are_left_alone() -> None:
    selector = spec_of(exported(None))["matchConstraints"]["namespaceSelector"]
    (expression,) = selector["matchExpressions"]
    assert list(expression["values"]) == ["kube-system", NAMESPACE, f"{NAMESPACE}-certs"]


def test_selectors_of_the_webhook_apply_too() -> None:
    namespaces = {"matchLabels": {"gpu": "yes"}, "matchExpressions": [KNOWN]}
    pods = {"matchLabels": {"team": "a"}}
    found = spec_of(exported(registered(namespaceSelector=namespaces, objectSelector=pods)))["matchConstraints"]
    expressions = found["namespaceSelector"]["matchExpressions"]
    assert expressions[-2:] == [{"key": "gpu", "operator": "In", "values": ["yes"]}, KNOWN]
    assert found["objectSelector"] == {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}


def test_shipped_selectors_and_conditions_change_nothing() -> None:
    assert exported(registered()) == exported(None)


def test_a_further_condition_of_the_webhook_applies_too() -> None:
    conditions = registered()["webhooks"][0]["matchConditions"]
    found = spec_of(exported(registered(matchConditions=[*conditions, CONDITION])))["matchConditions"]
    assert found[0] == CONDITION
    assert len(found) == len(spec_of(exported(None))["matchConditions"]) + 1


def test_a_configuration_without_a_webhook_for_pods_is_not_known() -> None:
    assert exported({"webhooks": []}) == exported(None)


def test_what_stands_in_for_a_rejected_policy_is_not_exported() -> None:
    default = policy_with()
    stand_in = default.withheld_as(Withheld("deny", "it is rejected"), "team-a")
    found = exported(None, PolicySet(default, (stand_in,)))
    assert {each["metadata"]["name"] for each in found.objects} == {"placement-webhook.default"}
    assert "it is rejected" in str(found.left_out[0])


def test_a_canary_is_left_to_the_webhook() -> None:
    found = exported(None, PolicySet(policy_with(canaryPercent=10)))
    assert found.objects == []
    assert "spec.canaryPercent" in str(found.left_out[0])


def test_every_object_has_the_identity_of_its_policy() -> None:
    policy = policy_with()
    found = exported(None, PolicySet(policy))
    assert {identity_of(each) for each in found.objects} == {policy.identity}
    assert identity_of({"metadata": {}}) == ""

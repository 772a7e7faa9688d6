"""What doctor finds around the servers: NetworkPolicies, quotas, LimitRanges, budgets and a second configuration."""

from typing import Any

import pytest

from placement_doctor.check import Severity
from placement_doctor.kept import PodsRead
from placement_doctor.source import Source
from tests.doctor.healthy import (
    NAMESPACE,
    commands_of,
    configuration,
    deployment,
    found,
    in_own_namespace,
    make_installation,
    named,
    objects,
    read_of,
    with_webhooks,
)
from tests.support.objects.manifests import Object

ANYONE = [{"ports": [{"port": "https"}]}]
MONITORING: list[Object] = [{"from": [{"namespaceSelector": {}}]}]


def policy(**spec: Any) -> Object:
    """Return the NetworkPolicy of deploy/ with these fields."""
    made = in_own_namespace("networkpolicy")
    made["spec"] |= spec
    return made


@pytest.mark.parametrize(
    ("policies", "what"),
    [
        ([policy(ingress=[])], "no ingress rule has the port of the webhook, so API servers cannot call it"),
        ([policy(ingress=[{"ports": [{"port": 8080}]}])], "no ingress rule has the port of the webhook"),
        ([policy(ingress=MONITORING)], "the webhook's port is open only to selected pods"),
        ([policy(egress=[{"ports": [{"port": 53}]}])], "no egress rule has the port of API servers"),
        ([policy(egress=[{"to": [{"podSelector": {}}]}])], "no egress rule has the port of API servers"),
    ],
)
def test_a_network_policy_that_closes_the_servers_is_found(policies: list[Object], what: str) -> None:
    (finding,) = found(read_of(Source.NETWORK_POLICIES, *policies), "own-namespace")
    assert finding.where == f"NetworkPolicies {NAMESPACE}/placement-webhook"
    assert finding.what.startswith(what)


@pytest.mark.parametrize(
    "policies",
    [
        [policy(ingress=[{}])],
        [policy(ingress=[{"ports": [{"port": 8443}]}])],
        [policy(ingress=[{"ports": [{"port": 8000, "endPort": 8443}]}])],
        [policy(ingress=[{"ports": [{"port": 8000, "endPort": 9000}], "from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])],
        [policy(policyTypes=["Ingress"], egress=[])],
        [policy(podSelector={"matchLabels": {"app": "other"}}, ingress=[])],
        [policy(podSelector={}, ingress=[]), policy(ingress=ANYONE)],
        [],
    ],
)
def test_network_policies_that_let_api_servers_in_are_no_fault(policies: list[Object]) -> None:
    """The rules of all policies that select a pod add up."""
    assert found(read_of(Source.NETWORK_POLICIES, *policies), "own-namespace") == []


@pytest.mark.parametrize(
    ("spec", "used", "is_found"),
    [
        ({}, "10", True),
        ({}, "2", False),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "values": ["low"]}]}}, "10", False),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort"}]}}, "10", False),
        ({"scopeSelector": None}, "10", True),
    ],
)
def test_a_quota_without_room_for_a_replica_is_found(spec: dict[str, Any], used: str, is_found: bool) -> None:
    quota = in_own_namespace("resourcequota")
    quota["spec"] |= spec
    quota["status"] = {"hard": {"pods": "10"}, "used": {"pods": used}}
    findings = found(read_of(Source.QUOTAS, quota), "own-namespace")
    assert ["has no room for a further pod" in each.what for each in findings] == [True] * is_found


@pytest.mark.parametrize(("enforced", "is_found"), [("10", True), ("20", False)])
def test_a_raised_quota_has_room_once_its_status_says_so(enforced: str, is_found: bool) -> None:
    quota = in_own_namespace("resourcequota")
    quota["spec"]["hard"] = {"pods": "20"}
    quota["status"] = {"hard": {"pods": enforced}, "used": {"pods": "10"}}
    assert bool(found(read_of(Source.QUOTAS, quota), "own-namespace")) == is_found


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"max": {"memory": "64Mi"}}, "new replicas are refused: container webhook "),
        ({"min": {"memory": "1Ti"}}, "new replicas are refused: container webhook requests"),
        ({"max": {"cpu": "10m"}}, "new replicas are refused: container webhook requests"),
        ({"default": {"cpu": "4"}}, "gives container webhook a CPU limit, which throttles admissions"),
    ],
)
def test_a_limit_range_that_does_not_fit_the_servers_is_found(item: dict[str, Any], what: str) -> None:
    limits = {**named("limits", namespace=NAMESPACE), "spec": {"limits": [{"type": "Container", **item}]}}
    (finding,) = found(read_of(Source.LIMIT_RANGES, limits), "own-namespace")
    assert finding.what.startswith(what)


def test_a_container_with_a_limit_requests_as_much_before_a_limit_range_gives_it_less() -> None:
    servers = deployment()
    servers["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "256Mi"}}
    item = {"type": "Container", "min": {"memory": "64Mi"}, "defaultRequest": {"memory": "1Mi"}}
    limits = {**named("limits", namespace=NAMESPACE), "spec": {"limits": [item]}}
    read = {**objects(), Source.LIMIT_RANGES: (limits,), Source.DEPLOYMENTS: (servers,)}
    assert found(make_installation(objects=read), "own-namespace") == []


def test_a_limit_range_of_another_namespace_is_no_fault() -> None:
    limits = {**named("limits", namespace="team-a"), "spec": {"limits": [{"type": "Container", "max": {"cpu": "1m"}}]}}
    assert found(read_of(Source.LIMIT_RANGES, limits), "own-namespace") == []


@pytest.mark.parametrize("field", ["default", "defaultRequest"])
def test_gpus_by_default_are_found(field: str) -> None:
    limits = {
        **named("limits", namespace="team-a"),
        "spec": {"limits": [{"type": "Container", field: {"nvidia.com/gpu": "1", "cpu": "1"}}]},
    }
    (finding,) = found(read_of(Source.LIMIT_RANGES, limits), "gpu-defaults")
    assert finding.where == f"LimitRange team-a/limits: spec.limits[0].{field}"
    assert commands_of(finding.remedy) == [["kubectl", "-n", "team-a", "edit", "limitrange", "limits"]]


@pytest.mark.parametrize("item", [{"default": {"nvidia.com/gpu": "0"}}, {"max": {"nvidia.com/gpu": "8"}}])
def test_a_limit_range_without_gpus_by_default_is_no_fault(item: dict[str, Any]) -> None:
    limits = {**named("limits", namespace="team-a"), "spec": {"limits": [{"type": "Container", **item}]}}
    assert found(read_of(Source.LIMIT_RANGES, limits), "gpu-defaults") == []


@pytest.mark.parametrize(
    ("spec", "is_found"),
    [
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": "0%"}, True),
        ({"minAvailable": 2}, True),
        ({"minAvailable": "100%"}, True),
        ({"minAvailable": 1}, False),
        ({"maxUnavailable": "50%"}, False),
    ],
)
def test_a_budget_that_allows_no_eviction_is_found(spec: dict[str, Any], is_found: bool) -> None:
    budget = in_own_namespace("poddisruptionbudget")
    budget["spec"] = {"selector": budget["spec"]["selector"], **spec}
    findings = found(read_of(Source.BUDGETS, budget), "failure-policy")
    assert ["allows no eviction" in each.what for each in findings] == [True] * is_found


def test_the_reason_why_replicas_cannot_be_created_is_in_the_finding() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "message": 'pods "x" is forbidden: exceeded quota: q'}
    (finding,) = found(read_of(Source.DEPLOYMENTS, deployment(readyReplicas=1, conditions=[failure])), "failure-policy")
    assert finding.what == '1 of 2 replicas are ready; pods "x" is forbidden: exceeded quota: q'


def test_a_second_configuration_with_our_webhooks_is_found() -> None:
    """Such as that of a trial outside of the cluster."""
    trial = configuration()
    trial["metadata"]["name"] = "placement-webhook-trial"
    trial["webhooks"].append({"name": "pods.example.com"})
    (finding,) = found(read_of(Source.CONFIGURATIONS, configuration(), trial), "installed")
    assert finding.where == "MutatingWebhookConfiguration placement-webhook-trial"
    assert finding.remedy == "`kubectl delete mutatingwebhookconfiguration placement-webhook-trial`"


@pytest.mark.parametrize(("labels", "selected"), [({"placed": "yes"}, True), ({"placed": "no"}, False), ({}, False)])
def test_whether_the_object_selector_selects_a_pod_of_the_cluster(labels: dict[str, str], selected: bool) -> None:
    read = PodsRead.of(with_webhooks(objectSelector={"matchLabels": {"placed": "yes"}}))
    assert read.selects_a_pod is None
    read.add({"metadata": {"name": "a", "namespace": "team-a", "labels": labels}, "spec": {}})
    read.add({"metadata": {"name": "b", "namespace": "team-a"}, "spec": {}})
    assert read.selects_a_pod is selected


def test_an_object_selector_that_selects_no_pod_is_found() -> None:
    changed = configuration()
    changed["webhooks"][0]["objectSelector"] = {"matchLabels": {"placed": "yes"}}
    read = {**objects(), Source.CONFIGURATIONS: (changed,)}
    (finding,) = found(make_installation(objects=read, selects_a_pod=False), "selectors")
    assert (finding.severity, finding.where[-14:]) == (Severity.WARNING, "objectSelector")
    assert found(make_installation(objects=read, selects_a_pod=True), "selectors") == []
    assert found(make_installation(objects=read), "selectors") == []

"""Each check of webhook configuration, certificates, Service and servers: healthy, and with its faults."""

from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from certs.pki import SERVER_VALIDITY, issue_ca, issue_server
from placement_doctor import commands
from placement_doctor.check import Severity
from placement_doctor.cluster import Cluster, ServerClock, Trial
from placement_doctor.matching import is_called_for_pods, labels_selected_by, may_send_pod
from placement_doctor.registry import CHECKS
from placement_doctor.sample_pods import User, judge, named_in_the_canary, reason_not_enforced, sample_pod
from placement_doctor.source import Source
from tests.doctor.healthy import (
    CONFIGURATION,
    NAMESPACE,
    POLICY,
    admitted,
    called,
    configuration,
    deployment,
    faults,
    found,
    lease,
    make_installation,
    named,
    objects,
    probes,
    read_of,
    slices,
    texts,
    under,
    with_args,
    with_webhooks,
)
from tests.support.admission import policy_with
from tests.support.tls.certificates import AGED, EXPIRED, FROM_TOMORROW, NOW, OTHER, make_artifacts
from webhook.admission.missed import MissedPod, Owner
from webhook.cli.inputs.installed_policy import StoredPolicy
from webhook.kube.release import Release
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicySet

PODS = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
AGAIN = {"reinvocationPolicy": "IfNeeded"}
ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
PLACE = f"MutatingWebhookConfiguration {CONFIGURATION}"


def test_a_healthy_installation_has_no_fault() -> None:
    assert faults(make_installation()) == []


def test_nothing_read_is_no_fault_but_of_readable() -> None:
    """A check finds nothing in what was not read."""
    unread = Cluster(NOW, make_installation().target, PolicySet(POLICY), {}, dict.fromkeys(Source, "403 Forbidden"))
    assert {each.check for each in faults(unread)} == {"readable"}


def test_an_empty_cluster_has_no_installation() -> None:
    """No check fails for want of objects."""
    empty = Cluster(NOW, make_installation().target, PolicySet(POLICY), dict.fromkeys(Source, ()))
    errors = [each for each in faults(empty) if each.severity is ERROR]
    assert [each.check for each in errors] == ["installed"]


def test_ids_are_unique() -> None:
    assert len({each.id for each in CHECKS}) == len(CHECKS)


def only(installation: Cluster, check: str) -> tuple[Severity, str]:
    """Return the severity and text of the one finding of the check."""
    (finding,) = found(installation, check)
    return finding.severity, f"{finding.where}: {finding.what}"


def peer(name: str, **fields: Any) -> dict[str, Any]:
    return {**named(name), "webhooks": [{"name": "mutate.example.com", "rules": PODS, **fields}]}


def test_a_configuration_of_another_name_is_named() -> None:
    installation = make_installation(target=replace(make_installation().target, configuration="mine"))
    (finding,) = found(installation, "installed")
    assert (finding.severity, finding.remedy) == (ERROR, f"`--configuration={CONFIGURATION}` names the one that exists")


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "none"), (5, "c0, c1, c2, c3, c4"), (6, "c0, c1, c2, c3, c4 and 1 more")]
)
def test_a_configuration_that_is_missing_is_found_with_the_others(number: int, shown: str) -> None:
    installation = read_of(Source.CONFIGURATIONS, *(named(f"c{at}") for at in range(number)))
    severity, text = only(installation, "installed")
    assert severity is ERROR
    assert text.endswith(f"does not exist, so no pod is sent to the webhook; the cluster has {shown}")


def test_a_configuration_without_pods_is_found() -> None:
    severity, text = only(with_webhooks(rules=[]), "installed")
    assert (severity, text) == (ERROR, f"{PLACE}: webhooks: no rule has the creation of pods")


@pytest.mark.parametrize(
    ("rule", "is_called"),
    [
        ({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}, True),
        ({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}, True),
        ({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}, True),
        ({"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}, False),
        ({"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["*"]}, False),
        ({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*"]}, False),
    ],
)
def test_a_rule_is_about_pods_as_api_servers_read_it(rule: dict[str, list[str]], is_called: bool) -> None:
    assert is_called_for_pods({"rules": [rule]}) is is_called


def test_a_service_that_is_missing_is_found() -> None:
    assert only(read_of(Source.SERVICE), "service")[0] is ERROR


@pytest.mark.parametrize("endpoints", [(), slices(ready=False)])
def test_a_service_without_ready_endpoints_is_found(endpoints: tuple[dict[str, Any], ...]) -> None:
    severity, text = only(read_of(Source.ENDPOINTS, *endpoints), "service")
    assert severity is ERROR
    assert "has no ready endpoints" in text


@pytest.mark.parametrize(
    ("port", "what"),
    [
        ({"port": 8443, "targetPort": "https"}, "has no port 443, which API servers call (it has 8443)"),
        ({"port": 443, "targetPort": "tls"}, "targetPort tls is the name of no port of the Deployment's containers"),
    ],
)
def test_a_port_that_does_not_fit_is_found(port: dict[str, Any], what: str) -> None:
    (service,) = objects()[Source.SERVICE]
    changed = {**service, "spec": {**service["spec"], "ports": [port]}}
    severity, text = only(read_of(Source.SERVICE, changed), "service")
    assert (severity, text) == (ERROR, f"Service {NAMESPACE}/placement-webhook: spec.ports: {what}")


def test_a_webhook_that_calls_another_service_is_found() -> None:
    changed = configuration()
    changed["webhooks"][1]["clientConfig"]["service"] = {"namespace": "old", "name": "old", "port": 443}
    severity, text = only(read_of(Source.CONFIGURATIONS, changed), "service")
    assert severity is WARNING
    assert text == f"{PLACE}: webhooks[1].clientConfig.service: calls old/old, not {NAMESPACE}/placement-webhook"


@pytest.mark.parametrize(
    ("key", "value", "usual"), [("port", 8443, 443), ("path", "/mutat", "/mutate")], ids=["port", "path"]
)
def test_one_webhook_that_calls_another_port_or_path_is_named(key: str, value: object, usual: object) -> None:
    changed = configuration()
    webhook = changed["webhooks"][2]
    webhook["clientConfig"]["service"][key] = value
    severity, text = only(read_of(Source.CONFIGURATIONS, changed), "service")
    assert severity is ERROR
    where = f"{PLACE}: webhooks[2].clientConfig.service.{key}"
    assert text == f"{where}: {webhook['name']} calls {value}, and the others call {usual}"


def test_one_webhook_that_calls_another_url_is_named() -> None:
    changed = configuration()
    for number, webhook in enumerate(changed["webhooks"]):
        webhook["clientConfig"] = {"url": f"https://10.0.0.{9 if number == 1 else 8}:8443/mutate"}
    severity, text = only(read_of(Source.CONFIGURATIONS, changed), "service")
    assert severity is ERROR
    assert text.endswith("calls https://10.0.0.9:8443/mutate, and the others call https://10.0.0.8:8443/mutate")


def test_commands_name_the_url_that_most_webhooks_call() -> None:
    changed = configuration()
    for number, webhook in enumerate(changed["webhooks"]):
        webhook["clientConfig"] = {"url": f"https://10.0.0.{8 if number else 9}:8443/mutate"}
    assert "--url=https://10.0.0.8:8443/mutate" in commands.certs(read_of(Source.CONFIGURATIONS, changed), "register")


def test_an_endpoint_that_only_api_servers_reach_is_a_note() -> None:
    away = make_installation(probes=probes(called(pem=None, detail="Name or service not known")))
    severity, text = only(away, "endpoint")
    assert severity is INFO
    assert text.endswith("; the dry-run creation of a pod shows that API servers reach it")


def test_a_url_that_nobody_reaches_is_an_error() -> None:
    at_url = configuration()
    for webhook in at_url["webhooks"]:
        webhook["clientConfig"] = {"url": "https://webhook.example.com/mutate"}
    unanswered = read_of(Source.CONFIGURATIONS, at_url)
    away = replace(unanswered, probes=probes(called(pem=None, detail="refused")), trial=None)
    assert only(away, "endpoint")[0] is ERROR
    assert only(replace(away, trial=admitted()), "endpoint")[0] is INFO


@pytest.mark.parametrize("bundle", ["", "Cg==", "no base64"])
def test_a_ca_bundle_without_a_ca_is_found(bundle: str) -> None:
    client = {**configuration()["webhooks"][0]["clientConfig"], "caBundle": bundle}
    severity, text = only(with_webhooks(clientConfig=client), "ca-bundle")
    assert severity is ERROR
    assert text.startswith(f"{PLACE}: webhooks[0].clientConfig.caBundle: empty or unreadable")


def test_a_url_without_ca_bundle_is_verified_by_the_roots_of_the_system() -> None:
    assert found(with_webhooks(clientConfig={"url": "https://webhook.example.com/mutate"}), "ca-bundle") == []


def test_an_expired_ca_is_found() -> None:
    later = make_installation(now=NOW + timedelta(days=365 * 30))
    assert {each.severity for each in found(later, "ca-bundle")} == {ERROR}


@pytest.mark.parametrize(("years", "severities"), [((11, 0), []), ((11, 12), [ERROR])])
def test_a_ca_that_has_expired_is_no_fault_beside_a_valid_one(
    years: tuple[int, ...], severities: list[Severity]
) -> None:
    """A rotation leaves the old one in the bundle, before or after the new one."""
    issued = b"".join(issue_ca(now=NOW - timedelta(days=365 * each)).certificate for each in years)
    client = configuration()["webhooks"][0]["clientConfig"] | {"caBundle": b64encode(issued).decode()}
    assert [each.severity for each in found(with_webhooks(clientConfig=client), "ca-bundle")][:1] == severities


@pytest.mark.parametrize(
    ("result", "severity", "what"),
    [
        (called(pem=OTHER.certificate, trusted=False, detail="unknown authority"), ERROR, "unknown authority"),
        (called(pem=EXPIRED.certificate, trusted=False), ERROR, "serves a certificate that expired"),
        (
            called(pem=make_artifacts(server_age=SERVER_VALIDITY - timedelta(days=9, hours=1)).certificate),
            WARNING,
            "serves a certificate that expires in 9 days",
        ),
    ],
)
def test_a_certificate_that_is_not_trusted_is_found(result: Any, severity: Severity, what: str) -> None:
    finding = only(make_installation(probes=probes(result)), "certificate")
    assert finding[0] is severity
    assert what in finding[1]


def test_a_certificate_of_a_day_is_renewed_each_day() -> None:
    """No issuer renews it 30 days before its end."""
    ca = issue_ca(now=NOW - timedelta(days=2))
    fresh, due = (
        issue_server(ca, dns_names=["a"], now=NOW - timedelta(hours=hours), validity=timedelta(days=1)).certificate
        for hours in (16, 22)
    )
    assert found(make_installation(probes=probes(called(pem=fresh))), "certificate") == []
    assert only(make_installation(probes=probes(called(pem=due))), "certificate")[0] is WARNING


def test_each_replica_with_another_certificate_is_found() -> None:
    good, bad = probes(called())[0], probes(called(trusted=False, detail="unknown authority"))[0]
    other = tuple(replace(each, address="10.1.0.2:8443") for each in bad)
    assert len(found(make_installation(probes=(good, other)), "certificate")) == 1
    assert len(found(make_installation(probes=(bad, other)), "certificate")) == 2


FAILED = 'Internal error occurred: failed calling webhook "{}": failed to call webhook: Post "https://x": EOF'


@pytest.mark.parametrize(
    ("trial", "severity", "what"),
    [
        (Trial("default", "training", 0.1, {"metadata": {}}), ERROR, "is created without injection"),
        (
            Trial("default", "training", 0.1, None, FAILED.format("pods.placement.maip.mxsf.io")),
            ERROR,
            'pods are refused (failurePolicy Fail): failed to call webhook: Post "https://x": EOF',
        ),
        (Trial("default", "training", 0.1, None, FAILED.format("other.example.com")), WARNING, "something else"),
        (Trial("default", "training", 0.1, None, "403 exceeded quota: a"), WARNING, "exceeded quota"),
        (
            Trial(
                "default",
                "training",
                0.1,
                None,
                'admission webhook "pods.placement.maip.mxsf.io" denied the request: no',
            ),
            WARNING,
            "the webhook denies the smallest pod of type training: no",
        ),
        (admitted()._replace(seconds=4.0), WARNING, "takes 4.0 s"),
    ],
)
def test_a_dry_run_that_is_not_injected_is_found(trial: Trial, severity: Severity, what: str) -> None:
    finding = only(make_installation(trial=trial), "answer")
    assert finding[0] is severity
    assert what in finding[1]


@pytest.mark.parametrize(
    "trial",
    [
        Trial("default", "training", 0.1, {"metadata": {}}),
        Trial("default", "training", 0.1, None, FAILED.format("pods.placement.maip.mxsf.io")),
    ],
    ids=["Ignore", "Fail"],
)
def test_a_client_ca_that_api_servers_do_not_answer_to_is_named(trial: Trial) -> None:
    requiring = with_args(deployment(), "--client-ca=/etc/clients/ca.crt")
    installation = make_installation(trial=trial, objects={**objects(), Source.DEPLOYMENTS: (requiring,)})

    (finding,) = found(installation, "answer")

    assert finding.what.endswith(
        "the servers refuse API servers that present no certificate of the client CA /etc/clients/ca.crt"
    )
    assert "`client certificate refused`, give API servers a certificate of the CA of --client-ca" in finding.remedy
    assert "client CA" not in only(make_installation(trial=trial), "answer")[1]


def test_a_policy_that_is_not_found_is_a_note() -> None:
    trial = Trial("default", "training", 0.1, {"metadata": {}})
    severity, text = only(make_installation(stored=None, given=None, trial=trial), "policy")
    assert severity is INFO
    assert "judge by the built-in policy" in text


def test_a_policy_in_shadow_mode_is_a_note() -> None:
    trial = Trial("default", "training", 0.1, {"metadata": {}}, not_enforced="shadow mode")
    shadow = make_installation(policy=policy_with(mode="shadow"), trial=trial)
    assert only(shadow, "answer")[0] is INFO
    assert only(shadow, "policy") == (INFO, "policy: spec.mode: shadow: no pod is changed or denied")


@pytest.mark.parametrize("percent", [1, 50, 100])
def test_a_pod_on_trial_is_in_the_canary(percent: int) -> None:
    policy = policy_with(canaryPercent=percent)
    pod = named_in_the_canary(policy, sample_pod(policy, "training"), "default")
    assert reason_not_enforced(policy, pod, "default") is None


@pytest.mark.parametrize("spec", [{"mode": "shadow"}, {"canaryPercent": 0}])
def test_no_name_is_in_an_empty_canary(spec: dict[str, Any]) -> None:
    policy = policy_with(**spec)
    pod = named_in_the_canary(policy, sample_pod(policy, "training"), "default")
    assert reason_not_enforced(policy, pod, "default") is not None


def test_a_sample_pod_that_is_not_admitted_has_the_reason() -> None:
    exempt = policy_with(exemptions=[{"namespaces": ["default"], "reason": "tests"}])
    typed = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["a"]}, "allowedNamespaces": ["ml-*"]}})

    judged = [judge(sample_pod(policy, "training"), "default", policy) for policy in (exempt, typed, POLICY)]

    assert [each.pod is None for each in judged] == [True, True, False]
    assert [each.signature is None for each in judged] == [True, True, False]
    assert "tests" in judged[0].reason
    assert "ml-*" in judged[1].reason
    assert judged[2].reason == ""


def test_an_exempt_user_is_known() -> None:
    policy = policy_with(exemptions=[{"users": ["admin"], "reason": "tests"}])
    pod = sample_pod(policy, "training")
    assert reason_not_enforced(policy, pod, "default", User("admin")) == "exempt by spec.exemptions[0]: tests"
    assert reason_not_enforced(policy, pod, "default", User("other")) is None


@pytest.mark.parametrize(("failure_policy", "severity"), [("Ignore", WARNING), ("Fail", ERROR), (None, ERROR)])
def test_one_replica_is_too_few(failure_policy: str | None, severity: Severity) -> None:
    one = deployment(readyReplicas=1)
    one["spec"]["replicas"] = 1
    changed = configuration()
    changed["webhooks"][0]["failurePolicy"] = failure_policy or "Fail"
    if failure_policy is None:
        del changed["webhooks"][0]["failurePolicy"]
    read = {**objects(), Source.DEPLOYMENTS: (one,), Source.CONFIGURATIONS: (changed,)}
    assert only(make_installation(objects=read), "failure-policy")[0] is severity


@pytest.mark.parametrize(("ready", "severity"), [(0, ERROR), (1, WARNING)])
def test_replicas_that_are_not_ready_are_found(ready: int, severity: Severity) -> None:
    assert only(read_of(Source.DEPLOYMENTS, deployment(readyReplicas=ready)), "failure-policy")[0] is severity


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize(
    ("replicas", "ready", "place", "what"),
    [
        (0, None, "spec.replicas", "0: while the server is away, {}"),
        (1, 1, "spec.replicas", "1: while the server is away, {}"),
        (2, None, "status.readyReplicas", "no replica is ready: {}"),
        (2, 0, "status.readyReplicas", "no replica is ready: {}"),
        (2, 1, "status.readyReplicas", "1 of 2 replicas are ready"),
        (2, 2, "", ""),
        (3, 2, "status.readyReplicas", "2 of 3 replicas are ready"),
        (3, 4, "", ""),
        (None, None, "status.readyReplicas", "no replica is ready: {}"),
        (None, 1, "", ""),
    ],
)
def test_servers_must_be_two_and_ready(
    replicas: int | None, ready: int | None, place: str, what: str, fails: bool
) -> None:
    changed, servers = configuration(), deployment(readyReplicas=ready)
    changed["webhooks"][0]["failurePolicy"] = "Fail" if fails else "Ignore"
    servers["spec"]["replicas"] = replicas
    read = {**objects(), Source.DEPLOYMENTS: (servers,), Source.CONFIGURATIONS: (changed,)}

    findings = found(make_installation(objects=read), "failure-policy")

    effect = "pods of all namespaces are refused" if fails else "pods are created without injection"
    of_replicas = [(each.where.rpartition(": ")[2], each.what) for each in findings if "Replicas" in each.where]
    of_replicas += [(each.where.rpartition(": ")[2], each.what) for each in findings if "spec.replicas" in each.where]
    assert of_replicas == ([(place, what.format(effect))] if place else [])
    if place:
        is_error = "no replica" in what or (place == "spec.replicas" and fails)
        assert findings[0].severity is (ERROR if is_error else WARNING)


LASTING, PAST = ("ReplicaFailure", "True", "exceeded quota"), ("ReplicaFailure", "False", "of yesterday")


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ([LASTING], "; exceeded quota"),
        ([PAST], ""),
        ([PAST, LASTING], "; exceeded quota"),
        ([("Available", "True", "has replicas"), ("Progressing", "True", "is progressing")], ""),
        ([], ""),
    ],
)
@pytest.mark.parametrize(
    ("ready", "begin"),
    [(0, "no replica is ready: pods are created without injection"), (1, "1 of 2 replicas are ready")],
)
def test_the_reason_of_missing_replicas_is_a_failure_that_lasts(
    conditions: list[tuple[str, str, str]], reason: str, ready: int, begin: str
) -> None:
    made = [{"type": kind, "status": status, "message": message} for kind, status, message in conditions]

    (finding,) = found(read_of(Source.DEPLOYMENTS, deployment(readyReplicas=ready, conditions=made)), "failure-policy")

    assert finding.what == f"{begin}{reason}"


def test_servers_without_a_budget_are_found() -> None:
    changed = configuration()
    changed["webhooks"][0]["failurePolicy"] = "Fail"
    read = {**objects(), Source.BUDGETS: (), Source.CONFIGURATIONS: (changed,)}
    assert "no PodDisruptionBudget selects its pods" in only(make_installation(objects=read), "failure-policy")[1]
    assert only(read_of(Source.BUDGETS), "failure-policy")[1].endswith("and pods are created without injection")


def test_missed_pods_are_named_and_counted() -> None:
    owner, policy = Owner("Deployment", "web"), built_in_policy()
    missed = tuple(MissedPod("team-a", f"web-{n}", owner, "", policy, "training") for n in range(10))
    (finding,) = found(make_installation(missed=missed, missed_count=4000), "missed-pods")
    assert finding.where.endswith("team-a/web-9 and 3990 more")
    assert finding.remedy.startswith("`kubectl rollout restart deployment/web -n team-a`; ")


@pytest.mark.parametrize(("failure_policy", "severity"), [("Ignore", WARNING), ("Fail", ERROR)])
def test_a_selector_that_catches_its_own_namespace_is_found(failure_policy: str, severity: Severity) -> None:
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    selector = {"matchExpressions": [expression]}
    finding = only(with_webhooks(namespaceSelector=selector, failurePolicy=failure_policy), "selectors")
    assert finding[0] is severity
    assert f"selects {NAMESPACE}: " in finding[1]


def test_a_selector_that_catches_kube_system_is_found() -> None:
    what = "pods of network and storage and the webhook itself wait for the timeout"
    assert only(with_webhooks(namespaceSelector={}), "selectors")[1].endswith(
        f"selects kube-system and {NAMESPACE}: while no server answers, {what}"
    )


@pytest.mark.parametrize(("failure_policy", "count"), [("Ignore", 0), ("Fail", 1)])
def test_a_network_operator_that_is_refused_without_the_webhook_is_named(failure_policy: str, count: int) -> None:
    changed = configuration()
    changed["webhooks"][0]["failurePolicy"] = failure_policy
    read = {**objects(), Source.CONFIGURATIONS: (changed,)}
    findings = found(make_installation(objects=read, networks={"tigera-operator": "tigera-operator-5d"}), "selectors")
    what = "selects tigera-operator: while no server answers, pods of the pod network (tigera-operator-5d) are refused"
    assert [each.what for each in findings] == [what] * count
    assert all('"tigera-operator"' in each.remedy for each in findings)


def test_a_webhook_for_workload_objects_that_catches_them_is_found() -> None:
    """The Deployment of the webhook could not be corrected."""
    changed = configuration()
    for webhook in changed["webhooks"][1:]:
        webhook |= {"namespaceSelector": {}, "failurePolicy": "Fail"}
    severity, text = only(read_of(Source.CONFIGURATIONS, changed), "selectors")
    assert severity is ERROR
    assert text.startswith(f"{PLACE}: webhooks[1].namespaceSelector: selects kube-system and {NAMESPACE}: ")
    assert "workload objects" in text


@pytest.mark.parametrize(
    ("fields", "is_sent"),
    [
        ({}, True),
        ({"objectSelector": {"matchLabels": {"placed": "yes"}}}, False),
        (
            {"matchConditions": [{"name": "a", "expression": "object.spec.containers.size() == 2"}]},
            False,
        ),
        ({"matchConditions": [{"name": "a", "expression": "object.spec.containers.size() == 1"}]}, True),
        ({"matchConditions": [{"name": "a", "expression": "object.spec.schedulerName == 'volcano'"}]}, False),
        ({"matchConditions": [{"name": "a", "expression": "no CEL"}]}, True),
    ],
)
def test_a_plain_pod_is_sent_as_far_as_selector_and_conditions_say(fields: dict[str, Any], is_sent: bool) -> None:
    """Then pods of its own namespace wait for a webhook that has no server."""
    assert may_send_pod(fields, "team-a") is is_sent
    selected = with_webhooks(**{"namespaceSelector": {}, "matchConditions": [], **fields})
    assert any("selects kube-system" in each.what for each in found(selected, "selectors")) is is_sent


def test_the_sample_pod_meets_the_restricted_pod_security_standard() -> None:
    """Source: k8s.io/pod-security-admission/policy"""
    pod = sample_pod(POLICY, "training")["spec"]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_a_selector_that_selects_no_namespace_is_found() -> None:
    assert only(with_webhooks(namespaceSelector={"matchLabels": {"placed": "yes"}}), "selectors") == (
        WARNING,
        f"{PLACE}: webhooks[0].namespaceSelector: selects no namespace of the cluster, so no pod is sent",
    )


def test_a_pod_on_trial_has_the_labels_that_are_selected() -> None:
    expressions = [
        {"key": "b", "operator": "In", "values": ["x", "y"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": expressions}
    assert labels_selected_by({"objectSelector": selector}) == {"a": "1", "b": "x", "c": "true"}
    assert labels_selected_by({}) == {}


def test_a_condition_on_the_namespace_does_what_a_selector_does() -> None:
    condition = {"name": "not-there", "expression": "!(request.namespace in ['kube-system', 'placement-webhook'])"}
    conditions = [*configuration()["webhooks"][0]["matchConditions"], condition]
    assert found(with_webhooks(namespaceSelector={}, matchConditions=conditions), "selectors") == []


@pytest.mark.parametrize(
    ("name", "fields", "is_found"),
    [
        ("0-kueue-mutating-webhook-configuration", {}, True),
        ("0-mutating-kai-admission", AGAIN | {"matchConditions": [{"expression": "x"}]}, True),
        ("0-mutating-kai-admission", AGAIN, False),
        ("kueue-mutating-webhook-configuration", {}, False),
        ("0-cert-manager-webhook", {}, False),
        ("0-kueue-of-jobs", {"rules": []}, False),
    ],
)
def test_a_peer_that_is_called_first_is_found(name: str, fields: dict[str, Any], is_found: bool) -> None:
    installation = read_of(Source.CONFIGURATIONS, configuration(), peer(name, **fields))
    assert [each.severity for each in found(installation, "order")] == [WARNING] * is_found


def test_never_reinvoked_is_found() -> None:
    changed = configuration()
    changed["webhooks"][0]["reinvocationPolicy"] = "Never"
    installation = read_of(Source.CONFIGURATIONS, changed, peer("istio-sidecar-injector"))
    assert only(installation, "reinvocation")[1].endswith("is not seen: istio-sidecar-injector")


@pytest.mark.parametrize(
    ("conditions", "what"),
    [
        ([], "missing not-bound-to-a-node, not-of-a-daemonset, not-a-mirror-pod"),
        ([*configuration()["webhooks"][0]["matchConditions"], {"name": "mine", "expression": "true"}], "added mine"),
    ],
)
def test_other_conditions_than_those_of_the_policy_are_found(conditions: list[Any], what: str) -> None:
    assert what in only(with_webhooks(matchConditions=conditions), "match-conditions")[1]


def test_a_kind_of_the_policy_that_is_not_sent_is_found() -> None:
    kinds = [{"group": "example.com", "kind": "Farm", "resource": "farms", "templates": [{"path": "spec.template"}]}]
    findings = texts(found(under(policy_with(workloadKinds=kinds)), "match-conditions"))
    assert any("lack what the policy covers: CREATE/example.com/farms" in each for each in findings)


def test_a_long_timeout_is_found() -> None:
    assert only(with_webhooks(timeoutSeconds=30), "timeouts")[1].startswith(f"{PLACE}: webhooks[0].timeoutSeconds: 30")


def test_several_webhooks_with_one_remedy_are_one_finding() -> None:
    changed = configuration()
    for webhook in changed["webhooks"]:
        webhook["timeoutSeconds"] = 30
    (finding,) = found(read_of(Source.CONFIGURATIONS, changed), "timeouts")
    assert finding.where == f"{PLACE}: " + ", ".join(f"webhooks[{index}].timeoutSeconds" for index in range(4))
    assert finding.remedy.count('"value":5') == 4


def test_timeouts_that_add_up_are_found() -> None:
    """The default is 10 s; webhooks that select other namespaces do not count together."""
    peers = [peer(f"peer-{n}") for n in range(6)]
    findings = found(read_of(Source.CONFIGURATIONS, configuration(), *peers), "timeouts")
    assert "add up to 65 s" in findings[0].what
    apart = [
        peer(f"peer-{n}", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": f"team-{n}"}})
        for n in range(6)
    ]
    assert found(read_of(Source.CONFIGURATIONS, configuration(), *apart), "timeouts") == []


def test_a_policy_that_is_not_valid_is_found() -> None:
    stored = StoredPolicy("placement-policy", None, ("policy.yaml: spec.a: Forbidden: unknown field",))
    severity, text = only(make_installation(stored=stored), "policy")
    assert severity is ERROR
    assert text.startswith("ConfigMap placement-webhook/placement-policy: holds no valid policy")


def test_a_policy_that_no_replica_has_yet_is_found() -> None:
    stored = StoredPolicy("placement-policy", PolicySet(policy_with(productAffinity=False)))
    assert "but a replica that answered has default@" in only(make_installation(stored=stored), "policy")[1]
    assert (
        found(make_installation(stored=StoredPolicy("placement-policy", PolicySet(POLICY)), given=POLICY), "policy")
        == []
    )


def test_rights_that_are_missing_are_found() -> None:
    rights = tuple(
        each._replace(is_held=each.resource not in ("nodes", "resourcequotas")) for each in make_installation().rights
    )
    findings = found(make_installation(rights=rights), "rights")
    assert [(each.severity, each.what.partition(":")[0]) for each in findings] == [
        *((ERROR, f"may not {verb} nodes") for verb in ("list", "watch")),
        *((WARNING, f"may not {verb} resourcequotas") for verb in ("list", "watch")),
    ]


@pytest.mark.parametrize(
    ("version", "severity"), [("v1.29.3", ERROR), ("v1.30.1", INFO), ("v1.38.0", INFO), ("v1.35.5+k3s1", None)]
)
def test_a_release_that_is_not_supported_or_modelled_is_found(version: str, severity: Severity | None) -> None:
    findings = found(make_installation(release=Release.of(version, "version")), "release")
    assert [each.severity for each in findings] == ([severity] if severity else [])


@pytest.mark.parametrize("skew_seconds", [-60, 60])
def test_a_clock_of_the_api_server_that_differs_is_found(skew_seconds: int) -> None:
    clock = ServerClock(NOW + timedelta(seconds=skew_seconds), NOW - timedelta(seconds=1), NOW)
    severity, text = only(make_installation(clock=clock), "clock")
    assert severity is WARNING
    assert text.startswith("the clock of the API server: differs by ")


@pytest.mark.parametrize(("seconds", "is_found"), [(5.9, False), (6.1, True)])
def test_the_api_server_states_whole_seconds(seconds: float, is_found: bool) -> None:
    clock = ServerClock(NOW - timedelta(seconds=seconds), NOW, NOW)
    assert bool(found(make_installation(clock=clock), "clock")) == is_found


def test_a_slow_answer_is_no_skew() -> None:
    clock = ServerClock(NOW, NOW - timedelta(seconds=40), NOW + timedelta(seconds=40))
    assert found(make_installation(clock=clock), "clock") == []


def test_clocks_of_nodes_are_compared_by_what_the_api_server_wrote() -> None:
    leases = [
        lease("ahead", NOW + timedelta(minutes=5), NOW),
        lease("behind", NOW - timedelta(minutes=2), NOW),
        lease("long-gone", NOW - timedelta(days=9), NOW - timedelta(days=9)),
    ]
    # The entry of an earlier version of the API stays, before or after the other.
    (earlier,) = lease("", NOW, NOW - timedelta(days=20))["metadata"]["managedFields"]
    leases[2]["metadata"]["managedFields"].append(earlier)
    leases.append(lease("long-gone-too", NOW - timedelta(days=9), NOW - timedelta(days=9)))
    leases[3]["metadata"]["managedFields"].insert(0, earlier)
    ahead, behind = texts(found(read_of(Source.LEASES, *leases), "clock"))
    assert ahead.startswith("Leases kube-node-lease/ahead: spec.renewTime: ")
    assert ahead.endswith("up to 300 s ahead of that of the API server")
    assert behind.startswith("Leases kube-node-lease/behind: spec.renewTime: ")
    assert behind.endswith("up to 120 s behind that of the API server")


def test_a_certificate_from_the_future_is_found() -> None:
    installation = make_installation(probes=probes(called(pem=FROM_TOMORROW.certificate)))
    assert only(installation, "clock")[0] is ERROR


def test_a_server_that_is_not_reached_shows_no_time() -> None:
    assert found(make_installation(probes=probes(called(pem=None, detail="refused"))), "clock") == []


def test_a_certificate_from_the_past_is_not_from_the_future() -> None:
    assert found(make_installation(probes=probes(called(pem=AGED.certificate))), "clock") == []

"""Facts about the manifests that need no API server to be seen."""

from pathlib import Path

import click
import pytest

from certs.names import service_names
from certs.registration import MANIFEST, Target, manifest
from certs.webhook_rules import namespace_match_conditions, workload_match_conditions, workload_rules
from tests.support.objects.manifests import DEPLOY, ROOT, Object, container_of, pod_template, read, read_one
from webhook.cli.commands.certs import certs
from webhook.cli.commands.serve import serve
from webhook.cli.root import root
from webhook.cluster.cache.resources import RESOURCES
from webhook.kube import names as wellknown
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_documents import load_policies
from webhook.runtime.settings import Settings

DEPLOYMENT = read_one("base/deployment.yaml")
CERTS = read_one("overlays/self-managed/certs-controller.yaml")
CONFIGURATION = read_one("base/mutatingwebhookconfiguration.yaml")
SERVICE = read_one("base/service.yaml")
WEBHOOK, *OTHERS = CONFIGURATION["webhooks"]
WORKLOADS_WEBHOOK, NAMESPACES_WEBHOOK, _ = OTHERS
SERVER_LABELS = {"app.kubernetes.io/name": "placement-webhook", "app.kubernetes.io/component": "server"}
WORKLOADS = pytest.mark.parametrize("workload", [DEPLOYMENT, CERTS], ids=lambda workload: workload["metadata"]["name"])

PEERS = [
    "cert-manager-webhook",
    "gatekeeper-mutating-webhook-configuration",
    "hami-webhook",
    "istio-sidecar-injector",
    "koordinator-mutating-webhook-configuration",
    "kueue-mutating-webhook-configuration",
    "kyverno-resource-mutating-webhook-cfg",
    "mutating-kai-admission",
    "volcano-admission-service-pods-mutate",
]


def flags_of(container: Object) -> dict[str, str]:
    given = (argument.removeprefix("--").partition("=") for argument in container["args"])
    return {flag: value for flag, _, value in given}


@pytest.mark.parametrize("peer", PEERS)
def test_configuration_is_called_before_those_of_peers(peer: str) -> None:
    assert CONFIGURATION["metadata"]["name"] < peer


def test_configuration_is_the_one_that_certs_register_creates() -> None:
    assert (DEPLOY / "base" / MANIFEST).read_bytes() == (ROOT / "certs" / MANIFEST).read_bytes()
    assert manifest(Target()) == CONFIGURATION


def test_rules_and_conditions_are_those_that_the_kinds_need() -> None:
    assert WORKLOADS_WEBHOOK["rules"] == workload_rules(BUILT_IN_KINDS)
    key_domain = built_in_policy().spec.key_domain
    assert WORKLOADS_WEBHOOK["matchConditions"] == workload_match_conditions(BUILT_IN_KINDS, key_domain)
    assert NAMESPACES_WEBHOOK["matchConditions"] == namespace_match_conditions(key_domain)


@pytest.mark.parametrize("webhook", CONFIGURATION["webhooks"], ids=lambda webhook: webhook["name"])
def test_a_failing_webhook_holds_up_nobody(webhook: Object) -> None:
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] <= 5


@pytest.mark.parametrize("webhook", OTHERS, ids=lambda webhook: webhook["name"])
def test_webhooks_for_other_objects_have_the_endpoint_and_the_namespaces_of_that_for_pods(webhook: Object) -> None:
    assert webhook["clientConfig"] == WEBHOOK["clientConfig"]
    assert webhook["namespaceSelector"] == WEBHOOK["namespaceSelector"]
    assert (webhook["reinvocationPolicy"], webhook["sideEffects"]) == ("Never", "None")
    assert all(rule["operations"] == ["CREATE", "UPDATE"] for rule in webhook["rules"])
    assert not [each for rule in webhook["rules"] for each in rule["resources"] if "/" in each]


def test_webhook_is_asked_about_created_pods_alone() -> None:
    assert WEBHOOK["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
            "scope": "Namespaced",
        }
    ]


def test_webhook_is_asked_again_and_on_dry_runs() -> None:
    assert (WEBHOOK["reinvocationPolicy"], WEBHOOK["sideEffects"]) == ("IfNeeded", "None")
    assert WEBHOOK["admissionReviewVersions"] == ["v1"]


def test_names_in_the_manifests_are_the_defaults_of_certs_register() -> None:
    names = Target()
    tls = next(volume for volume in pod_template(DEPLOYMENT)["spec"]["volumes"] if volume["name"] == "tls")
    assert WEBHOOK["clientConfig"]["service"]["name"] == SERVICE["metadata"]["name"] == names.service
    assert WEBHOOK["clientConfig"]["service"]["namespace"] == read_one("base/namespace.yaml")["metadata"]["name"]
    assert tls["secret"]["secretName"] == names.secret
    assert CONFIGURATION["metadata"]["name"] == names.configuration


def test_whether_a_pod_may_opt_out_is_left_to_the_policy() -> None:
    assert not [each for each in WEBHOOK["matchConditions"] if built_in_policy().keys.inject in each["expression"]]


def test_shipped_policy_is_the_built_in_one() -> None:
    (found,) = load_policies([DEPLOY / "base" / "policy.yaml"])
    shipped, built_in = found.policy, built_in_policy()
    assert (shipped.name, shipped.spec) == (built_in.name, built_in.spec)


@WORKLOADS
def test_pods_fulfil_the_restricted_standard_and_more(workload: Object) -> None:
    pod, container = pod_template(workload)["spec"], container_of(workload)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@WORKLOADS
def test_pods_say_what_they_need(workload: Object) -> None:
    resources = container_of(workload)["resources"]
    assert set(resources["requests"]) == {"cpu", "memory"}
    assert set(resources["limits"]) == {"memory"}


@WORKLOADS
def test_pods_can_run_where_only_the_management_plane_may(workload: Object) -> None:
    tolerated = {each["key"] for each in pod_template(workload)["spec"]["tolerations"]}
    assert f"{built_in_policy().spec.key_domain}/control-plane" in tolerated


def test_server_reads_what_it_watches_and_writes_events_alone() -> None:
    account = read_one("base/serviceaccount.yaml")
    assert account["automountServiceAccountToken"] is False
    assert pod_template(DEPLOYMENT)["spec"]["automountServiceAccountToken"] is True
    assert pod_template(DEPLOYMENT)["spec"]["serviceAccountName"] == account["metadata"]["name"]
    objects = [content for path in (DEPLOY / "base").glob("*.yaml") for content in read(f"base/{path.name}")]
    rights = {content["kind"]: content for content in objects if content["kind"].endswith(("Role", "RoleBinding"))}
    assert set(rights) == {"ClusterRole", "ClusterRoleBinding"}
    *rules, configurations, leases, configuration, events, owners = rights["ClusterRole"]["rules"]
    assert configurations == {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["kueue-manager-config", "volcano-scheduler-configmap"],
        "verbs": ["get"],
    }
    assert leases == {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]}
    assert configuration == {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations"],
        "resourceNames": [read_one("base/mutatingwebhookconfiguration.yaml")["metadata"]["name"]],
        "verbs": ["get"],
    }
    assert events == {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}
    assert owners == {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get"]}
    assert all(rule.keys() == {"apiGroups", "resources", "verbs"} for rule in rules)
    assert all(rule["verbs"] == ["list", "watch"] for rule in rules)
    granted = [(group, plural) for rule in rules for group in rule["apiGroups"] for plural in rule["resources"]]
    assert sorted(granted) == sorted({(each.api_version.rpartition("/")[0], each.plural) for each in RESOURCES})
    (subject,) = rights["ClusterRoleBinding"]["subjects"]
    assert subject["name"] == account["metadata"]["name"]


def test_server_may_call_the_api_server_and_nobody_else() -> None:
    (rule,) = read_one("base/networkpolicy.yaml")["spec"]["egress"]
    assert rule == {"ports": [{"port": 443}, {"port": 6443}]}


@pytest.mark.parametrize("rule", [r for o in read("overlays/self-managed/certs-rbac.yaml") for r in o.get("rules", [])])
def test_certs_controller_may_write_its_two_objects_and_nothing_else(rule: Object) -> None:
    names = Target()
    assert rule["resourceNames"] in ([names.secret], [names.configuration])
    assert set(rule["verbs"]) == {"get", "watch", "create", "patch"}


def test_certs_controller_calls_the_api_server_the_names_and_the_webhook() -> None:
    api_server, names, webhook = read_one("overlays/self-managed/certs-networkpolicy.yaml")["spec"]["egress"]
    assert api_server == {"ports": [{"port": 443}, {"port": 6443}]}
    assert names == {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": Target().namespace}}
    assert webhook["to"] == [{"namespaceSelector": namespace, "podSelector": {"matchLabels": SERVER_LABELS}}]


def test_certs_controller_shares_its_namespace_with_nobody() -> None:
    """Its service account can change what the webhook is called for."""
    (account,) = (each for each in read("overlays/self-managed/certs-rbac.yaml") if each["kind"] == "ServiceAccount")
    namespace, *_ = read("overlays/self-managed/certs-namespace.yaml")
    places = {each["metadata"]["namespace"] for each in (account, CERTS)}
    assert places == {namespace["metadata"]["name"]} == {Target().controller_namespace} != {Target().namespace}


def test_certs_controller_is_probed_at_its_admin_port() -> None:
    container = container_of(CERTS)
    (port,) = container["ports"]
    assert flags_of(container)["admin-listen"] == f"0.0.0.0:{port['containerPort']}"
    assert {container[each]["httpGet"]["port"] for each in ("readinessProbe", "livenessProbe")} == {port["name"]}


def test_webhook_mounts_its_pair_and_no_other_key() -> None:
    """The Secret has the key of the CA, too."""
    tls = next(volume for volume in pod_template(DEPLOYMENT)["spec"]["volumes"] if volume["name"] == "tls")
    assert {item["key"]: item["path"] for item in tls["secret"]["items"]} == {
        "tls.crt": "tls.crt",
        "tls.key": "tls.key",
    }


@pytest.mark.parametrize(
    ("command", "words", "arguments"),
    [
        pytest.param(serve, ["serve"], container_of(DEPLOYMENT)["args"], id="webhook"),
        pytest.param(certs.commands["controller"], ["certs", "controller"], container_of(CERTS)["args"], id="certs"),
    ],
)
def test_arguments_are_understood(command: click.Command, words: list[str], arguments: list[str]) -> None:
    assert arguments[: len(words)] == words
    # As under the program itself: a command remembers its help option from the first context that asks.
    program = click.Context(root, **root.context_settings)
    with command.make_context(words[-1], arguments[len(words) :], parent=program) as context:
        assert all(source is not None for source in map(context.get_parameter_source, context.params))


def test_ports_and_folders_fit_together() -> None:
    container = container_of(DEPLOYMENT)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    flags = flags_of(container)
    assert flags["listen"] == f"0.0.0.0:{ports['https']}"
    assert flags["admin-listen"] == f"0.0.0.0:{ports['admin']}"
    assert flags["tls-dir"] in mounts
    assert str(Path(flags["policy"]).parent) in mounts
    assert {container[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")} == {
        "admin"
    }


def test_certificate_is_checked_for_the_name_that_api_servers_call() -> None:
    container, service = container_of(DEPLOYMENT), WEBHOOK["clientConfig"]["service"]
    namespace = next(each for each in container["env"] if each["name"] == "POD_NAMESPACE")
    assert namespace["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    name = flags_of(container)["server-name"].replace("$(POD_NAMESPACE)", service["namespace"])
    assert name == service_names(service["name"], service["namespace"])[0]


def test_audit_records_outlive_the_pod_where_standard_output_is_collected() -> None:
    assert flags_of(container_of(DEPLOYMENT))["audit"] == "-"


def test_a_replica_answers_until_nobody_calls_it() -> None:
    pod, container = pod_template(DEPLOYMENT)["spec"], container_of(DEPLOYMENT)
    delay_seconds = float(flags_of(container)["shutdown-delay-seconds"])
    assert delay_seconds >= 10
    assert delay_seconds + Settings(Path()).grace_seconds + 3 < pod["terminationGracePeriodSeconds"]
    assert "lifecycle" not in container  # during a preStop hook the server does not know that it stops
    assert DEPLOYMENT["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_replicas_are_on_different_nodes() -> None:
    hosts, _ = pod_template(DEPLOYMENT)["spec"]["topologySpreadConstraints"]
    assert DEPLOYMENT["spec"]["replicas"] == 2
    assert (hosts["topologyKey"], hosts["whenUnsatisfiable"]) == (wellknown.HOSTNAME_LABEL, "DoNotSchedule")


@pytest.mark.parametrize(
    "selector",
    [
        SERVICE["spec"]["selector"],
        DEPLOYMENT["spec"]["selector"]["matchLabels"],
        read_one("base/poddisruptionbudget.yaml")["spec"]["selector"]["matchLabels"],
        read_one("base/networkpolicy.yaml")["spec"]["podSelector"]["matchLabels"],
        *(
            each["labelSelector"]["matchLabels"]
            for each in pod_template(DEPLOYMENT)["spec"]["topologySpreadConstraints"]
        ),
    ],
)
def test_everything_selects_the_servers_and_not_the_controller(selector: dict[str, str]) -> None:
    assert selector == SERVER_LABELS
    assert selector.items() <= pod_template(DEPLOYMENT)["metadata"]["labels"].items()
    assert not selector.items() <= pod_template(CERTS)["metadata"]["labels"].items()


def test_certificate_of_cert_manager_has_the_name_the_api_server_asks_for() -> None:
    certificates = [each for each in read("overlays/cert-manager/certificates.yaml") if each["kind"] == "Certificate"]
    (server,) = [each for each in certificates if each["metadata"]["name"] == Target().secret]
    assert service_names(Target().service, Target().namespace)[0] in server["spec"]["dnsNames"]
    assert server["spec"]["secretName"] == Target().secret


def test_scheduler_profile_is_one_that_the_policy_allows() -> None:
    profiles = read_one("scheduler/kube-scheduler-configuration.yaml")["profiles"]
    names = [profile["schedulerName"] for profile in profiles]
    assert names == ["default-scheduler", "binpack-scheduler"]
    assert set(names) <= set(built_in_policy().spec.allowed_schedulers)

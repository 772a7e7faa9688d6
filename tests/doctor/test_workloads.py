"""The flags of a workload, the policy file that it mounts, what its ConfigMap holds, and what of it is kept."""

import pytest

from certs.registration import Target
from placement_doctor.kept import kept
from placement_doctor.rights import needed_rights
from placement_doctor.source import Source
from placement_doctor.workloads import controller_of, has_flag
from tests.doctor.healthy import controller, deployment, make_installation, objects
from tests.support.objects.manifests import DEPLOY, container_of, read
from webhook.cli.inputs.installed_policy import StoredPolicy
from webhook.cli.inputs.installed_servers import admin_port, follows_objects, option, policy_place


def test_the_policy_of_deploy_is_found() -> None:
    assert policy_place(kept(Source.DEPLOYMENTS, deployment())) == ("placement-policy", "policy.yaml")


@pytest.mark.parametrize("arguments", [[], ["--policy"], ["--policy=/elsewhere/policy.yaml"]])
def test_a_policy_of_no_config_map_is_not_found(arguments: list[str]) -> None:
    changed = deployment()
    changed["spec"]["template"]["spec"]["containers"][0]["args"] = arguments
    assert policy_place(changed) is None


def test_a_flag_and_its_value_can_be_two_arguments() -> None:
    changed = deployment()
    changed["spec"]["template"]["spec"]["containers"][0]["args"] = [
        "--policy",
        "/etc/placement-webhook/policy/other.yaml",
    ]
    assert policy_place(changed) == ("placement-policy", "other.yaml")


def test_the_policy_of_deploy_is_read() -> None:
    text = (DEPLOY / "base" / "policy.yaml").read_text()
    stored = StoredPolicy.of({"data": {"policy.yaml": text}}, "placement-policy", "policy.yaml")
    assert stored.policies is not None
    assert stored.errors == ()


@pytest.mark.parametrize(
    ("data", "error"),
    [({}, "it has no key policy.yaml"), ({"policy.yaml": "kind: PlacementPolicy"}, "apiVersion: Required value")],
)
def test_a_config_map_without_a_policy_has_errors(data: dict[str, str], error: str) -> None:
    stored = StoredPolicy.of({"data": data}, "placement-policy", "policy.yaml")
    assert stored.policies is None
    assert error in stored.errors[0]


def test_the_rights_are_those_of_deploy() -> None:
    (role,) = (each for each in read("base/rbac.yaml") if each["kind"] == "ClusterRole")
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    groups = {group for group, _, _ in granted}
    assert {(each.group, each.resource, each.verb) for each in needed_rights(groups)} == granted


def test_rights_on_kinds_that_are_not_served_are_not_needed() -> None:
    assert "kueue.x-k8s.io" not in {each.group for each in needed_rights(())}


@pytest.mark.parametrize(
    ("args", "follows"),
    [
        (["--policy-source=crd"], True),
        (["--policy-source", "crd"], True),
        (["--policy-source=file"], False),
        ([], False),
        (["--policy-source=file", "--policy-source", "crd"], True),
        (["--policy-source", "crd", "--policy-source=file"], False),
    ],
)
def test_objects_count_only_where_a_server_follows_them(args: list[str], follows: bool) -> None:
    changed = deployment()
    changed["spec"]["template"]["spec"]["containers"][0]["args"] += args

    assert follows_objects(kept(Source.DEPLOYMENTS, changed)) is follows


@pytest.mark.parametrize(
    ("args", "port"),
    [
        (["--admin-listen=0.0.0.0:8080"], "8080"),
        (["--admin-listen=:8080"], None),
        (["--admin-listen=127.0.0.1:8080"], None),
        (["--admin-listen=[::1]:8080"], None),
        (["--admin-listen=0.0.0.0:$(PORT)"], None),
        (["--admin-listen=0.0.0.0:8080", "--admin-token-file=/token"], None),
        ([], None),
    ],
)
def test_admin_port_is_read_where_others_reach_it_without_a_token(args: list[str], port: str | None) -> None:
    changed = deployment()
    container_of(changed).update(args=["serve", *args])
    assert admin_port(kept(Source.DEPLOYMENTS, changed)) == port


def test_several_documents_of_a_config_map_are_read_as_the_server_does() -> None:
    default = (DEPLOY / "base" / "policy.yaml").read_text()
    team = f"{default.partition('metadata:')[0]}metadata: {{name: a}}\nspec: {{namespaceSelector: {{}}}}\n"
    stored = StoredPolicy.of({"data": {"policy.yaml": f"{default}---\n{team}"}}, "placement-policy", "policy.yaml")
    assert stored.policies is not None
    assert [each.name for each in stored.policies] == ["default", "a"]

    (error,) = StoredPolicy.of({"data": {"p.yaml": f"{team}---\n{team}".replace("a}", "b}", 1)}}, "c", "p.yaml").errors
    assert "one of the policies must have no spec.namespaceSelector" in error


@pytest.mark.parametrize(
    ("variable", "value", "flag", "is_set"),
    [
        ("PLACEMENT_WEBHOOK_IN_CLUSTER", "1", "--in-cluster", True),
        ("PLACEMENT_WEBHOOK_IN_CLUSTER", "false", "--in-cluster", False),
        ("PLACEMENT_WEBHOOK_NO_EVENTS", "yes", "--no-events", True),
        ("PLACEMENT_WEBHOOK_NO_EVENTS", "no", "--no-events", False),
        ("IN_CLUSTER", "1", "--in-cluster", False),
    ],
)
def test_a_flag_can_be_a_variable(variable: str, value: str, flag: str, is_set: bool) -> None:
    changed = deployment()
    container_of(changed).update(args=["serve"], env=[{"name": variable, "value": value}])
    assert has_flag(kept(Source.DEPLOYMENTS, changed), flag) is is_set


def test_an_argument_comes_before_its_variable() -> None:
    changed = deployment()
    variables = [{"name": "PLACEMENT_WEBHOOK_POLICY_SOURCE", "value": "crd"}]
    container_of(changed).update(args=["serve"], env=variables)
    assert follows_objects(kept(Source.DEPLOYMENTS, changed)) is True
    container_of(changed)["args"] += ["--policy-source=file"]
    assert follows_objects(kept(Source.DEPLOYMENTS, changed)) is False


def test_the_last_of_several_values_of_a_flag_counts() -> None:
    """As the server does; the chart appends `extraArgs`, so that they win."""
    changed = deployment()
    container_of(changed)["args"] += ["--webhook-configuration", "a", "--webhook-configuration=b"]
    assert option(kept(Source.DEPLOYMENTS, changed), "--webhook-configuration") == "b"
    container_of(changed)["args"] += ["--webhook-configuration", "a"]
    found = kept(Source.DEPLOYMENTS, changed)
    assert option(found, "--webhook-configuration") == "a"
    assert policy_place(found) == ("placement-policy", "policy.yaml")
    container_of(changed)["args"] += ["--policy", "/elsewhere/policy.yaml"]
    assert policy_place(kept(Source.DEPLOYMENTS, changed)) is None


def test_the_policy_file_can_be_a_variable() -> None:
    changed = deployment()
    variable = {"name": "PLACEMENT_WEBHOOK_POLICY", "value": "/etc/placement-webhook/policy/policy.yaml"}
    container_of(changed).update(args=["serve"], env=[variable])
    assert policy_place(kept(Source.DEPLOYMENTS, changed)) == ("placement-policy", "policy.yaml")


def test_variables_of_others_are_not_kept() -> None:
    changed = deployment()
    container_of(changed)["env"] = [{"name": "PASSWORD", "value": "secret"}]
    assert container_of(kept(Source.DEPLOYMENTS, changed))["env"] == []


@pytest.mark.parametrize("flag", [None, "placement-webhook", "gpu", "other"])
@pytest.mark.parametrize("own", ["placement-webhook", "placement-webhook-certs", "gpu", "gpu-certs", "ops"])
@pytest.mark.parametrize("namespace", ["placement-webhook", "gpu"])
def test_the_certs_controller_is_beside_the_webhook_or_names_its_namespace(
    namespace: str, own: str, flag: str | None
) -> None:
    made, others = controller(), controller()
    made["metadata"]["namespace"], others["metadata"]["namespace"] = own, "of-others"
    for each, names in ((made, flag), (others, "of-others")):
        container = container_of(each)
        container["args"] = [one for one in container["args"] if not one.startswith("--namespace")]
        container["args"] += [] if names is None else [f"--namespace={names}"]
    is_ours = own in (namespace, f"{namespace}-certs") or (flag or "placement-webhook") == namespace

    for ordered in ((others, made), (made, others)):
        read = {**objects(), Source.DEPLOYMENTS: (deployment(), *ordered)}
        found = controller_of(make_installation(target=Target(namespace=namespace), objects=read))

        assert found is (made if is_ours else None)


@pytest.mark.parametrize("by_labels", [True, False])
@pytest.mark.parametrize("by_command", [True, False])
def test_the_certs_controller_has_its_labels_or_its_command(by_labels: bool, by_command: bool) -> None:
    made = controller()
    if not by_labels:
        made["spec"]["template"]["metadata"]["labels"].pop("app.kubernetes.io/component")
    if not by_command:
        container_of(made)["args"] = container_of(made)["args"][1:]

    found = controller_of(make_installation(objects={**objects(), Source.DEPLOYMENTS: (deployment(), made)}))

    assert (found is made) is (by_labels or by_command)

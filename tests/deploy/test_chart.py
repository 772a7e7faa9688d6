"""The Helm chart renders the objects of the overlays, and its values do what their descriptions state."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
import yaml

from certs.webhook_rules import POLICIES
from tests.deploy.helm import CHART, Helm, Object, with_required
from tests.deploy.variants import CA_PEM, VARIANTS
from tests.support.objects.manifests import DEPLOY, container_of, pod_template, read_one
from tests.support.programs.command import understand
from webhook.policy.loader import parse_policies
from webhook.policy.policy_documents import policy_set
from webhook.policy.spec.document import API_VERSION, KIND

Objects = dict[tuple[str, str], Object]
Overlay = Callable[[str], Objects]

HELM_LABELS = ("app.kubernetes.io/managed-by", "helm.sh/chart")
SERVER = ("Deployment", "placement-webhook")
CONTROLLER = ("Deployment", "placement-webhook-certs")
CONFIGURATION = ("MutatingWebhookConfiguration", "00-placement-webhook")
POLICY = ("ConfigMap", "placement-policy")


def by_name(text: str) -> Objects:
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.load_all(text, yaml.CSafeLoader) if each}


@pytest.fixture(scope="module")
def overlay(control_plane_programs: dict[str, Path]) -> Overlay:
    """The objects that kustomize makes of a folder of deploy/."""

    @cache
    def text(folder: str) -> str:
        command = [str(control_plane_programs["kubectl"]), "kustomize", str(DEPLOY / folder)]
        environment = os.environ | {"GOGC": "off"}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    return lambda folder: by_name(text(folder))


def without_helm_labels(objects: Objects) -> Objects:
    """The objects without the labels of Helm, which all of them have."""
    for each in objects.values():
        assert all(each["metadata"]["labels"].pop(label) for label in HELM_LABELS), each["metadata"]["name"]
        if not each["metadata"]["labels"]:
            del each["metadata"]["labels"]
    return objects


def of_the_chart(helm: Helm, values: Object | None = None) -> Objects:
    """The chart's objects but for what an overlay cannot have: labels of Helm, and the checksum of the policy."""
    objects = without_helm_labels(by_name(helm.template(values)))
    annotations = pod_template(objects[SERVER])["metadata"].pop("annotations")
    assert re.fullmatch("[0-9a-f]{64}", annotations["checksum/policy"])
    return objects


def as_the_chart_names_them(objects: Objects) -> Objects:
    """The overlay's objects without the Namespace, which Helm creates, and with a policy whose name has no hash."""
    del objects["Namespace", "placement-webhook"]
    (hashed,) = [name for kind, name in objects if name.startswith("placement-policy-")]
    policy = objects.pop(("ConfigMap", hashed))
    policy["metadata"]["name"] = POLICY[1]
    volume = next(each for each in pod_template(objects[SERVER])["spec"]["volumes"] if each["name"] == "policy")
    volume["configMap"]["name"] = POLICY[1]
    return objects | {POLICY: policy}


def as_the_chart_keeps_it(definitions: Objects) -> Objects:
    """The definition with labels of the webhook, and the annotation by which Helm never deletes it."""
    for each in definitions.values():
        each["metadata"]["labels"] = {f"app.kubernetes.io/{key}": "placement-webhook" for key in ("name", "part-of")}
        each["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return definitions


@pytest.mark.parametrize(
    ("values", "folder"),
    [
        pytest.param({}, "overlays/self-managed", id="default values"),
        pytest.param({"policyObjects": True}, "overlays/crd", id="policyObjects"),
        pytest.param({"exportedPolicy": {"enabled": True}}, "overlays/exported", id="exportedPolicy"),
        pytest.param(
            {"networkPolicy": {"apiServerCIDRs": ["10.96.0.1/32", "192.0.2.10/32"]}},
            "overlays/api-server-egress",
            id="apiServerCIDRs",
        ),
        pytest.param(
            {"networkPolicy": {"ingressFrom": [{"ipBlock": {"cidr": "192.0.2.10/32"}}]}},
            "overlays/api-server-ingress",
            id="networkPolicy.ingressFrom",
        ),
        pytest.param(
            {
                "clientCertificates": {
                    "caSecretName": "placement-webhook-clients",
                    "names": ["kube-apiserver-webhook-client"],
                }
            },
            "overlays/mtls",
            id="clientCertificates",
        ),
    ],
)
def test_chart_gives_the_overlay(helm: Helm, overlay: Overlay, values: Object, folder: str) -> None:
    """Except that the release has the webhook configuration: Helm deletes it first, and no controller creates it."""
    expected = as_the_chart_names_them(overlay(folder))
    expected[CONFIGURATION] = read_one("base/mutatingwebhookconfiguration.yaml")
    arguments = container_of(expected[CONTROLLER])["args"]
    given = ["--namespace=placement-webhook", "--secret=placement-webhook-tls"]
    arguments[arguments.index("--create-configuration") : arguments.index("--create-configuration") + 1] = given
    (rule,) = expected["ClusterRole", "placement-webhook-certs"]["rules"]
    rule["verbs"].remove("create")
    del expected["NetworkPolicy", "placement-webhook-certs"]["spec"]["egress"][1:]
    if "policyObjects" in values:
        expected |= as_the_chart_keeps_it(overlay("crd"))

    assert of_the_chart(helm, values) == expected


def test_cert_manager_gives_the_overlay_of_cert_manager(helm: Helm, overlay: Overlay) -> None:
    expected = as_the_chart_names_them(overlay("overlays/cert-manager"))

    assert of_the_chart(helm, {"certificates": {"source": "certManager"}}) == expected


def test_the_console_gives_its_overlay(helm: Helm, overlay: Overlay) -> None:
    given = of_the_chart(helm, {"console": {"enabled": True}})

    assert {key: given[key] for key in given.keys() - of_the_chart(helm).keys()} == overlay("overlays/console")


def test_monitoring_gives_the_manifests_of_monitoring(helm: Helm, overlay: Overlay) -> None:
    enabled = {each: {"enabled": True} for each in ("serviceMonitor", "prometheusRule", "dashboard")}
    expected = overlay("monitoring")

    given = of_the_chart(helm, {"monitoring": enabled})

    assert {key: given[key] for key in given.keys() - of_the_chart(helm).keys()} == expected


def test_version_of_the_chart_is_that_of_the_image() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    (image,) = yaml.safe_load((DEPLOY / "overlays/self-managed/kustomization.yaml").read_text())["images"]

    assert chart["appVersion"] == image["newTag"]


def test_helm_finds_no_fault(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"webhook": {"failurepolicy": "Fail"}}, r"'/webhook': additional properties 'failurepolicy' not allowed"),
        ({"replica": 3}, r"additional properties 'replica' not allowed"),
        ({"replicas": 0}, r"'/replicas': minimum: got 0, want 1"),
        ({"certificates": {"source": "self-managed"}}, r"'/certificates/source': value must be one of 'selfManaged'"),
        ({"image": {"digest": "sha256:12"}}, r"'/image/digest': 'sha256:12' does not match pattern"),
    ],
    ids=lambda given: str(given) if isinstance(given, dict) else "",
)
def test_a_value_that_does_not_exist_or_fit_is_refused_by_its_name(helm: Helm, values: Object, message: str) -> None:
    assert re.search(message, helm.template(values, check=False))


def scheduler_of_training(manifests: str) -> str:
    policy = yaml.safe_load(by_name(manifests)[POLICY]["data"]["policy.yaml"])
    scheduler = policy["spec"]["workloadTypes"]["training"]["schedulerName"]
    assert isinstance(scheduler, str)
    return scheduler


@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler", "kai-scheduler"])
def test_the_chosen_scheduler_is_that_of_training_pods(helm: Helm, scheduler: str) -> None:
    assert scheduler_of_training(helm.template({"scheduler": scheduler})) == scheduler


def test_an_installation_needs_a_choice_of_the_scheduler(helm: Helm) -> None:
    """An upgrade keeps that of a release from before the choice."""
    refused = helm.template({"scheduler": ""}, check=False)

    assert "scheduler: Required value: choose the scheduler of training pods: volcano, kai-scheduler, or" in refused
    assert scheduler_of_training(helm.template({"scheduler": ""}, "--is-upgrade")) == "volcano"


def test_a_policy_of_ones_own_names_its_scheduler_itself(helm: Helm) -> None:
    values = {"scheduler": "volcano", "policy": VARIANTS["audit-volume"]["policy"]}

    assert "scheduler: Invalid value: policy is set, too" in helm.template(values, check=False)


def test_the_image_of_your_registry_is_required(helm: Helm) -> None:
    """No registry has the bare name, so its pods would never start."""
    refused = helm.template({"image": {"repository": ""}}, check=False)
    assert "image.repository: Required value: no public registry has the image" in refused


def test_an_installation_does_not_start_with_fail(helm: Helm) -> None:
    """Until the first replica serves, it would block the pods of the cluster."""
    values = {"webhook": {"failurePolicy": "Fail"}}

    assert 'webhook.failurePolicy: Invalid value: "Fail"' in helm.template(values, check=False)
    deliberate = {"webhook": {"failurePolicy": "Fail", "failFromFirstInstall": True}}
    for text in (helm.template(values, "--is-upgrade"), helm.template(deliberate)):
        given = {each["name"]: each["failurePolicy"] for each in by_name(text)[CONFIGURATION]["webhooks"]}
        # A policy can always be corrected.
        assert given.pop(POLICIES) == "Ignore"
        assert set(given.values()) == {"Fail"}


def test_without_policy_objects_there_is_no_definition(helm: Helm) -> None:
    assert "CustomResourceDefinition" not in {kind for kind, _ in by_name(helm.template())}


@pytest.mark.parametrize(
    ("values", "field"),
    [({"policyObjects": True}, "policyObjects"), ({"exportedPolicy": {"enabled": True}}, "exportedPolicy.enabled")],
)
def test_what_is_written_or_read_in_the_cluster_needs_the_live_view(helm: Helm, values: Object, field: str) -> None:
    refused = helm.template({**values, "liveView": False}, check=False)

    assert f"{field}: Invalid value: true" in refused


def listed(*selectors: Object) -> Object:
    """Values with a default policy and one for each selector, without the live view."""
    head = {"apiVersion": API_VERSION, "kind": KIND}
    others = [{**head, "spec": {"namespaceSelector": each}} for each in selectors]
    return {"policy": {"apiVersion": "v1", "kind": "List", "items": [head, *others]}, "liveView": False}


BY_NAME = {"matchLabels": {"kubernetes.io/metadata.name": "jobs"}}


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"team": "a"}},
        {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    ],
)
def test_policies_that_select_by_labels_need_the_live_view(helm: Helm, selector: Object) -> None:
    refused = helm.template(listed(BY_NAME, selector), check=False)

    assert 'policy.items[2].spec.namespaceSelector: Invalid value: "team"' in refused
    assert "set liveView=true, or select only by kubernetes.io/metadata.name" in refused


@pytest.mark.parametrize("selectors", [[BY_NAME, {}], []])
def test_policies_that_select_by_names_need_no_live_view(helm: Helm, selectors: list[Object]) -> None:
    assert POLICY in by_name(helm.template(listed(*selectors)))


def test_another_namespace_is_used_everywhere(helm: Helm) -> None:
    values = {"policyObjects": True, "exportedPolicy": {"enabled": True}}
    objects = by_name(helm.template(values, namespace="gpu-system"))

    named = {each["metadata"].get("namespace") for each in objects.values()} - {None}
    bindings = [each for (kind, _), each in objects.items() if kind.endswith("RoleBinding")]
    subjects = {(each["name"], each["namespace"]) for binding in bindings for each in binding["subjects"]}
    assert named == {"gpu-system", "gpu-system-certs"}
    assert subjects == {("placement-webhook", "gpu-system"), ("placement-webhook-certs", "gpu-system-certs")}
    assert objects["Namespace", "gpu-system-certs"]
    for webhook in objects[CONFIGURATION]["webhooks"]:
        assert webhook["clientConfig"]["service"]["namespace"] == "gpu-system"
        excluded = webhook["namespaceSelector"]["matchExpressions"][0]["values"]
        assert excluded == ["kube-system", "gpu-system", "gpu-system-certs"]
    assert "--namespace=gpu-system" in container_of(objects[CONTROLLER])["args"]


@pytest.mark.parametrize("namespace", ["certs", "placement-webhook"])
def test_the_namespace_of_the_certs_controller_is_a_value(helm: Helm, namespace: str) -> None:
    objects = by_name(helm.template({"certificates": {"controller": {"namespace": namespace}}}))

    assert objects[CONTROLLER]["metadata"]["namespace"] == namespace
    assert "--namespace=placement-webhook" in container_of(objects[CONTROLLER])["args"]
    assert [name for kind, name in objects if kind == "Namespace"] == [each for each in [namespace] if each == "certs"]


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_arguments_are_understood_and_name_mounted_files(helm: Helm, values: Object) -> None:
    objects = by_name(helm.template(values))
    for (kind, _), each in objects.items():
        if kind in ("Deployment", "StatefulSet"):
            container = container_of(each)
            understand(container["args"])
            mounts = {mount["mountPath"] for mount in container.get("volumeMounts", ())}
            named = re.findall(r"=(/\S+)", " ".join(container["args"]))
            assert all(path in mounts or str(Path(path).parent) in mounts for path in named), named


def test_own_certificates_are_trusted_by_the_bundle_of_the_values(helm: Helm) -> None:
    objects = by_name(helm.template(VARIANTS["own-secret"]))

    bundles = {webhook["clientConfig"]["caBundle"] for webhook in objects[CONFIGURATION]["webhooks"]}
    assert [yaml.safe_load(f"!!binary {each}").decode() for each in bundles] == [CA_PEM]
    assert CONTROLLER not in objects


def test_without_a_live_view_the_webhook_has_no_rights_and_no_token(helm: Helm) -> None:
    objects = by_name(helm.template(VARIANTS["own-secret"]))

    assert not [kind for kind, _ in objects if "Role" in kind]
    assert pod_template(objects[SERVER])["spec"]["automountServiceAccountToken"] is False
    assert not objects["NetworkPolicy", "placement-webhook"]["spec"]["egress"]


def test_without_events_there_is_no_right_to_write_them(helm: Helm) -> None:
    rules = by_name(helm.template({"events": False}))["ClusterRole", "placement-webhook"]["rules"]

    assert {verb for rule in rules for verb in rule["verbs"]} <= {"get", "list", "watch"}


def test_namespaces_are_exempted_and_selected(helm: Helm) -> None:
    for webhook in by_name(helm.template(VARIANTS["own-secret"]))[CONFIGURATION]["webhooks"]:
        (names,) = webhook["namespaceSelector"]["matchExpressions"]
        assert (names["operator"], names["values"]) == (
            "NotIn",
            ["kube-system", "network", "placement-webhook", "placement-webhook-certs"],
        )
        assert webhook["namespaceSelector"]["matchLabels"] == {"gpu": "yes"}
        assert webhook["timeoutSeconds"] == 3


def test_image_is_named_by_its_digest(helm: Helm) -> None:
    objects = by_name(helm.template(VARIANTS["own-secret"]))

    assert container_of(objects[SERVER])["image"] == f"registry.example.com/pw@sha256:{'0' * 64}"


def test_a_changed_policy_rolls_out_the_pods(helm: Helm) -> None:
    policy = deepcopy(VARIANTS["audit-volume"]["policy"])
    before, after = (by_name(helm.template(values)) for values in ({}, {"policy": policy}))

    assert yaml.safe_load(after[POLICY]["data"]["policy.yaml"]) == policy
    assert (
        pod_template(before[SERVER])["metadata"]["annotations"]
        != pod_template(after[SERVER])["metadata"]["annotations"]
    )


def test_the_policy_can_be_a_list_of_several(helm: Helm) -> None:
    head = {"apiVersion": API_VERSION, "kind": KIND}
    team = {**head, "metadata": {"name": "team-a"}, "spec": {"namespaceSelector": {}}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [head, team]}
    text = by_name(helm.template({"policy": listed}))[POLICY]["data"]["policy.yaml"]
    assert [each.name for each in policy_set(parse_policies(text, "policy.yaml"))] == ["default", "team-a"]


def test_records_on_volumes_outlive_pods_and_release(helm: Helm) -> None:
    """Each replica has a claim of its own, which no one deletes."""
    workload = by_name(helm.template(VARIANTS["audit-volume"]))["StatefulSet", "placement-webhook"]

    (claim,) = workload["spec"]["volumeClaimTemplates"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container_of(workload)["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == "/var/log/placement-webhook"
    assert "--audit=/var/log/placement-webhook/audit.jsonl" in container_of(workload)["args"]
    assert "persistentVolumeClaimRetentionPolicy" not in workload["spec"]


def test_configuration_for_a_policy_with_kinds_of_its_own(helm: Helm) -> None:
    manifest = read_one("base/mutatingwebhookconfiguration.yaml")
    manifest["webhooks"][1]["rules"] = [{"apiGroups": ["example.com"]}]

    given = by_name(helm.template({"webhook": {"manifest": yaml.safe_dump(manifest)}}))[CONFIGURATION]["webhooks"]

    assert given == manifest["webhooks"]


def test_runbooks_get_the_address_of_the_repository(helm: Helm) -> None:
    rule = {"enabled": True, "runbookBaseURL": "https://git.example.com/pw/"}
    groups = by_name(helm.template({"monitoring": {"prometheusRule": rule}}))["PrometheusRule", "placement-webhook"]

    urls = [rule["annotations"]["runbook_url"] for group in groups["spec"]["groups"] for rule in group["rules"]]
    assert all(url.startswith("https://git.example.com/pw/docs/runbooks/") for url in urls)


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_commands_of_the_notes_are_understood(helm: Helm, values: Object) -> None:
    given = ("placement-webhook", str(CHART), "--namespace", "gpu-system", "--values", "-", "--dry-run=client")
    notes = helm("install", *given, stdin=yaml.safe_dump(with_required(values))).partition("NOTES:")[2]

    commands = re.findall(r"^  placement-webhook (.+)$", notes, re.MULTILINE)
    assert commands
    for command in commands:
        understand(shlex.split(command))
    assert f"rollout status {'stateful' if 'audit' in values else 'deployment'}" in notes

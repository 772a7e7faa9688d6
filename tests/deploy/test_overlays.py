"""Every manifest on the real API server, applied on its side in strict validation."""

import functools
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.controlplane.client import Client, NotFound, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_node_object
from tests.support.objects.manifests import DEPLOY
from tests.support.programs.command import run_here
from webhook.kube.names import HOSTNAME_LABEL

# What is installed beside an overlay.
ADDED = ("overlays/console",)
OVERLAYS = ("base", *(f"overlays/{each.name}" for each in sorted((DEPLOY / "overlays").iterdir())), "quickstart")
NAMESPACE, CERTS_NAMESPACE = "placement-webhook", "placement-webhook-certs"
APPLY = ("apply", "--server-side", "--validate=strict", "--field-manager=deploy", "-f", "-")
CONFIGURATION = ("MutatingWebhookConfiguration", "00-placement-webhook")


@pytest.fixture
def rights_removed(cluster: Cluster) -> Iterator[None]:
    """Takes away afterwards what an overlay grants in the whole cluster."""
    yield
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        for part in ("", "-certs", "-console", "-exported", "-policies"):
            with suppress(NotFound):
                cluster.client.delete(kind, f"placement-webhook{part}", api_version="rbac.authorization.k8s.io/v1")


@functools.cache
def text_of(control_plane: ControlPlane, overlay: str) -> str:
    return control_plane.kubectl("kustomize", str(DEPLOY / overlay)).stdout


def rendered(control_plane: ControlPlane, overlay: str) -> list[Object]:
    return list(yaml.load_all(text_of(control_plane, overlay), yaml.CSafeLoader))


def applied(cluster: Cluster, overlay: str) -> None:
    """Apply the overlay; all objects are accepted without a warning."""
    if overlay in ADDED:
        cluster.make_namespace(NAMESPACE)
    done = cluster.control_plane.kubectl(*APPLY, stdin=text_of(cluster.control_plane, overlay))
    assert done.stderr == ""
    accepted = re.findall(r"serverside-applied$", done.stdout, re.MULTILINE)
    assert len(accepted) == len(rendered(cluster.control_plane, overlay))


@pytest.mark.usefixtures("cert_manager_kinds", "rights_removed")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_manifests_are_accepted_and_applying_them_again_changes_nothing(cluster: Cluster, overlay: str) -> None:
    applied(cluster, overlay)
    stdin = text_of(cluster.control_plane, overlay)
    difference = cluster.control_plane.kubectl(
        "diff", "--server-side", "--field-manager=deploy", "-f", "-", stdin=stdin, check=False
    )
    assert (difference.returncode, difference.stdout + difference.stderr) == (0, ""), difference.stdout


@pytest.mark.parametrize("overlay", [each for each in OVERLAYS if each not in ADDED])
def test_policy_reaches_the_deployment_by_a_name_with_its_hash(control_plane: ControlPlane, overlay: str) -> None:
    by_kind = {
        obj["kind"]: obj
        for obj in rendered(control_plane, overlay)
        if obj["metadata"]["name"] != "placement-webhook-certs"
    }
    name = by_kind["ConfigMap"]["metadata"]["name"]
    volumes = {volume["name"]: volume for volume in by_kind["Deployment"]["spec"]["template"]["spec"]["volumes"]}
    assert re.fullmatch(r"placement-policy-[a-z0-9]{10}", name)
    assert volumes["policy"]["configMap"]["name"] == name
    assert set(by_kind["ConfigMap"]["data"]) == {"policy.yaml"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_everything_is_in_the_namespace_and_labelled(control_plane: ControlPlane, overlay: str) -> None:
    for obj in rendered(control_plane, overlay):
        metadata = obj["metadata"]
        if obj["apiVersion"] != "cert-manager.io/v1":
            assert metadata["labels"]["app.kubernetes.io/name"] == "placement-webhook", metadata["name"]
        namespaces = (NAMESPACE, CERTS_NAMESPACE) if metadata["name"].startswith(CERTS_NAMESPACE) else (NAMESPACE,)
        assert metadata.get("namespace", NAMESPACE) in namespaces


def test_cert_manager_keeps_the_ca_bundle_of_its_overlay(control_plane: ControlPlane) -> None:
    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in rendered(control_plane, "overlays/cert-manager")}
    namespace, _, certificate = objects[CONFIGURATION]["metadata"]["annotations"][
        "cert-manager.io/inject-ca-from"
    ].partition("/")
    assert namespace == NAMESPACE
    assert ("Certificate", certificate) in objects


def test_self_managed_overlay_leaves_the_configuration_to_its_controller(control_plane: ControlPlane) -> None:
    objects = {(obj["kind"], obj["metadata"]["name"]) for obj in rendered(control_plane, "overlays/self-managed")}
    assert CONFIGURATION not in objects
    assert ("Deployment", "placement-webhook-certs") in objects


@pytest.mark.parametrize("overlay", [each for each in OVERLAYS if each not in (*ADDED, "base", "quickstart")])
def test_each_overlay_follows_the_policy_of_base(control_plane: ControlPlane, overlay: str, tmp_path: Path) -> None:
    """The overlay of templates changes one field of it."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    file = tmp_path / "deploy" / "base" / "policy.yaml"
    file.write_text(file.read_text().replace("schedulerName: volcano", "schedulerName: default-scheduler"))
    with file.open("a") as stream:
        stream.write("  queueing: kueue\n")
    policy = yaml.safe_load(file.read_text())
    policy["spec"]["workloadObjects"]["mutateTemplates"] = overlay == "overlays/templates"

    text = control_plane.kubectl("kustomize", str(tmp_path / "deploy" / overlay)).stdout

    (found,) = [each["data"] for each in yaml.load_all(text, yaml.CSafeLoader) if each["kind"] == "ConfigMap"]
    assert yaml.safe_load(found["policy.yaml"]) == policy
    assert policy["spec"]["workloadTypes"]["training"]["schedulerName"] == "default-scheduler"


def test_overlay_of_templates_over_a_policy_without_its_line_is_rejected_by_name(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    file = tmp_path / "deploy" / "base" / "policy.yaml"
    file.write_text(file.read_text().partition("spec:\n")[0] + "spec: {}\n")

    text = control_plane.kubectl("kustomize", str(tmp_path / "deploy" / "overlays" / "templates")).stdout

    (found,) = [each["data"] for each in yaml.load_all(text, yaml.CSafeLoader) if each["kind"] == "ConfigMap"]
    outcome = run_here("policy", "check", "-", stdin=found["policy.yaml"])
    assert outcome.code == 2
    assert "mutateTemplates: Forbidden: unknown field" in outcome.errors


@pytest.mark.usefixtures("rights_removed")
def test_pods_are_admitted_and_run_on_different_nodes(cluster: Cluster) -> None:
    """In a namespace that enforces the restricted standard, beside GPU nodes with taints."""
    for name, taint in [
        ("plain", []),
        ("management", ["maip.mxsf.io/control-plane=:NoSchedule"]),
        ("gpu", ["a=b:NoSchedule"]),
    ]:
        cluster.make_nodes(make_node_object(name, labels={HOSTNAME_LABEL: name}, taints=taint))
    applied(cluster, "overlays/self-managed")
    allow_critical_pods(cluster.client)
    cluster.control_plane.start_controller_manager()
    servers = cluster.wait_pods(2, "app.kubernetes.io/component=server", namespace=NAMESPACE)
    (controller,) = cluster.wait_pods(1, "app.kubernetes.io/component=certs", namespace=CERTS_NAMESPACE)
    assert {cluster.wait_bound(pod) for pod in servers} == {"plain", "management"}
    assert cluster.wait_bound(controller) in ("plain", "management")
    assert {pod["spec"]["priority"] for pod in (*servers, controller)} == {2000000000}


def allow_critical_pods(client: Client) -> None:
    """What the quota's controller does in a cluster that has one."""
    name = "placement-webhook-critical-pods"
    hard = wait_for(lambda: client.get("ResourceQuota", name, NAMESPACE)["spec"]["hard"], "the quota")
    status = {"status": {"hard": hard, "used": {"pods": "0"}}}
    client.patch("ResourceQuota", name, status, namespace=NAMESPACE, subresource="status")

"""doctor finds no fault in any shipped form of the installation, as the real API server stores its manifests."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
import yaml

from certs.pki import issue_ca
from certs.registration import Target, ca_bundle_patch, manifest
from certs.secret import OWNER
from tests.acceptance.placing.pools import pool_node
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.controlplane.webhooks import ADMISSION
from tests.deploy.helm import IMAGE, Helm
from tests.doctor.healthy import commands_of
from tests.support.objects.batch_objects import definition
from tests.support.objects.manifests import DEPLOY, ROOT, Object, container_of
from tests.support.programs.command import run_here
from webhook.admission.exported_policy import exported_policy
from webhook.kube.release import NEWEST
from webhook.policy.loader import parse_policies
from webhook.policy.policy_documents import policy_set

NAMESPACE, CONFIGURATION = "placement-webhook", "00-placement-webhook"
# The Deployment of the controller and its namespace have one name.
CONTROLLER = "placement-webhook-certs"
APPLY = ("apply", "--server-side", "--field-manager=deploy", "-f", "-")
PARTS = ("", "-certs", "-exported", "-policies")
QUEUES = "Queue.scheduling.volcano.sh"
VOLUMES: Object = {"audit": {"output": "volume"}, "policyObjects": True}

Render = Callable[[Cluster, Helm], str]


def overlay(name: str) -> Render:
    return lambda cluster, _: cluster.control_plane.kubectl("kustomize", str(DEPLOY / "overlays" / name)).stdout


def chart(values: Object) -> Render:
    return lambda _, helm: helm.template(values)


# The overlays crd and templates contain self-managed.
FORMS: dict[str, Render] = {
    "overlay cert-manager": overlay("cert-manager"),
    "overlay crd": overlay("crd"),
    "overlay exported": overlay("exported"),
    "overlay templates": overlay("templates"),
    "chart with volumes": chart(VOLUMES),
}


FOLLOWING_OBJECTS = ("overlay crd", "chart with volumes")


@pytest.fixture(scope="module")
def volcano(control_plane: ControlPlane) -> Iterator[None]:
    """The sign that Volcano runs, which the built-in policy names."""
    name = control_plane.client.create(definition(QUEUES)).object["metadata"]["name"]
    control_plane.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=120s")
    yield
    control_plane.kubectl("delete", "crd", name, "--timeout=120s")


@pytest.fixture
def removed(cluster: Cluster) -> Iterator[None]:
    """Take away afterwards what a form has in the whole cluster."""
    yield
    names = [f"{kind}/placement-webhook{part}" for kind in ("clusterrole", "clusterrolebinding") for part in PARTS]
    flags = ("--ignore-not-found", f"--namespace={NAMESPACE}")
    names += ["endpointslice/servers", "crd/placementpolicies.placement.maip.mxsf.io"]
    cluster.control_plane.kubectl("delete", *flags, *names)


@pytest.mark.usefixtures("cert_manager_kinds", "volcano", "removed")
@pytest.mark.parametrize("form", FORMS)
def test_no_fault_is_found_in_a_shipped_form(cluster: Cluster, helm: Helm, form: str) -> None:
    """Nothing runs: the pods are said to be ready, and only a dry run would show that no server answers."""
    cluster.make_namespace(NAMESPACE)
    cluster.make_nodes(*(pool_node(f"{pool}-1", pool) for pool in ("training", "inference", "hybrid")))
    text = FORMS[form](cluster, helm)
    cluster.control_plane.kubectl(*APPLY, stdin=text)
    if form == "overlay crd":
        cluster.control_plane.kubectl("apply", "-k", str(DEPLOY / "crd"))
    if form in FOLLOWING_OBJECTS:
        wait_for(lambda: cluster.kubectl("get", "placementpolicies", check=False).returncode == 0, "the new kind")
    for content in yaml.load_all(text, yaml.CSafeLoader):
        if content and content["kind"] in ("Deployment", "StatefulSet"):
            say_ready(cluster, content)
    say_served(cluster)
    if form == "overlay exported":
        say_exported(cluster)

    assert faults_of(cluster.control_plane.kubeconfig) == []


def say_ready(cluster: Cluster, workload: Object) -> None:
    count, name = workload["spec"]["replicas"], workload["metadata"]["name"]
    status = {"status": {"replicas": count, "readyReplicas": count}}
    cluster.client.patch(
        workload["kind"],
        name,
        status,
        namespace=workload["metadata"]["namespace"],
        api_version="apps/v1",
        subresource="status",
    )


def say_served(cluster: Cluster) -> None:
    """Make what a certs controller or cert-manager, and the servers, would make."""
    found = cluster.kubectl("get", "mutatingwebhookconfigurations", CONFIGURATION, check=False)
    if found.returncode != 0:
        cluster.client.create(manifest(Target()))
    configuration = cluster.client.get("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)
    operations = ca_bundle_patch(configuration, issue_ca(now=datetime.now(UTC)).certificate, None)
    cluster.client.patch("MutatingWebhookConfiguration", CONFIGURATION, operations, api_version=ADMISSION)
    slices = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "servers", "labels": {"kubernetes.io/service-name": NAMESPACE}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": 8443}],
        # No connection to a broadcast address is tried, so that it costs no time.
        "endpoints": [{"addresses": ["255.255.255.255"]}],
    }
    cluster.client.create(slices, namespace=NAMESPACE)


def say_exported(cluster: Cluster) -> None:
    """Make what the leader of the servers would make of the policy of deploy/base."""
    policies = policy_set(parse_policies((DEPLOY / "base" / "policy.yaml").read_bytes(), "policy.yaml"))
    for content in exported_policy(policies, NEWEST, NAMESPACE, manifest(Target())).objects:
        cluster.client.create(content)


def faults_of(kubeconfig: Path) -> list[Object]:
    """Return the findings that are no notes; no machine reaches the Service."""
    done = run_here("doctor", "--kubeconfig", kubeconfig, "-o", "json", "--skip=answer")
    findings: list[Object] = orjson.loads(done.output)["findings"]
    assert {each["check"] for each in findings} >= {"endpoint"}, done.output
    return [each for each in findings if each["severity"] != "info"]


@pytest.mark.usefixtures("volcano", "removed")
def test_a_release_gets_back_what_was_deleted(cluster: Cluster, helm: Helm, tmp_path: Path) -> None:
    """The remedy upgrades the release that made the webhook, also from an older chart, and keeps its values."""
    kubeconfig = cluster.control_plane.kubeconfig
    flags = (f"--kubeconfig={kubeconfig}", f"--namespace={NAMESPACE}")
    cluster.make_nodes(*(pool_node(f"{pool}-1", pool) for pool in ("training", "inference", "hybrid")))
    try:
        values = f"--set=events=false,scheduler=volcano,image.repository={IMAGE}"
        helm("install", "gpu", older_chart(tmp_path / "chart"), *flags, "--create-namespace", values)
        say_ready(cluster, cluster.client.get("Deployment", NAMESPACE, NAMESPACE, api_version="apps/v1"))
        say_served(cluster)
        written_by_controller(cluster)
        for kind, name in (("deployment", CONTROLLER), ("clusterrole", NAMESPACE)):
            cluster.control_plane.kubectl("delete", "-n", CONTROLLER, kind, name)
        findings = faults_of(kubeconfig)
        assert {each["check"] for each in findings} == {"certs-controller", "rights"}
        (remedy,) = {each["remedy"] for each in findings}
        (command,) = commands_of(remedy)
        assert command[:3] == ["helm", "upgrade", "gpu"]
        helm(*(str(ROOT / each) if each.startswith("deploy/") else each for each in command[1:]), flags[0])

        say_ready(cluster, cluster.client.get("Deployment", CONTROLLER, CONTROLLER, api_version="apps/v1"))
        wait_for(lambda: faults_of(kubeconfig) == [], "the roles to be in force")
        server = cluster.client.get("Deployment", NAMESPACE, NAMESPACE, api_version="apps/v1")
        assert "--no-events" in container_of(server)["args"]
    finally:
        helm("uninstall", "gpu", *flags, "--ignore-not-found")


def older_chart(folder: Path) -> str:
    """Write the chart without a group of values, as before the chart had it; return its folder."""
    shutil.copytree(DEPLOY / "chart", folder)
    for name in ("base", "certs-controller"):
        template = folder / "templates" / f"{name}.yaml"
        template.write_text(template.read_text().replace(".Values.resourceQuota.enabled", "false"))
    values = yaml.safe_load((folder / "values.yaml").read_text())
    del values["resourceQuota"]
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    return str(folder)


def written_by_controller(cluster: Cluster) -> None:
    """Write another caBundle as the certs controller does."""
    configuration = cluster.client.get("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)
    operations = ca_bundle_patch(configuration, issue_ca(now=datetime.now(UTC)).certificate, None)
    patch = ("patch", "mutatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p", json.dumps(operations))
    cluster.control_plane.kubectl(*patch, f"--field-manager={OWNER}")

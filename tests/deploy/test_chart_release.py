"""The Helm chart on the real API server: what it renders is accepted, and a release comes, changes and goes."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from certs.registration import Target, manifest, with_ca_bundle
from tests.controlplane.cleanup import finalize
from tests.controlplane.client import NotFound, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.process import Process
from tests.controlplane.webhooks import ADMISSION
from tests.deploy.helm import CHART, IMAGE, Helm
from tests.deploy.variants import CA_PEM, VARIANTS
from tests.support.objects.builders import make_pod
from tests.support.objects.manifests import DEPLOY, container_of
from tests.support.objects.policy_objects import policy
from tests.support.on_cluster.service_account import token_kubeconfig
from tests.support.programs.programs import forked
from tools.custom_resource import NAME as CRD
from webhook.policy.spec.document import API_VERSION, KIND

NAMESPACE = RELEASE = "placement-webhook"
CERTS_NAMESPACE = "placement-webhook-certs"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
SERVICES = "/api/v1/services"
DEPLOYMENTS = "/apis/apps/v1/deployments"


@pytest.mark.usefixtures("cert_manager_kinds", "operator_kinds")
def test_what_the_chart_renders_is_accepted(cluster: Cluster, helm: Helm) -> None:
    for name in (NAMESPACE, CERTS_NAMESPACE):
        cluster.make_namespace(name)
    for values in VARIANTS.values():
        text = helm.template(values)
        flags = ("--server-side", "--dry-run=server", "--validate=strict", "--field-manager=helm")
        done = cluster.control_plane.kubectl("apply", *flags, "-f", "-", stdin=text)
        assert done.stderr == ""
        assert len(done.stdout.splitlines()) == len([each for each in yaml.load_all(text, yaml.CSafeLoader) if each])


def test_a_release_is_installed_upgraded_and_uninstalled(cluster: Cluster, helm: Helm, tmp_path: Path) -> None:
    """An upgrade leaves caBundle alone. Of an uninstalled release, nothing calls a webhook that is gone."""
    with installed(cluster, helm):
        with certs_controller(cluster, tmp_path):
            before = wait_for(lambda: trusted_ca_bundles(cluster), "the CA of the Secret in caBundle")
        values = {"webhook": {"failurePolicy": "Fail", "timeoutSeconds": 7}, "replicas": 3}
        values["image"] = {"repository": IMAGE}
        helm("upgrade", *release(cluster), str(CHART), "--values=-", stdin=yaml.safe_dump(values))

        assert ca_bundles(cluster) == before
        assert {(each["failurePolicy"], each["timeoutSeconds"]) for each in webhooks(cluster)} == {
            ("Fail", 7),
            ("Ignore", 7),
        }
        account = f"system:serviceaccount:{CERTS_NAMESPACE}:placement-webhook-certs"
        asked = ("auth", "can-i", "create", "mutatingwebhookconfigurations/00-placement-webhook", f"--as={account}")
        assert cluster.kubectl(*asked, check=False).stdout == "no\n"
        versions = {path: version_of(cluster, path) for path in (CONFIGURATIONS, SERVICES, DEPLOYMENTS)}
        with certs_controller(cluster, tmp_path):
            helm("uninstall", *release(cluster))

        with ThreadPoolExecutor(len(versions)) as watching:
            found = watching.map(lambda path: deletions(cluster, path, versions[path]), versions)
            deleted = dict(zip(versions, found, strict=True))
        (configuration,), others = deleted[CONFIGURATIONS], deleted[SERVICES] + deleted[DEPLOYMENTS]
        assert len(others) == 4
        assert configuration < min(others)
        finalize(cluster.client, CERTS_NAMESPACE)
        assert left(cluster, namespaced=False) == []
        assert left(cluster, namespaced=True) == ["secret/placement-webhook-tls"]
        cluster.settle_webhooks()
        cluster.create(make_pod("after").obj())


def test_an_installation_by_kustomize_is_taken_over(cluster: Cluster, helm: Helm) -> None:
    kubectl = cluster.control_plane.kubectl
    kubectl("apply", "-k", str(DEPLOY / "overlays" / "self-managed"))
    cluster.client.create(with_ca_bundle(manifest(Target()), CA_PEM.encode()))
    before = ca_bundles(cluster)

    with installed(cluster, helm, "--take-ownership", "--force-conflicts"):
        assert ca_bundles(cluster) == before is not None
        deployment = cluster.client.get("Deployment", "placement-webhook-certs", CERTS_NAMESPACE, api_version="apps/v1")
        assert "--create-configuration" not in container_of(deployment)["args"]
    assert left(cluster, namespaced=False) == ["namespace/placement-webhook"]


def test_policies_outlive_the_release_and_block_nothing(cluster: Cluster, helm: Helm) -> None:
    """A release takes over the definition that kubectl applied, or that an earlier release left."""
    flags = ("--set=policyObjects=true",)
    try:
        cluster.kubectl("apply", "-k", str(DEPLOY / "crd"))
        with installed(cluster, helm, *flags, "--take-ownership", "--force-conflicts"):
            cluster.kubectl("wait", "--for=condition=Established", f"crd/{CRD}", "--timeout=30s")
            cluster.client.create(policy("team-a", "a"))
            uid = cluster.client.get(KIND, "team-a", api_version=API_VERSION)["metadata"]["uid"]
        assert left(cluster, namespaced=False) == [f"customresourcedefinition.apiextensions.k8s.io/{CRD}"]
        cluster.settle_webhooks()
        cluster.create(make_pod("after").obj())

        with installed(cluster, helm, *flags):
            assert cluster.client.get(KIND, "team-a", api_version=API_VERSION)["metadata"]["uid"] == uid
    finally:
        cluster.kubectl("delete", "-k", str(DEPLOY / "crd"), "--ignore-not-found", "--timeout=30s")


@contextmanager
def installed(cluster: Cluster, helm: Helm, *flags: str) -> Iterator[None]:
    """Install the chart with its defaults; there is no release afterwards."""
    try:
        required = f"--set=scheduler=volcano,image.repository={IMAGE}"
        notes = helm("install", *release(cluster), str(CHART), "--create-namespace", required, *flags)
        assert "kubectl -n placement-webhook rollout status deployment/placement-webhook" in notes
        yield
    finally:
        helm("uninstall", *release(cluster), "--ignore-not-found")
        with suppress(NotFound):
            finalize(cluster.client, CERTS_NAMESPACE)


def release(cluster: Cluster) -> tuple[str, ...]:
    return (RELEASE, f"--kubeconfig={cluster.control_plane.kubeconfig}", f"--namespace={NAMESPACE}")


@contextmanager
def certs_controller(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Run the deployed certs controller: its arguments, as its service account."""
    deployment = cluster.client.get("Deployment", "placement-webhook-certs", CERTS_NAMESPACE, api_version="apps/v1")
    kubeconfig = token_kubeconfig(cluster, folder, CERTS_NAMESPACE, "placement-webhook-certs")
    here = {"--in-cluster": f"--kubeconfig={kubeconfig}", "--admin-listen=0.0.0.0:8080": "--admin-listen=127.0.0.1:0"}
    arguments = container_of(deployment)["args"]
    assert here.keys() <= set(arguments)
    given = [here.get(each, each) for each in arguments]
    log = folder / "certs-controller.log"
    log.unlink(missing_ok=True)
    process = Process(Path(forked()), given, log)
    try:
        process.wait_ready(lambda: "the certificates are maintained" in log.read_text())
        yield
    finally:
        process.stop()


def webhooks(cluster: Cluster) -> list[Object]:
    with suppress(NotFound):
        found = cluster.client.get("MutatingWebhookConfiguration", "00-placement-webhook", api_version=ADMISSION)
        return list(found["webhooks"])
    return []


def trusted_ca_bundles(cluster: Cluster) -> list[str] | None:
    """Return the caBundle of each webhook, None unless all are the CA of the Secret."""
    with suppress(NotFound):
        ca = cluster.client.get("Secret", "placement-webhook-tls", NAMESPACE)["data"].get("ca.crt")
        found = ca_bundles(cluster)
        return found if found and set(found) == {ca} else None
    return None


def ca_bundles(cluster: Cluster) -> list[str] | None:
    """Return the caBundle of each webhook, None unless all have one."""
    found = [each["clientConfig"].get("caBundle") for each in webhooks(cluster)]
    return found if found and all(found) else None


def version_of(cluster: Cluster, path: str) -> str:
    version: str = cluster.client.request("GET", path).object["metadata"]["resourceVersion"]
    return version


def deletions(cluster: Cluster, path: str, since: str) -> list[int]:
    """Return the versions at which objects of a collection were deleted; they are in order among all collections."""
    query = f"watch=true&resourceVersion={since}&timeoutSeconds=1"
    events = map(json.loads, cluster.kubectl("get", "--raw", f"{path}?{query}").stdout.splitlines())
    return [int(each["object"]["metadata"]["resourceVersion"]) for each in events if each["type"] == "DELETED"]


def left(cluster: Cluster, *, namespaced: bool) -> list[str]:
    """Return what remains in the namespace, or of the objects without a namespace those with our label."""
    listed = f"--namespaced={str(namespaced).lower()}"
    kinds = cluster.kubectl("api-resources", listed, "--verbs=list", "-o", "name").stdout.split()
    chosen = ["--namespace", NAMESPACE] if namespaced else ["--selector=app.kubernetes.io/part-of=placement-webhook"]
    found = cluster.control_plane.kubectl("get", ",".join(kinds), *chosen, "-o", "name", "--ignore-not-found").stdout
    return [each for each in found.split() if "event" not in each]

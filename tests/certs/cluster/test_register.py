"""`certs register` against a real API server."""

import asyncio
import base64
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from certs import directory as store
from certs.cluster.client import configuration_named, connected
from certs.inspection import Artifacts, inspect
from certs.pki import KeyPair
from certs.registration import Target
from certs.secret import artifacts_in
from tests.controlplane.client import NotFound
from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import make_pod
from tests.support.objects.manifests import DEPLOY, read
from tests.support.on_cluster.service_account import token_kubeconfig
from tests.support.programs.command import Outcome, Run
from tests.support.servers.loopback import closed_port, tls_server
from tests.support.servers.recording import recording_webhook
from tests.support.servers.server import utc_now
from tests.support.tls.certificates import (
    AGED,
    ALL_EXPIRED,
    ENCRYPTED_KEY,
    OTHER,
    make_artifacts,
    server_of,
)
from tests.support.tls.certificates import EXPIRED as SERVER_EXPIRED
from tests.support.tls.registering import put_secret
from webhook.watch.api_server import ClientConfig

CONFIGURATION = "00-placement-webhook"
ADMISSION = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"


class Registry:
    """What is registered in the cluster of one test, and the commands that register there."""

    def __init__(self, certs: Run, cluster: Cluster) -> None:
        self._certs = certs
        self.cluster = cluster
        self.service_name = f"placement-webhook.{cluster.namespace}.svc"

    def run(self, command: str, *flags: object, kubeconfig: Path | None = None) -> Outcome:
        where = kubeconfig or self.cluster.control_plane.kubeconfig
        return self._certs(command, "--kubeconfig", where, "--namespace", self.cluster.namespace, *flags)

    def register(self, *flags: object) -> Outcome:
        done = self.run("register", *flags)
        assert (done.code, done.errors) == (0, "")
        return done

    @property
    def configuration(self) -> dict[str, Any]:
        return self.cluster.client.get("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)

    @property
    def secret(self) -> dict[str, Any]:
        return self.cluster.client.get("Secret", "placement-webhook-tls", self.cluster.namespace)

    @property
    def ca_bundle(self) -> bytes:
        return base64.b64decode(self.configuration["webhooks"][0]["clientConfig"]["caBundle"])

    @property
    def is_empty(self) -> bool:
        kinds = (("MutatingWebhookConfiguration", ADMISSION), ("Secret", "v1"))
        return not any(self.cluster.client.list(kind, api_version=version) for kind, version in kinds)


@pytest.fixture
def registry(certs: Run, cluster: Cluster) -> Registry:
    return Registry(certs, cluster)


def issued(directory: Path, *dns_names: str) -> Artifacts:
    """Certificates in `directory`, as `certs issue --discard-ca-key` leaves them."""
    made = make_artifacts(dns_names=dns_names)
    store.write(directory, made)
    return Artifacts(made.ca_certificate, None, made.certificate, made.key)


def test_without_a_directory_certificates_are_issued_into_the_secret(registry: Registry) -> None:
    registry.register("--skip-probe")
    found = inspect(artifacts_in(registry.secret), utc_now())
    assert registry.secret["type"] == "kubernetes.io/tls"
    assert found.serving_errors() == []
    assert found.names.covers(registry.service_name)
    assert registry.ca_bundle == found.artifacts.ca_certificate


def test_the_key_of_the_ca_is_not_in_the_cluster(registry: Registry, tmp_path: Path) -> None:
    issued(tmp_path, registry.service_name)
    registry.register("--dir", tmp_path, "--skip-probe")
    assert set(registry.secret["data"]) == {"ca.crt", "tls.crt", "tls.key"}


def test_registering_again_changes_nothing(registry: Registry) -> None:
    registry.register("--skip-probe")
    before = (registry.configuration, registry.secret)
    reported = registry.register("--skip-probe").output
    assert "kept; everything is in order" in reported
    assert f"{CONFIGURATION}: unchanged, 1 CA in caBundle" in reported
    assert (registry.configuration, registry.secret) == before


def test_certificates_of_a_directory_are_registered(registry: Registry, tmp_path: Path) -> None:
    mine = issued(tmp_path, registry.service_name)
    registry.register("--dir", tmp_path, "--skip-probe")
    assert artifacts_in(registry.secret) == mine
    assert registry.ca_bundle == mine.ca_certificate


def test_the_old_ca_stays_trusted_beside_the_new_one(registry: Registry, tmp_path: Path) -> None:
    first = issued(tmp_path / "first", registry.service_name)
    second = issued(tmp_path / "second", registry.service_name)
    registry.register("--dir", tmp_path / "first", "--skip-probe")
    registry.register("--dir", tmp_path / "second", "--skip-probe")
    assert registry.ca_bundle == (second.ca_certificate or b"") + (first.ca_certificate or b"")
    assert artifacts_in(registry.secret) == second


def test_due_certificates_are_issued_anew_with_a_ca_of_their_own(registry: Registry) -> None:
    registry.register("--skip-probe")
    first = registry.ca_bundle
    aged = make_artifacts(dns_names=(registry.service_name,), server_age=timedelta(days=300, hours=1))
    put_secret(registry.cluster.control_plane.kubeconfig, Target(registry.cluster.namespace), aged)
    reported = registry.register("--skip-probe").output
    assert "written (issued: tls.crt has 64 days left, less than a third of its time)" in reported
    now = artifacts_in(registry.secret)
    assert inspect(now, utc_now()).problems == inspect(replace(aged, ca_key=None), utc_now()).problems
    assert registry.ca_bundle == (now.ca_certificate or b"") + (aged.ca_certificate or b"") + first


def test_the_api_server_calls_what_was_registered(registry: Registry, tmp_path: Path) -> None:
    mine = make_artifacts(dns_names=(), ip_addresses=("127.0.0.1",))
    store.write(tmp_path, mine)
    with recording_webhook(server_of(mine)) as webhook:
        reported = registry.register("--dir", tmp_path, "--url", webhook.url).output
        registry.cluster.settle_webhooks()
        registry.cluster.create(make_pod("called").namespace(registry.cluster.make_namespace()))
    assert ": TLSv1.3, certificate valid for 127.0.0.1\n" in reported
    assert webhook.pods() == ["called"]


def test_a_server_with_other_certificates_is_not_registered(registry: Registry, tmp_path: Path) -> None:
    issued(tmp_path, "localhost")
    with tls_server(server_of(OTHER)) as port:
        url = f"https://localhost:{port}/mutate"
        refused = registry.run("register", "--dir", tmp_path, "--url", url, "--endpoint", f"127.0.0.1:{port}")
    assert refused.code == 2
    assert "the API server would not trust it, and the webhook is not registered" in refused.errors
    assert registry.is_empty


def test_a_server_that_still_has_the_certificate_of_the_old_ca_is_trusted(registry: Registry, tmp_path: Path) -> None:
    issued(tmp_path / "new", "localhost")
    old = make_artifacts()
    store.write(tmp_path / "old", old)
    with tls_server(server_of(old)) as port:
        flags = ("--url", f"https://localhost:{port}/mutate", "--endpoint", f"127.0.0.1:{port}", "--require-probe")
        registry.register("--dir", tmp_path / "old", *flags)
        assert "patched, 2 CAs in caBundle" in registry.register("--dir", tmp_path / "new", *flags).output


def test_unreachable_endpoint_is_reported_and_registered(registry: Registry) -> None:
    reported = registry.register("--endpoint", f"127.0.0.1:{closed_port()}").output
    probed, *written = reported.splitlines()
    assert "not reachable from here (Connection refused); registered without a probe" in probed
    assert [line.partition(" ")[0] for line in written] == ["Secret", "MutatingWebhookConfiguration"]
    assert registry.ca_bundle


def test_unreachable_endpoint_is_rejected_if_a_probe_is_required(registry: Registry) -> None:
    refused = registry.run("register", "--endpoint", f"127.0.0.1:{closed_port()}", "--require-probe")
    assert refused.code == 2
    assert "not reachable (Connection refused), and the webhook is not registered" in refused.errors
    assert registry.is_empty


def test_a_server_that_waits_for_its_secret_gets_it_before_the_probe(registry: Registry) -> None:
    flags = ("--endpoint", f"127.0.0.1:{closed_port()}", "--require-probe", "--secret-first")
    refused = registry.run("register", *flags)
    assert refused.code == 2
    first = artifacts_in(registry.secret)
    assert inspect(first, utc_now()).serving_errors() == []
    with pytest.raises(NotFound):
        _ = registry.configuration
    with tls_server(server_of_secret(first)) as port:
        registry.register("--endpoint", f"127.0.0.1:{port}", "--require-probe", "--secret-first")
    assert artifacts_in(registry.secret) == first
    assert registry.ca_bundle == first.ca_certificate


def server_of_secret(held: Artifacts) -> KeyPair:
    return KeyPair(held.certificate or b"", held.key or b"")


@pytest.mark.parametrize(
    ("held", "flags", "wanted"),
    [
        pytest.param(SERVER_EXPIRED, ("--secret-first",), ["Secret", "probe:"], id="expired"),
        pytest.param(SERVER_EXPIRED, (), ["probe:", "MutatingWebhookConfiguration", "Secret"], id="expired, unasked"),
        pytest.param(
            AGED, ("--secret-first",), ["probe:", "MutatingWebhookConfiguration", "Secret"], id="due, still trusted"
        ),
    ],
)
def test_only_a_certificate_that_is_not_trusted_any_more_is_replaced_before_the_probe(
    registry: Registry, held: Artifacts, flags: tuple[str, ...], wanted: list[str]
) -> None:
    put_secret(registry.cluster.control_plane.kubeconfig, Target(registry.cluster.namespace), held)
    reported = registry.register("--endpoint", f"127.0.0.1:{closed_port()}", *flags).output
    assert [line.partition(" ")[0] for line in reported.splitlines()][: len(wanted)] == wanted
    assert inspect(artifacts_in(registry.secret), utc_now()).serving_errors() == []


def test_a_server_dry_run_writes_nothing(registry: Registry) -> None:
    reported = registry.register("--skip-probe", "--dry-run", "server").output.splitlines()
    assert [line.partition(" ")[0] for line in reported] == ["probe:", "Secret", "MutatingWebhookConfiguration"]
    assert [line for line in reported if not line.endswith("(server dry run)")] == []
    assert registry.is_empty


def test_a_missing_namespace_is_bad_input(certs: Run, cluster: Cluster) -> None:
    kubeconfig = cluster.control_plane.kubeconfig
    refused = certs("register", "--kubeconfig", kubeconfig, "--namespace", "absent", "--skip-probe")
    assert refused.code == 2
    assert refused.errors.endswith(
        'namespaces "absent" not found; `kubectl create namespace absent` creates it, --namespace names another one\n'
    )


@pytest.mark.parametrize(
    ("held", "message"),
    [
        pytest.param(ALL_EXPIRED, "--dir: ca.crt: Invalid value", id="expired"),
        pytest.param(ENCRYPTED_KEY, "--dir: tls.key: Forbidden: the key is encrypted", id="encrypted key"),
        pytest.param(Artifacts(), "--dir: ca.crt: Required value", id="nothing there"),
        pytest.param(make_artifacts(dns_names=("elsewhere",)), "which the API server will ask for", id="other names"),
    ],
)
def test_unfit_certificates_are_not_registered(
    registry: Registry, tmp_path: Path, held: Artifacts, message: str
) -> None:
    store.write(tmp_path, held)
    refused = registry.run("register", "--dir", tmp_path, "--skip-probe")
    assert refused.code == 2
    assert message in refused.errors
    assert registry.is_empty


def test_secret_of_another_owner_is_taken_over_only_by_force(registry: Registry, tmp_path: Path) -> None:
    mine = issued(tmp_path / "mine", registry.service_name)
    issued(tmp_path / "theirs", "theirs")
    files = (f"--cert={tmp_path / 'theirs' / 'tls.crt'}", f"--key={tmp_path / 'theirs' / 'tls.key'}")
    registry.cluster.kubectl("create", "secret", "tls", "placement-webhook-tls", *files)
    flags = ("--dir", tmp_path / "mine", "--skip-probe")
    refused = registry.run("register", *flags)
    assert refused.code == 2
    assert "conflict" in refused.errors
    registry.register(*flags, "--force")
    assert artifacts_in(registry.secret) == mine


def test_a_secret_without_a_ca_is_not_overwritten_unasked(registry: Registry, tmp_path: Path) -> None:
    issued(tmp_path, "theirs")
    files = (f"--cert={tmp_path / 'tls.crt'}", f"--key={tmp_path / 'tls.key'}")
    registry.cluster.kubectl("create", "secret", "tls", "placement-webhook-tls", *files)
    refused = registry.run("register", "--skip-probe")
    assert refused.code == 2
    assert (
        "tls.crt: Forbidden: is there without ca.crt, so it was not issued here; --force replaces it" in refused.errors
    )


def test_applying_the_manifest_again_leaves_the_ca_bundle(registry: Registry) -> None:
    manifest = str(DEPLOY / "base" / "mutatingwebhookconfiguration.yaml")
    apply = ("apply", "--server-side", "--field-manager=deploy", "-f", manifest)
    registry.cluster.kubectl(*apply)
    registry.cluster.make_namespace("placement-webhook")
    kubeconfig = registry.cluster.control_plane.kubeconfig
    done = registry.run("register", "--skip-probe", "--namespace", "placement-webhook", kubeconfig=kubeconfig)
    assert f"{CONFIGURATION}: patched, 1 CA in caBundle" in done.output
    before = registry.ca_bundle
    registry.cluster.kubectl(*apply)
    assert registry.ca_bundle == before


def test_a_change_made_meanwhile_is_not_overwritten(registry: Registry) -> None:
    registry.register("--skip-probe")
    name = configuration_named(CONFIGURATION)

    async def change_late() -> bool:
        async with connected(ClientConfig(registry.cluster.control_plane.kubeconfig)) as cluster:
            stale = await cluster.read(name)
            assert stale
            registry.cluster.kubectl("label", "mutatingwebhookconfiguration", CONFIGURATION, "changed=meanwhile")
            version = stale["metadata"]["resourceVersion"]
            operations = [
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
                {"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 9},
            ]
            return await cluster.change(name, operations)

    assert asyncio.run(change_late()) is False
    assert registry.configuration["webhooks"][0]["timeoutSeconds"] == 5


def test_the_rights_of_the_certs_controller_are_enough_for_register_and_no_more(
    registry: Registry, certs: Run, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cluster = registry.cluster
    for name in ("placement-webhook", "placement-webhook-certs"):
        cluster.make_namespace(name)
    for granted in read("overlays/self-managed/certs-rbac.yaml"):
        cluster.client.create(granted)
        if granted["kind"].startswith("Cluster"):
            remove = partial(cluster.client.delete, granted["kind"], granted["metadata"]["name"], api_version=RBAC)
            request.addfinalizer(remove)
    kubeconfig = token_kubeconfig(cluster, tmp_path, "placement-webhook-certs", "placement-webhook-certs")
    for expected in ("created, 1 CA", "unchanged, 1 CA"):
        done = certs("register", "--kubeconfig", kubeconfig, "--skip-probe")
        assert (done.code, done.errors) == (0, "")
        assert expected in done.output
    assert certs("register", "--kubeconfig", kubeconfig, "--skip-probe", "--force").code == 0
    for flag in ("--secret", "--configuration"):
        refused = certs("register", "--kubeconfig", kubeconfig, "--skip-probe", flag, "another")
        assert refused.code == 2
        assert "403" in refused.errors

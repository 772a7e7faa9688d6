"""The controller makes an installation, repairs it, and takes over what `certs register` has made."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from certs import pem, registration
from certs.pki import issue_ca
from certs.registration import Target
from certs.secret import OWNER, OWNER_LABEL, artifacts_in, recorded_settings
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.webhooks import ADMISSION
from tests.support.programs.command import Run
from tests.support.servers.loopback import closed_port, tls_server
from tests.support.servers.server import utc_now
from tests.support.tls.certificates import server_of
from tests.support.tls.certs_controller import CONFIGURATION, Installation, controlling, encoded

Damage = Callable[[Installation], None]


@pytest.fixture
def installation(cluster: Cluster) -> Installation:
    return Installation(cluster, cluster.namespace)


@pytest.fixture
def kubeconfig(cluster: Cluster) -> Path:
    return cluster.control_plane.kubeconfig


def create_configuration(installation: Installation) -> None:
    """Create the configuration as `kubectl apply` of the manifest does: without caBundle."""
    installation.cluster.client.create(registration.manifest(installation.target))


def test_the_configuration_appears_when_the_server_serves_what_it_trusts(
    installation: Installation, kubeconfig: Path
) -> None:
    """One that was deleted appears again, with what an administrator had set in it."""
    port = closed_port()
    options = installation.options(creates=True, probe_at=f"127.0.0.1:{port}")
    with controlling(kubeconfig, options) as controller:
        wait_for(lambda: "does not serve a certificate of the Secret yet" in controller.readiness()[1], "the probe")
        secret = installation.secret()
        assert installation.configuration() is None
        assert secret is not None
        assert secret["metadata"]["labels"][OWNER_LABEL] == OWNER
        with tls_server(server_of(artifacts_in(secret)), port):
            wait_for(installation.configuration, "the configuration")
            # As a configuration that an earlier version has made.
            installation.patch_configuration([{"op": "remove", "path": "/webhooks/3"}])
            wait_for(lambda: len(installation.bundles()) == 4, "the webhook that was missing")
            installation.wait_steady()
            assert controller.count("record_configuration") == 0
            settings = {"failurePolicy": "Fail", "namespaceSelector": {"matchLabels": {"placed": "yes"}}}
            installation.patch_configuration(
                [{"op": "replace", "path": f"/webhooks/0/{key}", "value": value} for key, value in settings.items()]
            )
            wait_for(lambda: bool(recorded_settings(installation.secret())), "the record of what was set")
            installation.cluster.client.delete("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)
            wait_for(installation.configuration, "the configuration that was deleted")
            first, *others = (installation.configuration() or {})["webhooks"]
            assert {key: first[key] for key in settings} == settings
            assert {each["failurePolicy"] for each in others} == {"Ignore"}
    made, manifest = installation.configuration() or {}, registration.manifest(installation.target)
    assert [each["rules"] for each in made["webhooks"]] == [each["rules"] for each in manifest["webhooks"]]
    assert controller.count("create_configuration") == 2


def apply_manifest(installation: Installation) -> None:
    """Write the manifest as a tool does that keeps no caBundle, such as `kubectl replace` or Argo CD with Replace."""
    manifest = registration.manifest(installation.target)
    manifest["metadata"]["resourceVersion"] = (installation.configuration() or {})["metadata"]["resourceVersion"]
    installation.cluster.client.replace(manifest)


def delete_secret(installation: Installation) -> None:
    installation.cluster.client.delete("Secret", installation.target.secret, namespace=installation.namespace)


def edit_bundle(installation: Installation) -> None:
    """Replace the CA of one webhook by another."""
    others = pem.certificates(issue_ca(now=utc_now()).certificate, "ca.crt")
    installation.patch_configuration(
        [{"op": "replace", "path": "/webhooks/1/clientConfig/caBundle", "value": encoded(*others)}]
    )


def lose_ca_key(installation: Installation) -> None:
    installation.patch_secret({"data": {"ca.key": None}})


def spoil_certificate(installation: Installation) -> None:
    installation.patch_secret({"data": {"tls.crt": "Pz8/"}})


@pytest.mark.parametrize("damage", [apply_manifest, delete_secret, edit_bundle, lose_ca_key, spoil_certificate])
def test_damage_is_repaired(installation: Installation, kubeconfig: Path, damage: Damage) -> None:
    """Only the watch can wake the controller: it reads nothing at intervals here."""
    create_configuration(installation)
    with controlling(kubeconfig, installation.options()) as controller:
        before = installation.wait_steady()
        changes = controller.changes()
        damage(installation)
        wait_for(lambda: controller.changes() > changes, "a repair")
        after = installation.wait_steady()
        controller.wait_ready()
    keeps_ca = damage not in (delete_secret, lose_ca_key)
    assert (after.signer == before.signer) is keeps_ca


def test_a_second_configuration_has_the_same_ca_bundle(installation: Installation, kubeconfig: Path) -> None:
    other = Target(installation.namespace, configuration="another")
    create_configuration(installation)
    installation.cluster.client.create(registration.manifest(other))

    def trusted() -> list[list[x509.Certificate]]:
        second = installation.cluster.client.get("MutatingWebhookConfiguration", "another", api_version=ADMISSION)
        return [pem.readable_certificates(bundle) for bundle in registration.ca_bundles(second)]

    with controlling(kubeconfig, installation.options(configurations=(CONFIGURATION, "another"))):
        keys = installation.wait_steady()
        # It is written after the first one, which is awaited above.
        wait_for(lambda: all(trusted()), "the caBundles of the second configuration")
    assert trusted() == [[keys.signer]] * 4


def test_two_controllers_at_once_end_with_one_ca(installation: Installation, kubeconfig: Path) -> None:
    create_configuration(installation)
    with (
        controlling(kubeconfig, installation.options("one")) as one,
        controlling(kubeconfig, installation.options("two")) as two,
    ):
        first = installation.wait_steady()
        installation.patch_secret({"data": {"ca.key": None}})
        second = installation.wait_steady()
        delete_secret(installation)
        third = installation.wait_steady()
        for each in (one, two):
            each.wait_ready()
    assert len({first.signer, second.signer, third.signer}) == 3
    added = sum(each.count("add_next_ca") for each in (one, two))
    assert added == 3, "each CA is added by one of them"


def test_certificates_of_register_are_taken_over_with_both_cas_trusted(
    installation: Installation, kubeconfig: Path, certs: Run
) -> None:
    where = ("--kubeconfig", kubeconfig, "--namespace", installation.namespace)
    assert certs("register", *where, "--skip-probe").code == 0
    before = installation.key_material()
    with controlling(kubeconfig, installation.options()):
        wait_for(lambda: installation.key_material().signer is not None, "a CA of the controller")
        wait_for(lambda: all(before.issuer in each for each in installation.bundles()), "the old CA, still trusted")
        after = installation.wait_steady()
    assert before.signer is None
    assert after.issuer != before.issuer
    assert certs("register", *where, "--skip-probe").code == 0, "it may still change the rules of the configuration"
    refused = certs("register", *where, "--skip-probe", "--force")
    assert refused.code == 2
    assert "the certs controller maintains it" in refused.errors


def test_a_trial_outside_the_cluster_becomes_an_installation(
    installation: Installation, kubeconfig: Path, certs: Run
) -> None:
    """As deploy/README.md describes: its configuration is deleted, and the controller takes over the rest."""
    where = ("--kubeconfig", kubeconfig, "--namespace", installation.namespace)
    url = "https://trial.example.com:8443/mutate"
    assert certs("register", *where, "--skip-probe", "--dns", "trial.example.com", "--url", url).code == 0
    installation.cluster.kubectl("delete", "mutatingwebhookconfiguration", CONFIGURATION)
    port = closed_port()
    with controlling(kubeconfig, installation.options(creates=True, probe_at=f"127.0.0.1:{port}")):
        wait_for(lambda: installation.key_material().signer is not None, "a CA of the controller")
        wait_for(
            lambda: installation.key_material().issuer == installation.key_material().signer, "a certificate of that CA"
        )
        with tls_server(server_of(artifacts_in(installation.secret())), port):
            wait_for(installation.configuration, "the configuration")
    called = [each["clientConfig"] for each in (installation.configuration() or {})["webhooks"]]
    assert [each["service"]["namespace"] for each in called] == [installation.namespace] * 4


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param(
            {"annotations": {"cert-manager.io/certificate-name": "x"}},
            "cert-manager writes this Secret",
            id="cert-manager",
        ),
        pytest.param({}, "is not of this controller; delete it, name another one with --secret", id="own files"),
    ],
)
def test_a_secret_of_another_owner_is_not_touched(
    installation: Installation, kubeconfig: Path, metadata: dict[str, dict[str, str]], message: str
) -> None:
    create_configuration(installation)
    name = installation.target.secret
    content = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, **metadata},
        "data": {"tls.crt": "Pz8/"},
    }
    before = installation.cluster.client.create(content, namespace=installation.namespace).object
    with controlling(kubeconfig, installation.options()) as controller:
        wait_for(lambda: message in controller.readiness()[1], lambda: controller.readiness()[1])
        assert controller.readiness()[0] == 503
    assert installation.secret() == before
    assert installation.bundles() == [set()] * 4


def test_a_ca_bundle_of_cert_manager_is_not_touched(installation: Installation, kubeconfig: Path) -> None:
    manifest = registration.manifest(installation.target)
    manifest["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "a/b"}
    installation.cluster.client.create(manifest)
    with controlling(kubeconfig, installation.options()) as controller:
        wait_for(lambda: "cert-manager keeps this caBundle" in controller.readiness()[1], "the refusal")
    assert installation.secret() is None


def test_rotations_are_requested_and_shown(installation: Installation, kubeconfig: Path, certs: Run) -> None:
    where = ("--kubeconfig", kubeconfig, "--namespace", installation.namespace)
    create_configuration(installation)
    with controlling(kubeconfig, installation.options()):
        first = installation.wait_steady()
        renewed = certs("rotate", *where)
        second = installation.wait_steady()
        rotated = certs("rotate", "--ca", *where)
        third = installation.wait_steady()
    assert (renewed.code, rotated.code) == (0, 0), renewed.errors + rotated.errors
    assert (second.signer, second.pair.server == first.pair.server) == (first.signer, False)
    assert third.signer != second.signer
    assert "rotation requested: ca\n" in rotated.output
    assert "tls.crt is renewed, valid until " in rotated.output


def test_rotate_without_a_controller_reports_the_state(
    installation: Installation, kubeconfig: Path, certs: Run
) -> None:
    where = ("--kubeconfig", kubeconfig, "--namespace", installation.namespace)
    refused = certs("rotate", *where)
    assert refused.code == 2
    assert "Required value: a Secret of the certs controller" in refused.errors
    with controlling(kubeconfig, installation.options()):
        installation.wait_steady()
    late = certs("rotate", "--ca", "--timeout-seconds", "0.1", *where)
    assert late.code == 2
    assert "next add_next_ca within 0 s: a rotation of the CA was requested" in late.output
    assert "is not done in time" in late.errors

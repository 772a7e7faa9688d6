"""Pairs of openssl, cfssl and cert-manager: `certs` takes what the API server trusts, and names what it does not.

tests/acceptance/certificates/test_made_pairs.py asks the API server itself.
"""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs import directory
from certs.cluster.probe import Outcome, probe
from certs.cluster.status import Place, report
from certs.inspection import inspect
from certs.pki import KeyPair
from certs.registration import Endpoint
from tests.support.servers.loopback import tls_server
from tests.support.tls.pairs import MadePair, pairs

NOW = datetime.now(UTC)


def errors_of(pair: MadePair, folder: Path) -> list[str]:
    return [str(error) for error in inspect(directory.read(pair.write(folder)), NOW).serving_errors()]


@pytest.mark.parametrize("pair", pairs("trusted"), ids=lambda pair: pair.name)
def test_pair_that_api_servers_trust_is_taken(pair: MadePair, tmp_path: Path) -> None:
    assert errors_of(pair, tmp_path) == []


@pytest.mark.parametrize("pair", pairs("trusted"), ids=lambda pair: pair.name)
def test_probe_trusts_it_as_well(pair: MadePair) -> None:
    served = KeyPair(pair.files["tls.crt"].encode(), pair.files["tls.key"].encode())
    with tls_server(served) as port:
        found = probe(Endpoint("127.0.0.1", port, "127.0.0.1"), pair.files["ca.crt"].encode())
    assert found.outcome is Outcome.TRUSTED, found.detail


@pytest.mark.parametrize("pair", pairs("untrusted"), ids=lambda pair: pair.name)
def test_probe_trusts_no_other(pair: MadePair) -> None:
    served = KeyPair(pair.files["tls.crt"].encode(), pair.files["tls.key"].encode())
    with tls_server(served) as port:
        found = probe(Endpoint("127.0.0.1", port, "127.0.0.1"), pair.files["ca.crt"].encode())
    assert found.outcome is Outcome.UNTRUSTED, found.detail


REASONS = {
    "common-name-only": ["it has no subject alternative name, and the common name is not looked at"],
    "client-only": ["its extendedKeyUsage does not include serverAuth"],
    "no-intermediate": ["must be issued by ca.crt (CN=Own root), or be followed by the chain to it"],
    "issuer-is-no-ca": ['"CN=Own ca" is not a CA (basicConstraints)'],
    "other-name": [],
    "sha-1": ['"CN=localhost" is signed with SHA-1, which is insecure; sign it with SHA-256'],
    "intermediate-first": [
        "must hold the private key of tls.crt; this is the key of another one",
        "it has no subject alternative name, and the common name is not looked at",
    ],
}


@pytest.mark.parametrize("pair", pairs("untrusted", "not served"), ids=lambda pair: pair.name)
def test_reason_of_distrust_is_named(pair: MadePair, tmp_path: Path) -> None:
    found = errors_of(pair, tmp_path)
    assert len(found) == len(REASONS[pair.name])
    assert all(reason in error for error, reason in zip(found, REASONS[pair.name], strict=True))


def test_status_takes_the_label_of_old_pem_files(tmp_path: Path) -> None:
    """OpenSSL serves `X509 CERTIFICATE`, too."""
    (pair,) = [each for each in pairs("trusted") if each.name == "rsa-pkcs8"]
    pair.files["tls.crt"] = pair.files["tls.crt"].replace(" CERTIFICATE", " X509 CERTIFICATE")
    bundle = base64.b64encode(pair.files["ca.crt"].encode()).decode()
    configuration = {"metadata": {"name": "web"}, "webhooks": [{"name": "a", "clientConfig": {"caBundle": bundle}}]}
    place = Place("tls", directory.read(pair.write(tmp_path)), ca_key_kept=False)
    assert report([place], configuration, NOW, timedelta())["problems"] == []

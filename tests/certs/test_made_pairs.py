"""Pairs of openssl, cfssl and cert-manager: `certs` takes what the API server trusts.

tests/acceptance/certificates/test_made_pairs.py asks the API server itself.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs import directory
from certs.cluster.probe import Outcome, probe
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


# A common name alone, another purpose or another issuer is named without a call of the server.
REASONS = {
    "common-name-only": ["it has no subject alternative name, and the common name is not looked at"],
    "client-only": ["its extendedKeyUsage does not include serverAuth"],
    "no-intermediate": [
        "must be issued by ca.crt (CN=Own root), not with SHA-1, or be followed by an unexpired chain to it"
    ],
    "issuer-is-no-ca": [],
    "other-name": [],
    "sha-1": ["must be issued by ca.crt (CN=Own ca), not with SHA-1, or be followed"],
    "intermediate-first": [
        "must hold the private key of tls.crt; this is the key of another one",
        "it has no subject alternative name, and the common name is not looked at",
    ],
}


@pytest.mark.parametrize("pair", pairs("untrusted", "not served"), ids=lambda pair: pair.name)
def test_reason_of_distrust_is_named_in_files(pair: MadePair, tmp_path: Path) -> None:
    found = errors_of(pair, tmp_path)
    assert len(found) == len(REASONS[pair.name])
    assert all(reason in error for error, reason in zip(found, REASONS[pair.name], strict=True))


def test_label_of_old_pem_files_is_taken(tmp_path: Path) -> None:
    """OpenSSL serves `X509 CERTIFICATE`, too."""
    (pair,) = [each for each in pairs("trusted") if each.name == "rsa-pkcs8"]
    pair.files["tls.crt"] = pair.files["tls.crt"].replace(" CERTIFICATE", " X509 CERTIFICATE")
    assert errors_of(pair, tmp_path) == []

"""The inspection of certificate files, for faults that no issued certificate has."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from certs.inspection import Artifacts, Fault, inspect
from certs.pem import certificates
from certs.pki import issue_ca, issue_server
from tests.support.tls.certificates import FRESH, NOW, OTHER, with_malformed_extension
from tests.support.tls.pairs import pairs


def test_a_certificate_with_a_malformed_extension_is_unreadable() -> None:
    found = inspect(replace(FRESH, certificate=with_malformed_extension().certificate), NOW)

    assert found.server is None
    assert [(problem.file, problem.fault) for problem in found.problems] == [("tls.crt", Fault.UNREADABLE)]
    assert str(found.problems[0].error) == "tls.crt: Required value: must hold a certificate with valid extensions"


def faults(held: Artifacts, now: datetime = NOW) -> set[Fault]:
    return {problem.fault for problem in inspect(held, now).faults("tls.crt")}


def test_a_certificate_sent_along_counts_only_if_it_has_issued_the_one_of_the_server() -> None:
    of_another = replace(OTHER, ca_certificate=FRESH.ca_certificate)
    assert of_another.certificate
    assert FRESH.certificate
    assert faults(replace(of_another, certificate=of_another.certificate + FRESH.certificate)) == {Fault.FOREIGN}


def test_of_two_certificates_of_one_ca_the_one_that_is_valid_for_longer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CA that was made anew with its old key, beside the certificate that it had."""
    key = ec.generate_private_key(ec.SECP256R1())
    with monkeypatch.context() as patched:
        patched.setattr("certs.pki.ec.generate_private_key", lambda _: key)
        old, new = (issue_ca(now=NOW, validity=timedelta(days=days)) for days in (400, 800))
    server = issue_server(old, dns_names=["localhost"], now=NOW)

    for bundle in (old.certificate + new.certificate, new.certificate + old.certificate):
        found = inspect(Artifacts(bundle, new.key, server.certificate, server.key), NOW)
        assert found.problems == ()
        assert found.ca is not None
        assert found.ca.not_valid_after_utc == NOW + timedelta(days=800)


def test_an_expired_intermediate_leads_to_no_ca() -> None:
    (pair,) = [each for each in pairs("trusted") if each.name == "chain-of-cert-manager"]
    held = Artifacts(
        pair.files["ca.crt"].encode(), None, pair.files["tls.crt"].encode(), pair.files["tls.key"].encode()
    )
    assert held.certificate
    intermediate = certificates(held.certificate, "tls.crt")[1]
    end = intermediate.not_valid_after_utc
    assert faults(held, end - timedelta(days=1)) == set()
    assert faults(held, end) == {Fault.FOREIGN, Fault.EXPIRED}

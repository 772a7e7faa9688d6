"""The inspection of certificate files, for faults that no issued certificate has."""

from dataclasses import replace
from datetime import datetime, timedelta

from certs.inspection import Artifacts, Fault, inspect
from certs.pem import certificates
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

"""The inspection of certificate files, for faults that no issued certificate has."""

from dataclasses import replace

from certs.inspection import Fault, inspect
from tests.support.tls.certificates import FRESH, NOW, with_malformed_extension


def test_a_certificate_with_a_malformed_extension_is_unreadable() -> None:
    found = inspect(replace(FRESH, certificate=with_malformed_extension().certificate), NOW)

    assert found.server is None
    assert [(problem.file, problem.fault) for problem in found.problems] == [("tls.crt", Fault.UNREADABLE)]
    assert str(found.problems[0].error) == "tls.crt: Required value: must hold a certificate with valid extensions"

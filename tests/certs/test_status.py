"""The report about the certificates of a directory."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from certs.inspection import Artifacts
from certs.status import report
from tests.support.tls.certificates import ALL_EXPIRED, EXPIRED, FRESH, NOW, OTHER


def reported(held: Artifacts) -> dict[str, Any]:
    return report("tls", held, [], NOW, timedelta(days=30))


@pytest.mark.parametrize(
    ("held", "verifies", "matches"),
    [
        pytest.param(FRESH, True, True, id="in order"),
        pytest.param(replace(FRESH, ca_certificate=None), False, True, id="no CA"),
        pytest.param(replace(FRESH, ca_certificate=OTHER.ca_certificate), False, True, id="another CA"),
        pytest.param(replace(FRESH, certificate=None), False, False, id="no certificate"),
        pytest.param(replace(FRESH, key=OTHER.key), True, False, id="another key"),
    ],
)
def test_chain_and_key_are_distinguished(held: Artifacts, verifies: bool, matches: bool) -> None:
    (place,) = reported(held)["places"]
    assert (place["chainVerifies"], place["keyMatches"]) == (verifies, matches)


@pytest.mark.parametrize(
    ("held", "problems"),
    [
        pytest.param(FRESH, [], id="in order"),
        pytest.param(replace(FRESH, ca_key=None), [], id="the CA's key is elsewhere"),
        pytest.param(
            replace(FRESH, ca_key=OTHER.ca_key),
            ["tls: ca.key: Required value: must hold the private key of ca.crt; this is the key of another one"],
            id="the CA's key is another's",
        ),
        pytest.param(
            replace(FRESH, key=None), ["tls: tls.key: Required value: the private key of tls.crt"], id="no key"
        ),
    ],
)
def test_only_the_key_of_the_ca_may_be_absent(held: Artifacts, problems: list[str]) -> None:
    found = reported(held)
    assert (found["problems"], found["healthy"]) == (problems, not problems)


@pytest.mark.parametrize(
    ("held", "files"),
    [
        pytest.param(EXPIRED, ["tls.crt"], id="the certificate"),
        pytest.param(ALL_EXPIRED, ["ca.crt", "tls.crt"], id="its CA, too"),
    ],
)
def test_an_expired_certificate_is_one_problem(held: Artifacts, files: list[str]) -> None:
    found = [problem.split(": ")[1] for problem in reported(held)["problems"]]
    assert found == files

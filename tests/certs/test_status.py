"""The report about the certificates of a directory."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.hashes import SHA256

from certs.inspection import Artifacts
from certs.pem import certificates
from certs.pki import CA_NAME_PREFIX
from certs.status import as_text, report
from tests.support.tls.certificates import ALL_EXPIRED, EXPIRED, FRESH, NOW, OTHER, make_artifacts


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


@pytest.mark.parametrize(
    ("left", "files"),
    [
        (timedelta(days=365), []),
        (timedelta(days=365, seconds=1), ["tls.crt"]),
        (timedelta(days=3650), ["tls.crt"]),
        (timedelta(days=3650, seconds=1), ["ca.crt", "tls.crt"]),
    ],
)
def test_what_has_less_time_left_than_required_is_a_problem(left: timedelta, files: list[str]) -> None:
    found = report("tls", FRESH, [], NOW, left)["problems"]
    assert [each.split(": ")[1] for each in found] == files


def test_without_files_nothing_expires_soon() -> None:
    problems = report("tls", Artifacts(), [], NOW, timedelta(days=30))["problems"]
    assert [each.split(": ")[1] for each in problems] == ["ca.crt", "tls.crt", "tls.key"]


def test_the_facts_of_each_certificate_are_reported() -> None:
    held = make_artifacts(dns_names=("b", "a"), ip_addresses=("10.0.0.1",))
    (place,) = reported(held)["places"]
    for name, content in (("ca", held.ca_certificate), ("certificate", held.certificate)):
        (certificate,) = certificates(content or b"", "")
        start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        names = {} if name == "ca" else {"dnsNames": ["b", "a"], "ipAddresses": ["10.0.0.1"]}
        assert place[name] == names | {
            "subject": certificate.subject.rfc4514_string(),
            "issuer": certificate.issuer.rfc4514_string(),
            "notBefore": start.isoformat().replace("+00:00", "Z"),
            "notAfter": end.isoformat().replace("+00:00", "Z"),
            "daysLeft": (end - NOW).days,
            "expires": f"expires in {(end - NOW).days} days",
            "sha256": certificate.fingerprint(SHA256()).hex(),
        }


CA, PAIR, NAMES = f"CA           CN={CA_NAME_PREFIX}", "certificate  CN=placement-webhook, ", "valid for    localhost"
LEADS = "key          matches the certificate, which leads to the CA"


@pytest.mark.parametrize(
    ("held", "lines"),
    [
        pytest.param(FRESH, [CA, PAIR, NAMES, LEADS, "next         keep; everything is in order"], id="in order"),
        pytest.param(
            replace(FRESH, key=OTHER.key),
            [CA, PAIR, NAMES, LEADS.replace("matches", "does not match"), "next         renew; tls.key: "],
            id="another key",
        ),
        pytest.param(
            replace(FRESH, ca_certificate=OTHER.ca_certificate),
            [CA, PAIR, NAMES, LEADS.replace("leads", "does not lead"), "next         refuse"],
            id="another CA",
        ),
        pytest.param(
            replace(FRESH, ca_certificate=None),
            ["CA           none, key kept", PAIR, NAMES, LEADS.partition(",")[0], "next         refuse"],
            id="no CA",
        ),
        pytest.param(
            replace(FRESH, certificate=None),
            [CA, "certificate  none", "next         renew; tls.crt: "],
            id="no certificate",
        ),
        pytest.param(
            Artifacts(),
            ["CA           none", "certificate  none", "next         issue; nothing there yet"],
            id="nothing",
        ),
    ],
)
def test_the_text_names_what_is_there_and_what_comes_next(held: Artifacts, lines: list[str]) -> None:
    place, *found = as_text(reported(held)).splitlines()
    assert place == "tls"
    assert [each.startswith(f"  {line}") for each, line in zip(found, lines, strict=True)] == [True] * len(lines)
    assert found[0].endswith(", key kept") is (held.ca_key is not None)
    if held.certificate:
        assert found[2:4] == [f"  {line}" for line in lines[2:4]]

"""`certs issue` and `certs status` on a directory: effects, output, and errors."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from certs import directory as store
from certs.inspection import Artifacts, inspect
from certs.pki import issue_ca, issue_server
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import fake_api
from tests.support.servers.server import utc_now
from tests.support.tls import certificates
from tests.support.tls.certificates import AGED, ALL_EXPIRED, FRESH, OTHER


def names_in(directory: Path) -> str:
    return str(inspect(store.read(directory), utc_now()).names)


def test_issue_writes_the_files_of_the_contract(certs: Run, tmp_path: Path) -> None:
    done = certs("issue", "--dir", tmp_path / "tls", "--dns", "localhost", "--ip", "127.0.0.1")
    assert (done.code, done.errors) == (0, "")
    assert {"ca.crt", "tls.crt", "tls.key"} < {path.name for path in (tmp_path / "tls").iterdir()}
    assert done.output.startswith(f"{tmp_path / 'tls'}: issued: nothing there yet\n")
    assert names_in(tmp_path / "tls") == "localhost, 127.0.0.1"


def test_issue_again_changes_nothing(certs: Run, tmp_path: Path) -> None:
    certs("issue", "--dir", tmp_path, "--dns", "a")
    before = store.read(tmp_path)
    assert "kept: everything is in order" in certs("issue", "--dir", tmp_path, "--dns", "a").output
    assert store.read(tmp_path) == before


def test_other_names_renew_the_certificate_under_the_same_ca(certs: Run, tmp_path: Path) -> None:
    certs("issue", "--dir", tmp_path, "--dns", "a")
    before = store.read(tmp_path)
    assert "renewed: tls.crt is for a, not for b" in certs("issue", "--dir", tmp_path, "--dns", "b").output
    after = store.read(tmp_path)
    assert (after.ca_certificate, after.ca_key) == (before.ca_certificate, before.ca_key)
    assert after.certificate != before.certificate
    assert inspect(after, utc_now()).problems == ()
    assert names_in(tmp_path) == "b"


def test_force_issues_a_new_ca(certs: Run, tmp_path: Path) -> None:
    store.write(tmp_path, ALL_EXPIRED)
    assert "issued: a replacement was asked for" in certs("issue", "--dir", tmp_path, "--dns", "a", "--force").output
    assert inspect(store.read(tmp_path), utc_now()).problems == ()


def test_a_ca_key_that_is_already_there_is_deleted_if_it_is_discarded(certs: Run, tmp_path: Path) -> None:
    certs("issue", "--dir", tmp_path, "--dns", "a")
    before = store.read(tmp_path)

    assert certs("issue", "--dir", tmp_path, "--dns", "a", "--discard-ca-key").code == 0

    assert store.read(tmp_path) == replace(before, ca_key=None)


def test_discarded_ca_key_is_nowhere(certs: Run, tmp_path: Path) -> None:
    for _ in range(2):
        assert certs("issue", "--dir", tmp_path, "--dns", "a", "--discard-ca-key").code == 0
        assert store.read(tmp_path).ca_key is None
    refused = certs("issue", "--dir", tmp_path, "--dns", "b")
    assert refused.code == 2
    assert "ca.key: Required value: the private key of ca.crt; --force replaces" in refused.errors


def test_a_dry_run_of_register_stores_nothing(certs: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        where = ("--kubeconfig", api.kubeconfig(tmp_path))
        done = certs("register", "--skip-probe", "--dry-run", "server", *where)

    assert (done.code, api.objects) == (0, {})
    assert [query["dryRun"] for _, query in api.writes] == ["All", "All"]
    assert all(line.endswith(" (server dry run)") for line in done.output.splitlines())


@pytest.mark.parametrize(
    ("held", "message"),
    [
        pytest.param(ALL_EXPIRED, r"ca\.crt: Invalid value: .*; expired on that day", id="expired CA"),
        pytest.param(replace(AGED, ca_key=OTHER.ca_key), r"ca\.key: .*the key of another", id="another's CA key"),
        pytest.param(
            replace(AGED, ca_key=certificates.encrypted(AGED.ca_key)), r"ca\.key: .*is encrypted", id="encrypted CA key"
        ),
        pytest.param(certificates.ENCRYPTED_KEY, r"tls\.key: .*is encrypted", id="encrypted key"),
        pytest.param(
            Artifacts(certificate=FRESH.certificate, key=FRESH.key), r"tls\.crt: .*is there without", id="foreign"
        ),
        pytest.param(
            replace(FRESH, ca_certificate=OTHER.ca_certificate), r"tls\.crt: .*issued by ca\.crt", id="another's CA"
        ),
    ],
)
def test_issue_refuses_with_one_clear_error_and_changes_nothing(
    certs: Run, tmp_path: Path, held: Artifacts, message: str
) -> None:
    store.write(tmp_path, held)
    refused = certs("issue", "--dir", tmp_path, "--dns", "localhost")
    assert (refused.code, refused.output) == (2, "")
    assert [
        line.startswith("Error: ") and "; --force replaces all" in line for line in refused.errors.splitlines()
    ] == [True]
    assert re.match(f"Error: {message}", refused.errors)
    assert store.read(tmp_path) == held


@pytest.mark.parametrize("directory", ["file", "file/tls", "/proc/tls"])
def test_unwritable_directory_is_bad_input(certs: Run, tmp_path: Path, directory: str) -> None:
    (tmp_path / "file").touch()
    refused = certs("issue", "--dir", tmp_path / directory, "--dns", "a")
    assert refused.code == 2
    assert refused.errors.startswith("Error: --dir: Invalid value: ")


def test_status_of_good_certificates(certs: Run, tmp_path: Path) -> None:
    store.write(tmp_path, FRESH)
    reported = certs("status", "--dir", tmp_path)
    assert (reported.code, reported.errors) == (0, "")
    assert "expires in 36" in reported.output
    assert "matches the certificate, which leads to the CA" in reported.output


def test_status_as_json(certs: Run, tmp_path: Path) -> None:
    store.write(tmp_path, FRESH)
    reported = json.loads(certs("status", "--dir", tmp_path, "-o", "json").output)
    place = reported["places"][0]
    assert (reported["healthy"], reported["problems"]) == (True, [])
    assert (place["keyMatches"], place["chainVerifies"], place["next"]) == (True, True, "keep")
    assert (place["certificate"]["dnsNames"], place["certificate"]["daysLeft"]) == (["localhost"], 364)


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        pytest.param(certificates.EXPIRED, "tls.crt: Invalid value: .*; expired on that day", id="expired"),
        pytest.param(replace(FRESH, key=OTHER.key), "tls.key: .*the key of another", id="another's key"),
        pytest.param(
            replace(FRESH, ca_certificate=OTHER.ca_certificate), "must be issued by ca.crt", id="another's CA"
        ),
        pytest.param(replace(FRESH, key=None), "tls.key: Required value: the private key of tls.crt", id="no key"),
        pytest.param(replace(FRESH, certificate=b"?"), "tls.crt: Required value: must hold certificates", id="no PEM"),
        pytest.param(certificates.ENCRYPTED_KEY, "tls.key: Forbidden: the key is encrypted", id="encrypted key"),
        pytest.param(Artifacts(), "ca.crt: Required value", id="nothing there"),
    ],
)
def test_status_reports_problems_and_exits_2(certs: Run, tmp_path: Path, held: Artifacts, problem: str) -> None:
    store.write(tmp_path, held)
    reported = certs("status", "--dir", tmp_path)
    assert reported.code == 2
    assert f"wrong: directory {tmp_path}: " in reported.errors
    assert re.search(problem, reported.errors)
    assert json.loads(certs("status", "--dir", tmp_path, "-o", "json").output)["healthy"] is False


def test_status_reports_upcoming_expiry(certs: Run, tmp_path: Path) -> None:
    store.write(tmp_path, AGED)
    assert certs("status", "--dir", tmp_path).code == 0
    reported = certs("status", "--dir", tmp_path, "--least-days", "200")
    assert reported.code == 2
    assert "expires in 120 days; `placement-webhook certs issue`" in reported.errors


@pytest.mark.parametrize(
    ("lifetime_days", "age_days", "code"),
    [(365, 334, 0), (365, 336, 2), (30, 0, 0), (30, 24, 0), (30, 26, 2), (1, 0, 0)],
)
def test_a_certificate_expires_soon_by_its_lifetime(
    certs: Run, tmp_path: Path, lifetime_days: int, age_days: int, code: int
) -> None:
    """By default: the renewal of one of 30 days is late in its last five."""
    issued, lifetime = certificates.NOW - timedelta(days=age_days), timedelta(days=lifetime_days)
    ca = issue_ca(now=issued)
    server = issue_server(ca, dns_names=["localhost"], now=issued, validity=lifetime)
    store.write(tmp_path, Artifacts(ca.certificate, ca.key, server.certificate, server.key))
    reported = certs("status", "--dir", tmp_path)
    assert reported.code == code
    assert ("expires in" in reported.errors) is (code == 2)


def test_status_reports_readable_keys(certs: Run, tmp_path: Path) -> None:
    store.write(tmp_path, FRESH)
    (tmp_path / "tls.key").chmod(0o644)
    reported = certs("status", "--dir", tmp_path)
    assert reported.code == 2
    assert 'tls.key: Invalid value: "0644"; others can read the key; chmod 600' in reported.errors


@pytest.mark.parametrize("command", ["status", "register"])
def test_missing_directory_is_bad_input(certs: Run, tmp_path: Path, command: str) -> None:
    refused = certs(command, "--dir", tmp_path / "absent")
    assert refused.code == 2
    assert "no such directory" in refused.errors

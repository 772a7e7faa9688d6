"""`certs controller` as a process: its flags, its end, and an API server that is away. `certs rotate`: its end."""

import json
import signal
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from certs.inspection import Artifacts
from certs.plan import Request
from certs.registration import Target
from certs.secret import REQUEST_ANNOTATION, new_secret
from tests.support.programs.command import Run, run_alone
from tests.support.programs.programs import forked
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.loopback import closed_port
from tests.support.tls.certificates import FRESH, NOW, OTHER, ca_of, make_artifacts
from webhook.cli.commands.certs.certs_controller import _is_done


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--server-days", "1", "--propagation-seconds", "30000"), "--server-days is too short: a third of it"),
        (("--server-days", "1", "--trust-seconds", "28800"), "--server-days is too short: a third of it"),
        (("--ca-days", "1"), "--ca-days 1 is less than --server-days 365"),
        (("--ca-days", "0"), "0.0 is not in the range 0<x<=36500"),
        (("--dns", "a_b"), '--dns: Invalid value: "a_b"'),
        (("--url", "http://a"), "must be https://HOST"),
        (("--endpoint", "a"), '--endpoint: Invalid value: "a"; must be HOST:PORT'),
        (("--admin-listen", "a"), "must be HOST:PORT"),
    ],
)
def test_bad_flags_are_bad_usage(certs: Run, flags: tuple[str, ...], message: str) -> None:
    refused = certs("controller", *flags)
    assert (refused.code, refused.output) == (2, "")
    assert message in refused.errors


@pytest.mark.slow
def test_an_admin_port_in_use_is_bad_input(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, f"http://127.0.0.1:{closed_port()}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = run_alone("certs", "controller", "--kubeconfig", kubeconfig, "--admin-listen", where)
    assert refused.code == 2
    assert f'--admin-listen: Invalid value: "{where}"; cannot listen there: ' in refused.errors


@pytest.mark.slow
def test_an_api_server_that_is_away_is_reported_once_and_a_signal_ends_the_process(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, f"http://127.0.0.1:{closed_port()}")
    command = [forked(), "certs", "controller", f"--kubeconfig={kubeconfig}"]
    arguments = ["--admin-listen=127.0.0.1:0", "--log-format=json"]
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        lines = iter(process.stderr.readline, "")
        seen = [json.loads(next(lines))]
        while seen[-1]["event"] != "the certificates are not maintained":
            seen.append(json.loads(next(lines)))
        process.send_signal(signal.SIGTERM)
        seen.extend(json.loads(line) for line in lines)
    assert process.returncode == 0
    assert seen[0]["event"] == "the certs controller runs"
    assert [each["level"] for each in seen if "not maintained" in each["event"]] == ["error"]
    assert seen[-1]["event"] == "the certs controller ends"


@pytest.mark.slow
def test_a_signal_ends_the_process_while_the_api_server_does_not_answer(tmp_path: Path) -> None:
    """A request may take 30 seconds until it fails."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kubeconfig = write_kubeconfig(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        command = [forked(), "certs", "controller", f"--kubeconfig={kubeconfig}"]
        with subprocess.Popen([*command, "--admin-listen=127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as process:
            connection, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=25) == 0
            connection.close()


RENEWED = make_artifacts(ca=ca_of(FRESH))
BOTH_CAS = (OTHER.ca_certificate or b"") + (FRESH.ca_certificate or b"")


@pytest.mark.parametrize(
    ("wanted", "now", "is_done"),
    [
        pytest.param(Request.SERVING, FRESH, False, id="the same certificate"),
        pytest.param(Request.SERVING, RENEWED, True, id="a new certificate"),
        pytest.param(Request.SERVING, replace(RENEWED, key=OTHER.key), False, id="a certificate with another key"),
        pytest.param(Request.CA, RENEWED, False, id="the same CA, after another request took the place of this one"),
        pytest.param(
            Request.CA,
            replace(RENEWED, ca_certificate=BOTH_CAS, ca_key=OTHER.ca_key),
            False,
            id="a new CA, which has not issued the certificate",
        ),
        pytest.param(Request.CA, replace(OTHER, ca_certificate=BOTH_CAS), True, id="a certificate of a new CA"),
    ],
)
def test_a_rotation_is_done_once_the_secret_has_what_was_requested(
    wanted: Request, now: Artifacts, is_done: bool
) -> None:
    before, after = new_secret(Target(), FRESH), new_secret(Target(), now)
    requested = new_secret(Target(), now)
    requested["metadata"]["annotations"] = {REQUEST_ANNOTATION: wanted}

    assert _is_done(after, before, wanted, NOW) == is_done
    assert not _is_done(requested, before, wanted, NOW)

"""`serve`: from flags to shutdown, in a separate process."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.admission import TYPE
from tests.support.builders import make_pod
from tests.support.cluster_files import write_cluster
from tests.support.command import Run, run_alone
from tests.support.server import review_bytes, write_certificate
from webhook.audit.record import parse_line

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())
LOOPBACK = "127.0.0.1:0"


@pytest.fixture(scope="module")
def tls_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    write_certificate(folder)
    return folder


@dataclass(frozen=True, slots=True)
class Served:
    """A running server and its addresses."""

    process: subprocess.Popen[bytes]
    url: str
    admin_url: str


@contextmanager
def serving(tls_dir: Path, *arguments: object, **environment: str) -> Iterator[Served]:
    """`serve` on free ports of loopback, until the end of the block."""
    command = [sys.executable, "-m", "webhook", "serve", "--listen", LOOPBACK, "--admin-listen", LOOPBACK]
    with subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PLACEMENT_WEBHOOK_TLS_DIR": str(tls_dir)} | environment,
    ) as process:
        assert process.stderr is not None
        try:
            event = json.loads(process.stderr.readline())
            assert event["event"] == "serving"
            yield Served(process, f"https://{event['webhook']}/mutate", f"http://{event['admin']}")
        finally:
            process.kill()


def post(served: Served, tls_dir: Path, body: bytes) -> dict[str, Any]:
    request = urllib.request.Request(served.url + "?timeout=5s", body, {"Content-Type": "application/json"})
    trust = ssl.create_default_context(cafile=str(tls_dir / "ca.crt"))
    with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
        response: dict[str, Any] = orjson.loads(answer.read())["response"]
    return response


def test_a_server_answers_audits_and_stops_on_sigterm(tls_dir: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    with serving(
        tls_dir, "--audit", log, "--cluster", write_cluster(tmp_path), PLACEMENT_WEBHOOK_REPLICA="replica-7"
    ) as served:
        response = post(served, tls_dir, REVIEW)
        with urllib.request.urlopen(served.admin_url + "/readyz", timeout=30) as ready:
            assert ready.read() == b"ok\n"

        served.process.send_signal(signal.SIGTERM)
        output, errors = served.process.communicate(timeout=30)

    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"
    (record,) = [parse_line(line) for line in log.read_bytes().splitlines()]
    assert (record.outcome, record.replica) == ("Patched", "replica-7")
    assert record.placement is not None
    assert (record.placement.verdict, record.placement.total) == ("Feasible", 2)
    assert (served.process.returncode, output) == (0, b"")
    assert [json.loads(line)["event"] for line in errors.splitlines()] == ["stopping", "stopped"]


def test_audit_files_that_are_dropped_are_logged_and_counted(tls_dir: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    limits = ("--audit-max-bytes", 1, "--audit-backups", 1, "--audit-keep-hours", 1, "--audit-max-total-bytes", 1)
    with serving(tls_dir, "--audit", log, *limits) as served:
        for _ in range(4):
            post(served, tls_dir, REVIEW)
        with urllib.request.urlopen(served.admin_url + "/metrics", timeout=30) as answer:
            metrics = answer.read().decode().splitlines()
        served.process.send_signal(signal.SIGTERM)
        _, errors = served.process.communicate(timeout=30)

    dropped = [json.loads(line) for line in errors.splitlines() if b"audit files were dropped" in line]
    assert sum(entry["records"] for entry in dropped) == 2
    size_bytes = sum(entry["bytes"] for entry in dropped)
    for name, count in (("files", 2), ("records", 2), ("bytes", size_bytes)):
        assert f'placement_webhook_audit_dropped_{name}_total{{reason="size"}} {float(count)}' in metrics
        assert f'placement_webhook_audit_dropped_{name}_total{{reason="age"}} 0.0' in metrics


def test_the_audit_log_is_standard_output_by_default(tls_dir: Path) -> None:
    with serving(tls_dir, POD_NAME="placement-webhook-0") as served:
        post(served, tls_dir, REVIEW)
        served.process.send_signal(signal.SIGINT)
        output, _ = served.process.communicate(timeout=30)

    (record,) = [parse_line(line) for line in output.splitlines()]
    assert (record.name, record.replica) == ("trainer", "placement-webhook-0")
    assert record.placement is not None
    assert record.placement.verdict == "Unknown"
    assert served.process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        pytest.param((), {}, "Error: Missing option '--tls-dir'.", id="no certificates"),
        pytest.param(
            ("--tls-dir", "t", "--cluster", "c", "--no-cluster"),
            {},
            "Error: --cluster, --kubeconfig, --in-cluster and --no-cluster are mutually exclusive; give one of them.",
            id="a cluster and none",
        ),
        pytest.param(
            ("--tls-dir", "t", "--listen", "8443"),
            {},
            "Error: Invalid value for '--listen': \"8443\" must be HOST:PORT, with a port from 0 to 65535",
            id="an address without a host",
        ),
        pytest.param(
            ("--tls-dir", "t", "--admin-listen", "a:70000"),
            {},
            "Error: Invalid value for '--admin-listen': \"a:70000\" must be HOST:PORT, with a port from 0 to 65535",
            id="a port beyond all",
        ),
        pytest.param(
            ("--tls-dir", "t", "--grace-seconds", "-1"),
            {},
            "Error: Invalid value for '--grace-seconds': -1.0 is not in the range x>=0.",
            id="a time that is past",
        ),
        pytest.param(
            ("--tls-dir", "t", "--max-body-bytes", "10"),
            {},
            "Error: Invalid value for '--max-body-bytes': 10 is not in the range x>=1024.",
            id="no room for a body",
        ),
        pytest.param(
            ("--tls-dir", "t", "--log-level", "loud"),
            {},
            "Error: Invalid value for '--log-level': 'loud' is not one of 'debug', 'info', 'warning', 'error'.",
            id="a level that is none",
        ),
        pytest.param(
            ("--tls-dir", "t"),
            {"LISTEN": "x"},
            "Error: Invalid value for '--listen': \"x\" must be HOST:PORT, with a port from 0 to 65535",
            id="a bad address in the environment",
        ),
        pytest.param(
            (),
            {"TLS_DIR": "t", "LOG_FORMAT": "xml"},
            "Error: Invalid value for '--log-format': 'xml' is not one of 'auto', 'text', 'json'.",
            id="a bad format in the environment",
        ),
        pytest.param(
            ("--tls-dir", "t", "--cluster", "c"),
            {"NO_CLUSTER": "true"},
            "Error: --cluster, --kubeconfig, --in-cluster and --no-cluster are mutually exclusive; give one of them.",
            id="none in the environment",
        ),
    ],
)
def test_wrong_usage_is_reported_with_code_2(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], environment: dict[str, str], expected: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"PLACEMENT_WEBHOOK_{name}", value)

    outcome = run("serve", *arguments)

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.splitlines()[-1] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "value", "expected"),
    [
        ("--tls-dir", "nowhere", 'Error: --tls-dir: Invalid value: "nowhere/tls.crt"; no such file; '),
        ("--policy", "nowhere", 'Error: --policy: Invalid value: "nowhere"; cannot be read: No such file or directory'),
        (
            "--cluster",
            "nowhere",
            'Error: --cluster: Invalid value: "nowhere"; cannot be read: No such file or directory',
        ),
        ("--listen", "TAKEN", 'Error: --listen: Invalid value: "TAKEN"; cannot be listened on: '),
        ("--admin-listen", "TAKEN", 'Error: --admin-listen: Invalid value: "TAKEN"; cannot be listened on: '),
        ("--listen", "none.invalid:0", 'Error: --listen: Invalid value: "none.invalid:0"; cannot be listened on: '),
    ],
    ids=["no certificates", "no policy", "no cluster", "a port in use", "an admin port in use", "a host that is none"],
)
def test_a_server_that_cannot_start_reports_the_reason_in_a_line(
    tls_dir: Path, flag: str, value: str, expected: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        free = ("--tls-dir", tls_dir, "--listen", LOOPBACK, "--admin-listen", LOOPBACK)
        outcome = run_alone("serve", *free, flag, value.replace("TAKEN", address))

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.startswith(expected.replace("TAKEN", address))
    assert "Traceback" not in outcome.errors

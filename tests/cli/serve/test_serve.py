"""`serve`: from flags to shutdown, in a separate process."""

import json
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import orjson
import pytest

from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import write_cluster
from tests.support.programs.command import Run, run_alone
from tests.support.programs.programs import forked
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.server import review_bytes, write_certificate
from webhook.audit.record import parse_line
from webhook.cli.commands.serve import serve_command as serve
from webhook.cli.commands.serve import serve_outputs
from webhook.policy.loader import built_in_policy
from webhook.runtime.settings import Address, Settings

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())
LOOPBACK = "127.0.0.1:0"
ROOT = Path(__file__).parents[3]


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
    event: dict[str, Any]


@contextmanager
def serving(tls_dir: Path, *arguments: object, program: Sequence[str] = (), **environment: str) -> Iterator[Served]:
    """`serve` on free ports of loopback, until the end of the block."""
    command = [*(program or [forked()]), "serve", "--listen", LOOPBACK, "--admin-listen", LOOPBACK]
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
            yield Served(process, f"https://{event['webhook']}/mutate", f"http://{event['admin']}", event)
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "cluster"),
    [
        pytest.param([], "none", id="no view"),
        pytest.param(["--no-cluster"], "none", id="no view by a flag"),
        pytest.param(["--cluster", "cluster.json"], "file cluster.json", id="a file"),
        pytest.param(["--kubeconfig", "kubeconfig"], "kubeconfig kubeconfig", id="a kubeconfig"),
        pytest.param(
            ["--kubeconfig", "kubeconfig", "--context", "c"], "kubeconfig kubeconfig, context c", id="a context"
        ),
    ],
)
def test_the_first_log_line_says_what_is_served(
    tls_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], cluster: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    write_cluster(tmp_path)
    write_kubeconfig(tmp_path, "http://127.0.0.1:1")

    with serving(tls_dir, "--audit", "audit.jsonl", *arguments) as served:
        event = served.event

    policy = built_in_policy()
    assert {key: event[key] for key in ("policy", "revision", "cluster", "audit")} == {
        "policy": policy.name,
        "revision": policy.revision,
        "cluster": cluster,
        "audit": "audit.jsonl",
    }


def post(served: Served, tls_dir: Path, body: bytes) -> dict[str, Any]:
    request = urllib.request.Request(served.url + "?timeout=5s", body, {"Content-Type": "application/json"})
    trust = ssl.create_default_context(cafile=str(tls_dir / "ca.crt"))
    with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
        response: dict[str, Any] = orjson.loads(answer.read())["response"]
    return response


def test_a_server_answers_audits_and_stops_on_sigterm(tls_dir: Path, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    with serving(tls_dir, "--audit", log, "--cluster", write_cluster(tmp_path), POD_NAME="replica-7") as served:
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
    with serving(tls_dir, "--audit", log, "--audit-max-total-bytes", 1) as served:
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


def test_admission_goes_on_while_the_disk_is_full(tls_dir: Path, tmp_path: Path) -> None:
    log, written, failed = tmp_path / "audit.jsonl", 2, 3
    with serving(tls_dir, "--audit", log, program=[sys.executable, "-m", "webhook"]) as served:
        _, most = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
        answers = [post(served, tls_dir, REVIEW) for _ in range(written)]
        # The file can take half of another record.
        limit = log.stat().st_size + log.stat().st_size // (2 * written)
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (limit, most))
        answers += [post(served, tls_dir, REVIEW) for _ in range(failed)]
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (most, most))
        answers.append(post(served, tls_dir, REVIEW))
        with urllib.request.urlopen(served.admin_url + "/metrics", timeout=30) as answer:
            metrics = answer.read().decode().splitlines()
        served.process.send_signal(signal.SIGTERM)
        _, errors = served.process.communicate(timeout=30)
    verified = run_alone("audit", "verify", log)

    assert all(answer["allowed"] and answer["patch"] for answer in answers)
    assert f'placement_webhook_audit_records_total{{result="failed"}} {float(failed)}' in metrics
    # The record after the outage, and the one that counts those that are missing.
    assert f'placement_webhook_audit_records_total{{result="written"}} {float(written + 2)}' in metrics
    said = [json.loads(line) for line in errors.splitlines()]
    events = [each["event"] for each in said if "event" in each and "audit" in each["event"]]
    assert events == [
        "audit records cannot be written and go to standard error",
        "audit records are written again",
    ]
    assert sum("decision" in each for each in said) == failed
    assert verified.code == 0
    assert f"{log}:3: 3 records before it could not be written here" in verified.output


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
            ("--tls-dir", "t", "--extender-profile", "pack-gpus"),
            {},
            "Error: --extender-profile needs a view; give --in-cluster, --kubeconfig or --cluster, too.",
            id="an extender without a view",
        ),
        pytest.param(
            ("--tls-dir", "t", "--extender-profile", "pack-gpus", "--in-cluster"),
            {},
            "Error: --extender-profile needs --client-ca, by which only kube-scheduler is answered; or give "
            "--extender-insecure, to answer every client that reaches the port.",
            id="an extender for every client",
        ),
        pytest.param(
            ("--tls-dir", "t", "--listen", "8443"),
            {},
            "Error: Invalid value for '--listen': \"8443\" must be HOST:PORT, with a port from 0 to 65535",
            id="an address without a host",
        ),
        pytest.param(
            ("--tls-dir", "t", "--client-name", "kube-apiserver"),
            {},
            "Error: --client-name needs --client-ca: without a CA, no name of a client is verified.",
            id="a name that nothing verifies",
        ),
        pytest.param(
            ("--tls-dir", "t", "--admin-listen", "a:70000"),
            {},
            "Error: Invalid value for '--admin-listen': \"a:70000\" must be HOST:PORT, with a port from 0 to 65535",
            id="a port beyond all",
        ),
        pytest.param(
            ("--tls-dir", "t", "--shutdown-delay-seconds", "-1"),
            {},
            "Error: Invalid value for '--shutdown-delay-seconds': -1.0 is not in the range x>=0.",
            id="a time that is past",
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
            {"TLS_DIR": "t", "LOG_LEVEL": "loud"},
            "Error: Invalid value for '--log-level': 'loud' is not one of 'debug', 'info', 'warning', 'error'.",
            id="a bad level in the environment",
        ),
        pytest.param(
            ("--tls-dir", "t"),
            {"CLUSTER": "c", "NO_CLUSTER": "true"},
            "Error: --cluster, --kubeconfig, --in-cluster and --no-cluster are mutually exclusive; give one of them.",
            id="two in the environment",
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


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        pytest.param(
            ("--cluster", "absent"), {"NO_CLUSTER": "true"}, "--cluster: Invalid value", id="a file, not none"
        ),
        pytest.param(
            ("--cluster", "absent"), {"IN_CLUSTER": "true", "CONTEXT": "c"}, "--cluster: Invalid", id="a file, not live"
        ),
        pytest.param(("--in-cluster",), {"KUBECONFIG": "absent"}, "--in-cluster: Invalid", id="this one, not another"),
        pytest.param(
            ("--kubeconfig", "absent"), {"KUBECONFIG": "other"}, '--kubeconfig: Invalid value: "absent"', id="its own"
        ),
        pytest.param(("--context", "c"), {"KUBECONFIG": "other"}, 'Invalid value: "other"', id="a context of the file"),
    ],
)
def test_a_flag_for_the_view_wins_over_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], environment: dict[str, str], expected: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(f"PLACEMENT_WEBHOOK_{name}", value)

    outcome = run("serve", "--tls-dir", "t", *arguments)

    assert outcome.code == 2
    assert expected in outcome.errors.splitlines()[-1]


@pytest.mark.parametrize(
    ("flag", "value", "range_"),
    [
        ("--audit-max-total-bytes", "0", "x>=1"),
        ("--max-connections-per-address", "0", "x>=1"),
        ("--shutdown-delay-seconds", "-0.5", "x>=0"),
    ],
)
def test_a_number_outside_its_range_is_rejected(run: Run, flag: str, value: str, range_: str) -> None:
    outcome = run("serve", "--tls-dir", "t", flag, value)

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.splitlines()[-1] == (
        f"Error: Invalid value for '{flag}': {value} is not in the range {range_}."
    )


@dataclass
class Started:
    """The settings that `serve` starts its server with, and the options of its audit log."""

    settings: Settings | None = None
    audit: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    found = Started()

    class Writer:
        def __init__(self, path: str, **options: Any) -> None:
            found.audit = {"path": path} | {
                key: each for key, each in options.items() if not key.startswith(("on_", "now"))
            }

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

    def build(settings: Settings, *_: object) -> None:
        found.settings = settings

    monkeypatch.setattr(serve_outputs, "AuditWriter", Writer)
    monkeypatch.setattr(serve, "build_server", build)
    monkeypatch.setattr(serve, "serve_until_signalled", lambda *_: None)
    monkeypatch.setattr(serve, "configure_logs", lambda *_: None)
    return found


def test_defaults_are_those_of_the_documents(run: Run, started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/operations.md names them."""
    monkeypatch.setenv("POD_NAME", "r")
    assert run("serve", "--tls-dir", "t").code == 0

    assert started.settings == Settings(Path("t"), replica="r")
    assert started.audit == {
        "path": "-",
        "max_bytes": 104_857_600,
        "backups": 10,
        "max_total_bytes": 4_294_967_296,
        "replica": "r",
    }


def test_each_flag_sets_its_own_setting(run: Run, started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "r")
    settings = {
        "listen": "127.0.0.1:1",
        "admin-listen": "127.0.0.1:2",
        "max-connections-per-address": 1,
        "server-name": "webhook.example.com",
        "shutdown-delay-seconds": 4,
    }
    audit = {"": "a.jsonl", "-max-total-bytes": 400}
    flags = {f"--{name}": value for name, value in settings.items()} | {
        f"--audit{name}": value for name, value in audit.items()
    }
    arguments = [each for flag in flags.items() for each in flag]

    assert run("serve", "--tls-dir", "t", *arguments).code == 0

    assert started.settings == Settings(
        tls_dir=Path("t"),
        listen=Address("127.0.0.1", 1),
        admin_listen=Address("127.0.0.1", 2),
        max_connections_per_address=1,
        server_name="webhook.example.com",
        shutdown_delay_seconds=4,
        replica="r",
    )
    assert started.audit == {
        "path": "a.jsonl",
        "max_bytes": 50,
        "backups": 4,
        "max_total_bytes": 400,
        "replica": "r",
    }


@pytest.mark.parametrize(
    ("pod_name", "replica"),
    [pytest.param("pod", "pod", id="the pod"), pytest.param("", "host", id="else the host")],
)
def test_the_replica_is_named_after(
    run: Run,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    pod_name: str,
    replica: str,
) -> None:
    monkeypatch.setenv("POD_NAME", pod_name)
    monkeypatch.setattr(socket, "gethostname", lambda: "host")

    assert run("serve", "--tls-dir", "t").code == 0

    assert started.settings == Settings(Path("t"), replica=replica)


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

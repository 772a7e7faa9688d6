"""`serve`: from flags to shutdown, in a separate process."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.commands.serve.served import LOOPBACK, post, serving
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import write_cluster
from tests.support.programs.command import Run, run_alone
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.server import review_bytes
from webhook.audit.record import parse_line
from webhook.cli.commands.serve import serve_command
from webhook.cli.commands.serve.serve_command import followed_policy
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy.spec.document import API_VERSION, KIND
from webhook.runtime.metrics import Metrics

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())
ROOT = Path(__file__).parents[4]


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_only_a_server_with_a_live_view_loads_the_client_of_an_api_server() -> None:
    """The client takes 10 MiB."""
    script = "import sys, webhook.cli.commands.serve.serve_command; print({'kubernetes', 'requests'} & {*sys.modules})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "set()\n", "")


@pytest.mark.parametrize("name", ["default", "a"])
def test_no_policy_of_a_file_is_put_into_force_if_a_scheduler_of_one_cannot_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def broken(policy: Policy, **_: object) -> None:
        if policy.name == name:
            raise ZeroDivisionError

    def written(mode: str) -> None:
        selectors = {"default": {}, "a": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}
        head = {"apiVersion": API_VERSION, "kind": KIND}
        documents = [{**head, "metadata": {"name": key}, "spec": selectors[key] | {"mode": mode}} for key in selectors]
        path.write_text("\n---\n".join(map(json.dumps, documents)))

    path = tmp_path / "policy.yaml"
    written("enforce")
    policies, file = followed_policy(path, Metrics(), knows_labels=True)
    assert file is not None
    monkeypatch.setattr(serve_command, "scheduler_for", broken)
    written("shadow")
    asyncio.run(file.reload())

    assert {each.spec.mode for each in policies.in_force()} == {"enforce"}
    assert "ZeroDivisionError" in policies.note()

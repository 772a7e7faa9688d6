"""The audit log of `serve`, and the exported policy."""

import json
import resource
import signal
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from tests.cli.commands.serve.served import post, serving
from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.programs.command import run_alone
from tests.support.servers.server import review_bytes
from webhook.audit.record import parse_line
from webhook.cli.commands.serve import serve_outputs
from webhook.cli.commands.serve.serve_outputs import exported_policy
from webhook.policy.loader import built_in_policy
from webhook.runtime.metrics import Metrics
from webhook.serving.policies.in_force import Policies
from webhook.watch.api_server import ClientConfig

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())


def test_the_exported_policy_is_compared_again_after_a_change_of_the_policy() -> None:
    policies = Policies(built_in_policy(), Metrics(), lambda: "")
    connect = ClientConfig().connect

    assert exported_policy({"export_policy": "off"}, connect, policies, None, Metrics(), "r", "") is None
    exported = exported_policy({"export_policy": "on"}, connect, policies, None, Metrics(), "r", "")
    assert exported is not None
    assert not exported._changed.is_set()

    policies.replace(policy_with(productAffinity=False))
    assert exported._changed.is_set()


def test_policies_are_exported_once_they_are_known_and_removed_at_once() -> None:
    """The built-in policy, which is in force before the objects are read, would replace them."""

    class Followed:
        reason = "the PlacementPolicies of the cluster have not been read yet"

        def unready_reason(self) -> str:
            return self.reason

    followed = Followed()
    on, remove = (
        exported_policy(
            {"export_policy": mode},
            ClientConfig().connect,
            Policies(built_in_policy(), Metrics(), lambda: ""),
            followed,  # type: ignore[arg-type] # only its readiness is read
            Metrics(),
            "r",
            "",
        )
        for mode in ("on", "remove")
    )
    assert on is not None
    assert remove is not None

    assert (on._is_known(), remove._is_known()) == (False, True)
    followed.reason = ""
    assert on._is_known()


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_pods_that_cannot_be_kept_are_logged_with_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Callable[[OSError], None]] = []

    def note(_: Path, *, on_failure: Callable[[OSError], None]) -> SimpleNamespace:
        reports.append(on_failure)
        return SimpleNamespace(era=0)

    monkeypatch.setattr(serve_outputs, "PodFile", note)
    assert serve_outputs.pod_recorder("a.jsonl", {"audit_pods": True}) is not None
    with capture_logs() as logs:
        reports[0](OSError(28, "No space left on device"))

    (entry,) = logs
    assert (entry["log_level"], entry["event"]) == ("error", "pods of audit records cannot be kept")
    assert (entry["path"], entry["error"]) == ("a.jsonl", "[Errno 28] No space left on device")

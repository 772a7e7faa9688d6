"""The log and the metrics of a starting server, and its certificate errors."""

import math
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from certs.pki import issue_server
from tests.support.admission import policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.policy_objects import policy
from tests.support.servers.server import policies_of, utc_now, write_certificate, write_pair
from tests.support.views import made_anew
from webhook.audit.writer import AuditWriter
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput
from webhook.policy.loader import parse_policy
from webhook.policy.policy_documents import policy_text
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Settings
from webhook.serving.app import build_server, scoring
from webhook.serving.view.views import FixedView


def logs_and_metrics_of_the_start(folder: Path) -> tuple[list[Any], Metrics]:
    metrics = Metrics()
    with structlog.testing.capture_logs() as logs, AuditWriter(str(folder / "audit.jsonl")) as audit:
        build_server(Settings(tls_dir=folder), policies_of(policy_with(), metrics), None, audit, metrics)
    return logs, metrics


def test_a_new_certificate_of_thirty_days_is_in_order(tmp_path: Path) -> None:
    """`certs status` and doctor have the same rule: 30 days, or a sixth of the lifetime."""
    ca = write_certificate(tmp_path)
    write_pair(tmp_path, issue_server(ca, dns_names=["localhost"], now=utc_now(), validity=timedelta(days=30)))

    assert logs_and_metrics_of_the_start(tmp_path)[0] == []


@pytest.mark.parametrize(
    ("issued_ago", "logged"),
    [
        pytest.param(timedelta(days=-2), ("error", "the certificate is not valid yet"), id="of the day after tomorrow"),
        pytest.param(timedelta(days=0), None, id="new"),
        pytest.param(timedelta(days=334), None, id="31 days left"),
        pytest.param(timedelta(days=336), ("warning", "the certificate expires soon"), id="29 days left"),
        pytest.param(timedelta(days=366), ("error", "the certificate has expired"), id="expired"),
    ],
)
def test_an_unusable_certificate_is_logged(
    tmp_path: Path, issued_ago: timedelta, logged: tuple[str, str] | None
) -> None:
    write_certificate(tmp_path, issued_ago)

    logs, _ = logs_and_metrics_of_the_start(tmp_path)

    assert len(logs) == (0 if logged is None else 1)
    for log in logs:
        assert (log["log_level"], log["event"].partition(":")[0]) == logged
        assert log["not_after"].endswith("+00:00")
        assert "certs issue" in log["remedy"]


@dataclass
class _ViewWithoutNamespaces(FixedView):
    """A current live view of a cluster whose namespaces may not be listed."""

    is_live: bool = True
    has_namespaces: bool = False

    def snapshot(self) -> Snapshot:
        return Snapshot.of(())

    def age_seconds(self) -> float:
        return 0.0


def test_a_replica_with_policies_by_labels_is_not_ready_without_the_namespaces(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    policies, metrics = policies_of(policy_with()), Metrics()
    with AuditWriter(str(tmp_path / "audit.jsonl")) as audit:
        server = build_server(Settings(tls_dir=tmp_path), policies, _ViewWithoutNamespaces(), audit, metrics)
    policies.put_objects([parse_policy(policy_text(policy("team-a", "a")), "")])
    assert "the right to list and watch namespaces" in server._health._unready_reason()

    policies.put_objects([parse_policy(policy_text(policy("every", namespaceSelector={})), "")])
    assert server._health._unready_reason() == ""


def test_a_trusted_certificate_of_openssl_is_bad_input(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    path = tmp_path / "tls.crt"
    path.write_text(path.read_text().replace(" CERTIFICATE", " TRUSTED CERTIFICATE"))

    with pytest.raises(InvalidInput, match=r"--tls-dir: Invalid value: .*tls\.crt.*BEGIN CERTIFICATE"):
        logs_and_metrics_of_the_start(tmp_path)


@pytest.mark.slow
def test_no_admission_waits_for_a_module_of_numpy() -> None:
    script = "import sys, webhook.serving.server, numpy; known = {*sys.modules}; numpy.unique([1]); "
    script += "print(*({*sys.modules} - known))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "\n", "")


def test_what_alerts_look_at_is_there_from_the_start(tmp_path: Path) -> None:
    write_certificate(tmp_path)

    _, metrics = logs_and_metrics_of_the_start(tmp_path)

    shown = metrics.render().decode().splitlines()
    for labels in (
        *(f'admission_requests_total{{outcome="{outcome}",workload_type=""}}' for outcome in OUTCOMES),
        *(f'audit_records_total{{result="{result}"}}' for result in ("written", "failed", "omitted")),
        *(f'placement_verdicts_total{{verdict="{verdict}"}}' for verdict in VERDICTS),
        *(f'http_refused_requests_total{{code="{code}"}}' for code in (400, 404, 405, 408, 413, 415, 499, 500, 503)),
    ):
        assert f"placement_webhook_{labels} 0.0" in shown


def test_without_a_view_of_the_cluster_it_has_no_age(tmp_path: Path) -> None:
    write_certificate(tmp_path)

    _, metrics = logs_and_metrics_of_the_start(tmp_path)

    age_seconds = metrics.registry.get_sample_value("placement_webhook_cluster_age_seconds")
    assert age_seconds is not None
    assert math.isnan(age_seconds)


def test_the_view_and_the_pods_that_wait_are_read_at_each_scrape(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    policies, metrics = policies_of(policy_with()), Metrics()
    placing, view = scoring(policies), FixedView(made_anew([make_node_object("a")]))
    with AuditWriter(str(tmp_path / "audit.jsonl")) as audit:
        build_server(Settings(tls_dir=tmp_path), policies, view, audit, metrics, placing=placing)

    def shown(name: str, **labels: str) -> float:
        value = metrics.registry.get_sample_value(f"placement_webhook_{name}", labels)
        assert value is not None
        return value

    def waiting() -> list[float]:
        return [shown("waiting_pods", state=state) for state in ("reserved", "without_room")]

    assert [shown("cluster_nodes"), shown("cluster_pods"), shown("cluster_left_out_objects")] == [1, 0, 0]
    assert shown("cluster_age_seconds") < shown("cluster_age_seconds")
    assert waiting() == [0, 0]

    small, large = (make_pod(f"of-{cpu}").namespace("x").requests(cpu=cpu).obj() for cpu in ("1", "9999"))
    placing.waiting.settle(made_anew([make_node_object("a"), small, large]))
    assert waiting() == [1, 1]


def test_the_budget_of_each_cache_is_shown(tmp_path: Path) -> None:
    write_certificate(tmp_path)

    _, metrics = logs_and_metrics_of_the_start(tmp_path)

    start = 'placement_webhook_cache_budget_bytes{cache="'
    lines = [line.removeprefix(start) for line in metrics.render().decode().splitlines() if line.startswith(start)]
    mib = {name: float(value) / 1024**2 for name, _, value in (line.partition('"} ') for line in lines)}
    budgets = {"decisions": 11.25, "renderings": 0.75, "large_decisions": 6, "placements": 9.75}
    assert mib == pytest.approx(budgets, rel=1e-6)


OUTCOMES = ("Patched", "Unchanged", "Denied", "Bypassed", "Error")
VERDICTS = ("Feasible", "Waiting", "Infeasible", "Unknown")

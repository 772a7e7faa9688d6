"""The audit log of `serve`: its records, and the pods of the records."""

from pathlib import Path
from typing import Any

import click
import structlog

from webhook.audit.pods import PodFile
from webhook.audit.writer import STANDARD_OUTPUT, AuditWriter
from webhook.runtime.metrics import Metrics
from webhook.serving.clock import rfc3339_now
from webhook.serving.decisions.pod_recorder import PodRecorder


def audit_writer(path: str, metrics: Metrics, replica: str, settings: dict[str, Any]) -> AuditWriter:
    """Take the options of rotation out of `settings` and return the writer of the audit log."""
    return AuditWriter(
        path,
        max_bytes=settings.pop("audit_max_bytes"),
        backups=settings.pop("audit_backups"),
        keep_seconds=settings.pop("audit_keep_hours") * 3600,
        max_total_bytes=settings.pop("audit_max_total_bytes"),
        now=rfc3339_now,
        replica=replica,
        on_result=metrics.count_audit_record,
        on_dropped=lambda dropped: metrics.count_audit_drop(
            dropped.reason, dropped.files, dropped.bytes, dropped.records or 0
        ),
    )


def pod_recorder(path: str, settings: dict[str, Any]) -> PodRecorder | None:
    """Take the options of pods out of `settings` and return what keeps the pods of records; None if none are kept.

    Call it after `audit_writer`, which locks the audit file.

    Raises:
        click.UsageError: the records are printed, so there is no file beside which pods can be kept.
        InvalidInput: the file of the pods cannot be used.
    """
    max_bytes = settings.pop("audit_pods_max_bytes")
    if not settings.pop("audit_pods"):
        return None
    if path == STANDARD_OUTPUT:
        raise click.UsageError("--audit-pods keeps pods in FILE.pods: give --audit FILE, too.")

    def report(error: OSError) -> None:
        structlog.get_logger().error("pods of audit records cannot be kept", path=path, error=str(error))

    return PodRecorder(PodFile(Path(path), max_bytes, report))

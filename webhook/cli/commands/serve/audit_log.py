"""The audit log of `serve`: its records, and the pods of the records."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import structlog

from webhook.audit.pods import PodFile
from webhook.audit.writer import STANDARD_OUTPUT, AuditWriter
from webhook.runtime.metrics import Metrics
from webhook.serving.clock import rfc3339_now
from webhook.serving.decisions.pod_recorder import PodRecorder


def audit_writer(path: str, metrics: Metrics, replica: str, options: Mapping[str, Any]) -> AuditWriter:
    """Return the writer of the audit log, by the `options` of the command."""
    return AuditWriter(
        path,
        max_bytes=options["audit_max_bytes"],
        backups=options["audit_backups"],
        keep_seconds=options["audit_keep_hours"] * 3600,
        max_total_bytes=options["audit_max_total_bytes"],
        now=rfc3339_now,
        replica=replica,
        on_result=metrics.count_audit_record,
        on_dropped=lambda dropped: metrics.count_audit_drop(
            dropped.reason, dropped.files, dropped.bytes, dropped.records or 0
        ),
    )


def pod_recorder(path: str, options: Mapping[str, Any]) -> PodRecorder | None:
    """Return what keeps the pods of records, by the `options` of the command; None if none are kept.

    Call it after `audit_writer`, which locks the audit file.

    Raises:
        click.UsageError: the records are printed, so there is no file beside which pods can be kept.
        InvalidInput: the file of the pods cannot be used.
    """
    if not options["audit_pods"]:
        return None
    if path == STANDARD_OUTPUT:
        raise click.UsageError("--audit-pods keeps pods in FILE.pods: give --audit FILE, too.")

    def report(error: OSError) -> None:
        structlog.get_logger().error("pods of audit records cannot be kept", path=path, error=str(error))

    return PodRecorder(PodFile(Path(path), options["audit_pods_max_bytes"], report))

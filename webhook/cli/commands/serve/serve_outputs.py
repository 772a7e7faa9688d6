"""The outputs of `serve` other than responses: the audit log, the recorded pods, and the exported policy."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog

from certs.registration import Target
from webhook.audit.pods import PodFile
from webhook.audit.writer import BACKUPS, MAX_BYTES, STANDARD_OUTPUT, AuditWriter
from webhook.documents.documents import JsonObject
from webhook.kube.api.admission_policy import EXPORT_LEASE
from webhook.kube.release import Release
from webhook.policy.policy_set import PolicySet
from webhook.runtime.metrics import Metrics
from webhook.serving.clock import rfc3339_now
from webhook.serving.decisions.pod_recorder import PodRecorder
from webhook.serving.policies.cluster_policies import PolicySource
from webhook.serving.policies.in_force import Policies
from webhook.watch.api_server import Connect

if TYPE_CHECKING:
    from webhook.serving.exported.exported_policy import ExportedPolicy

EXPORT_MODES = ("off", "on", "remove")

# The least number of files that the total size has room for: the oldest one is deleted as a whole.
_FILES = 8


def audit_writer(path: str, metrics: Metrics, replica: str, options: Mapping[str, Any]) -> AuditWriter:
    """Return the writer of the audit log as the `options` of the command configure it."""
    total_bytes: int = options["audit_max_total_bytes"]
    max_bytes = max(1, min(MAX_BYTES, total_bytes // _FILES))
    return AuditWriter(
        path,
        max_bytes=max_bytes,
        # Files that have reached their age go before the total size is reached, which is an alert.
        backups=max(1, min(BACKUPS, total_bytes // max_bytes // 2)),
        max_total_bytes=total_bytes,
        now=rfc3339_now,
        replica=replica,
        on_result=metrics.count_audit_record,
        on_dropped=lambda dropped: metrics.count_audit_drop(
            dropped.reason, dropped.files, dropped.bytes, dropped.records or 0
        ),
    )


def pod_recorder(path: str, options: Mapping[str, Any]) -> PodRecorder | None:
    """Return the recorder of pods as the `options` of the command configure it, or None if pods are not recorded.

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

    return PodRecorder(PodFile(Path(path), on_failure=report))


def exported_policy(
    given: Mapping[str, Any],
    connect: Connect,
    policies: Policies,
    followed: PolicySource | None,
    metrics: Metrics,
    replica: str,
    webhook_configuration: str,
) -> "ExportedPolicy | None":
    """Return the exporter that keeps the exported policy equal to `policies`, or None if the export is off.

    `given` are the options of the command. `followed` is the source of `policies`.
    """
    mode = given["export_policy"]
    if mode == "off":
        return None
    # Not at the top: with what they import, they take 10 MiB.
    from webhook.admission import exported_policy as exporter
    from webhook.mutation.exported import Exported
    from webhook.serving.exported.exported_policy import ExportedPolicy, ExportOptions
    from webhook.watch.lease import LeaseOptions

    namespace = os.environ.get("POD_NAMESPACE") or Target().namespace
    lease = LeaseOptions(namespace, EXPORT_LEASE, replica)
    options = ExportOptions(lease, webhook_configuration)
    fault = metrics.feed_faults.inc
    if mode == "remove":
        nothing = Exported([], [], [])
        return ExportedPolicy(connect, policies.in_force, lambda: True, lambda *_: nothing, options, metrics, fault)
    is_known: Callable[[], bool] = lambda: followed is None or not followed.unready_reason()  # noqa: E731

    def export(in_force: PolicySet, release: Release, configuration: JsonObject | None) -> Exported:
        return exporter.exported_policy(in_force, release.minor, namespace, configuration)

    exported = ExportedPolicy(connect, policies.in_force, is_known, export, options, metrics, fault)
    policies.follow(exported.policy_changed)
    return exported

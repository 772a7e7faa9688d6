"""The options of `serve` by which a replica exports the policy to the API server."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from certs.registration import Target
from webhook.admission import exported_policy as exporter
from webhook.documents.documents import JsonObject
from webhook.kube.api.admission_policy import EXPORT_LEASE
from webhook.kube.release import Release
from webhook.mutation.exported import Exported
from webhook.policy.policy_set import PolicySet
from webhook.runtime.metrics import Metrics
from webhook.serving.exported.exported_policy import ExportedPolicy, ExportOptions
from webhook.serving.policies.cluster_policies import PolicySource
from webhook.serving.policies.in_force import Policies
from webhook.watch.api_server import Connect
from webhook.watch.lease import LeaseOptions

EXPORT_MODES = ("off", "on", "remove")


def exported_policy(
    given: Mapping[str, Any],
    connect: Connect,
    policies: Policies,
    followed: PolicySource | None,
    metrics: Metrics,
    replica: str,
    webhook_configuration: str,
) -> ExportedPolicy | None:
    """Return what keeps the exported policy in step with `policies`, which come from `followed`; None if it is off.

    `given` are the options of the command.
    """
    mode = given["export_policy"]
    if mode == "off":
        return None
    namespace = os.environ.get("POD_NAMESPACE") or Target().namespace
    lease = LeaseOptions(namespace, EXPORT_LEASE, replica)
    options = ExportOptions(lease, given["export_owner"], webhook_configuration)
    fault = metrics.feed_faults.inc
    if mode == "remove":
        nothing = Exported([], [])
        return ExportedPolicy(connect, policies.in_force, lambda: True, lambda *_: nothing, options, metrics, fault)
    is_known: Callable[[], bool] = lambda: followed is None or not followed.unready_reason()  # noqa: E731

    def export(in_force: PolicySet, release: Release, configuration: JsonObject | None) -> Exported:
        return exporter.exported_policy(in_force, release.minor, namespace, configuration)

    exported = ExportedPolicy(connect, policies.in_force, is_known, export, options, metrics, fault)
    policies.follow(exported.policy_changed)
    return exported

"""A webhook with a made cluster and the scheduler extender, in a process of its own."""

import sys
from pathlib import Path

from tests.support.objects.clusters import cluster_documents
from webhook.audit.writer import AuditWriter
from webhook.cli.output.logs import configure_logs
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.policy.loader import built_in_policy
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Address, Settings
from webhook.serving.app import build_server
from webhook.serving.clock import rfc3339_now
from webhook.serving.policies.in_force import Policies
from webhook.serving.server import serve_until_signalled
from webhook.serving.view.views import FixedView


def main() -> None:
    """Serve FOLDER PORT NODES PODS_PER_NODE [ADMIN_PORT]."""
    folder, (port, nodes, pods_per_node, *admin) = Path(sys.argv[1]), map(int, sys.argv[2:])
    configure_logs("text", "warning")
    snapshot = snapshot_from_documents(cluster_documents(nodes, pods_per_node))
    listen, admin_listen = Address("127.0.0.1", port), Address("127.0.0.1", *(admin or [0]))
    settings = Settings(
        tls_dir=folder, listen=listen, admin_listen=admin_listen, replica="bench", extender_profile="pack-gpus"
    )
    metrics = Metrics()
    policies = Policies(built_in_policy(), metrics, rfc3339_now)
    with AuditWriter(folder / f"audit-{nodes}.jsonl", on_result=metrics.count_audit_record) as audit:
        serve_until_signalled(build_server(settings, policies, FixedView(snapshot), audit, metrics))


if __name__ == "__main__":
    main()

"""The servers under load, each in a process of its own: the webhook, and a handler that does nothing."""

import asyncio
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from bench.clusters import cluster_documents
from webhook.app import build_server
from webhook.audit.writer import AuditWriter
from webhook.cli.logs import configure_logs
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.admission import ReviewAnswer
from webhook.metrics import Metrics
from webhook.policy.loader import built_in_policy
from webhook.serving import tls
from webhook.serving.clock import rfc3339_now
from webhook.serving.event_loop import serve_until_signalled
from webhook.serving.policies import Policies
from webhook.serving.view import FixedView
from webhook.settings import Address, Settings

# As large as what the webhook answers to the pods of this benchmark, so that both move the same bytes.
_ANSWER = ReviewAnswer.of([{"op": "add", "path": "/spec/affinity", "value": "x" * 1800}]).to("uid-0", "x" * 200)


async def _bare(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=_ANSWER, content_type="application/json")


async def _serve_bare(folder: Path, port: int) -> None:
    application = web.Application(client_max_size=4 * 1024 * 1024)
    application.router.add_post("/mutate", _bare)
    runner = web.AppRunner(application, access_log=None, keepalive_timeout=120)
    await runner.setup()
    await web.TCPSite(
        runner, "127.0.0.1", port, ssl_context=tls.server_context(tls.read_pair(folder)), backlog=1024
    ).start()
    await asyncio.Event().wait()


def main() -> None:
    """Serve `bare`, or `webhook` on so many nodes: KIND FOLDER PORT [NODES PODS_PER_NODE [ADMIN_PORT [PROOFS]]]."""
    kind, folder, port = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if kind == "bare":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve_bare(folder, port))
        return
    configure_logs("text", "warning")
    nodes, pods_per_node = int(sys.argv[4]), int(sys.argv[5])
    admin_port, prove_patches = map(int, (*sys.argv[6:8], *("0", "100")[len(sys.argv[6:8]) :]))
    snapshot = snapshot_from_documents(cluster_documents(nodes, pods_per_node))
    listen, admin_listen = Address("127.0.0.1", port), Address("127.0.0.1", admin_port)
    settings = Settings(
        tls_dir=folder,
        listen=listen,
        admin_listen=admin_listen,
        replica="bench",
        extender_profile="pack-gpus",
        prove_patches=prove_patches,
    )
    metrics = Metrics()
    policies = Policies(built_in_policy(), metrics, rfc3339_now)
    with AuditWriter(folder / f"audit-{nodes}.jsonl", on_result=metrics.count_audit_record) as audit:
        serve_until_signalled(build_server(settings, policies, FixedView(snapshot), audit, metrics))


if __name__ == "__main__":
    main()

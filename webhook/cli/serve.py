"""`serve`: run the admission webhook."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from webhook.app import build_server, scoring
from webhook.audit.writer import BACKUPS, KEEP_SECONDS, MAX_BYTES, AuditWriter
from webhook.cli.address import AddressType
from webhook.cli.clusters import read_cluster
from webhook.cli.files import FILE, last_policy_option
from webhook.cli.followed_policy import followed_policy, last_file, with_objects
from webhook.cli.logs import configure_logs
from webhook.cli.serve_options import log_options, security_options
from webhook.cli.serve_sources import configured_profiles, source_options
from webhook.cli.tracing_option import otlp_option
from webhook.events.recorder import EventRecorder
from webhook.metrics import Metrics
from webhook.placement.profile import PROFILES
from webhook.serving.event_loop import serve_until_signalled
from webhook.serving.live_view import live_view
from webhook.serving.predictions import Predictions
from webhook.serving.server import PolicySource
from webhook.serving.view import FixedView
from webhook.settings import Settings
from webhook.watch.api_server import ClientConfig

_DEFAULTS = Settings(tls_dir=Path())
_SECONDS = click.FloatRange(min=0)


@click.command(context_settings={"auto_envvar_prefix": "PLACEMENT_WEBHOOK"})
@click.option("--tls-dir", required=True, type=click.Path(path_type=Path), help="Folder with tls.crt and tls.key.")
@last_policy_option
@click.option(
    "--cluster", type=FILE, metavar="FILE", help="Check placement against this cluster file (see `check --help`)."
)
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), metavar="FILE", help="Check placement against this live cluster."
)
@click.option("--context", metavar="NAME", help="A context of the kubeconfig; alone, of $KUBECONFIG or ~/.kube/config.")
@click.option("--in-cluster", is_flag=True, help="Check placement against the live cluster of this pod.")
@click.option(
    "--events/--no-events",
    default=None,
    help="Write Kubernetes Events about pods that are denied or that no node can take.  [default: on with --kubeconfig "
    "or --in-cluster]",
)
@click.option("--no-cluster", is_flag=True, help="Do not check placement: only inject. The default.")
@click.option(
    "--extender-profile",
    type=click.Choice(["none", *PROFILES]),
    default=_DEFAULTS.extender_profile,
    show_default=True,
    help="Judge nodes for a kube-scheduler by this profile, at /extender/filter and /extender/prioritize.",
)
@click.option(
    "--audit", type=FILE, default="-", show_default=True, metavar="FILE|-", help="The audit log; - for standard output."
)
@click.option(
    "--audit-max-bytes",
    type=click.IntRange(min=0),
    default=MAX_BYTES,
    show_default=True,
    help="Rotate the audit file at this size; 0: never.",
)
@click.option(
    "--audit-backups",
    type=click.IntRange(min=1),
    default=BACKUPS,
    show_default=True,
    help="Rotated audit files to keep, regardless of age.",
)
@click.option(
    "--audit-keep-hours",
    type=click.FloatRange(min=0),
    default=KEEP_SECONDS / 3600,
    show_default=True,
    help="Keep more files than that while they are younger than this.",
)
@click.option(
    "--audit-max-total-bytes",
    type=click.IntRange(min=1),
    default=None,
    help="Maximum bytes of all audit files; above it the oldest are deleted, regardless of age.  [default: 4 GiB, and "
    "room for the backups]",
)
@click.option(
    "--listen", type=AddressType(), default=_DEFAULTS.listen, show_default=True, help="POST /mutate over TLS."
)
@click.option(
    "--admin-listen",
    type=AddressType(),
    default=_DEFAULTS.admin_listen,
    show_default=True,
    help="/healthz, /readyz and /metrics, without TLS; see --admin-token-file.",
)
@click.option(
    "--max-body-bytes",
    type=click.IntRange(min=1024),
    default=_DEFAULTS.max_body_bytes,
    show_default=True,
    help="Largest AdmissionReview.",
)
@click.option(
    "--max-in-flight-bytes",
    "max_bytes_in_flight",
    type=click.IntRange(min=1024),
    default=_DEFAULTS.max_bytes_in_flight,
    show_default=True,
    help="Maximum bytes of large AdmissionReviews at one time; further ones wait, then get 503.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    default=_DEFAULTS.max_connections,
    show_default=True,
    help="Maximum connections to the webhook port; above it the longest idle one is closed.",
)
@click.option(
    "--max-connections-per-address",
    type=click.IntRange(min=1),
    default=_DEFAULTS.max_connections_per_address,
    show_default=True,
    help="Maximum connections from one address, such as an API server.",
)
@click.option(
    "--read-timeout-seconds",
    type=_SECONDS,
    default=_DEFAULTS.read_timeout_seconds,
    show_default=True,
    help="Time limit for a request to arrive.",
)
@security_options
@source_options
@click.option(
    "--server-name",
    metavar="NAME",
    default="",
    help="Name by which API servers call, such as placement-webhook.NAMESPACE.svc; the server is ready only with a "
    "certificate for it.",
)
@click.option(
    "--certificate-poll-seconds",
    type=click.FloatRange(min=0.1, max=3600),
    default=_DEFAULTS.certificate_poll_seconds,
    show_default=True,
    help="Interval between checks for changed tls.crt and tls.key; a new pair is served without a restart.",
)
@click.option(
    "--policy-poll-seconds",
    type=click.FloatRange(min=0.1, max=3600),
    default=_DEFAULTS.policy_poll_seconds,
    show_default=True,
    help="Interval between checks for a changed policy file, which is used without a restart; SIGHUP reads it at once.",
)
@click.option(
    "--shutdown-delay-seconds",
    type=_SECONDS,
    default=_DEFAULTS.shutdown_delay_seconds,
    show_default=True,
    help="On SIGTERM, serve for this long while not ready.",
)
@click.option(
    "--grace-seconds",
    type=_SECONDS,
    default=_DEFAULTS.grace_seconds,
    show_default=True,
    help="Then wait for this long for requests in flight.",
)
@click.option(
    "--replica", default=None, help="Name of this replica in audit records.  [default: $POD_NAME, else the host name]"
)
@otlp_option
@log_options
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    tls_dir: Path,
    policy: tuple[Path, ...],
    cluster: str | None,
    kubeconfig: Path | None,
    context: str | None,
    in_cluster: bool,
    no_cluster: bool,  # noqa: ARG001 - read from the context
    events: bool | None,
    scheduler_config: str | None,
    policy_source: str,
    webhook_configuration: str,
    audit: str,
    replica: str | None,
    log_format: str,
    log_level: str,
    **settings: Any,
) -> None:
    """Serve the admission webhook over TLS until SIGTERM or SIGINT.

    Each flag has an environment variable: --tls-dir is PLACEMENT_WEBHOOK_TLS_DIR, and so on. A flag wins over the
    variables, one for the view of the cluster over all variables for it. Logs go to standard error.

    \b
    Examples:
      placement-webhook certs issue --dir tls --dns localhost --ip 127.0.0.1
      placement-webhook serve --tls-dir tls --no-cluster --audit audit.jsonl
    """
    view = _chosen_view(ctx)
    is_live = _is_live(view, events, settings["extender_profile"], policy_source)
    configure_logs(log_format, log_level)
    fixed = FixedView(read_cluster(cluster)) if cluster is not None and "cluster" in view else None
    metrics = Metrics()
    metrics.show_process()
    policies, file = followed_policy(last_file(policy), metrics, knows_labels=not view <= {"no_cluster"})
    profiles = configured_profiles(scheduler_config)
    followed: PolicySource | None = file
    predictions, live, recorder = Predictions(), None, None
    placing = scoring(policies, profiles, metrics.placement_seconds.observe)
    name = replica or os.environ.get("POD_NAME") or socket.gethostname()
    if is_live:
        source = ClientConfig(kubeconfig, in_cluster and "in_cluster" in view, context)
        asyncio.run(source.configuration())
        followed = with_objects(policy_source, source.connect, policies, file, metrics)
        live = live_view(source, metrics, predictions, placing.waiting, policies, followed, webhook_configuration)
        recorder = None if events is False else EventRecorder(source.connect, metrics, name)
    with _audit_writer(audit, metrics, settings) as writer:
        chosen = Settings(tls_dir=tls_dir, replica=name, cluster=_view_name(ctx, view), **settings)
        recorded, seen = predictions if live else None, live or fixed
        server = build_server(chosen, policies, seen, writer, metrics, recorded, recorder, placing, followed, profiles)
        serve_until_signalled(server, live, recorder)


def _audit_writer(path: str, metrics: Metrics, settings: dict[str, Any]) -> AuditWriter:
    """Take the options of rotation out of `settings` and return the writer of the audit log."""
    return AuditWriter(
        path,
        max_bytes=settings.pop("audit_max_bytes"),
        backups=settings.pop("audit_backups"),
        keep_seconds=settings.pop("audit_keep_hours") * 3600,
        max_total_bytes=settings.pop("audit_max_total_bytes"),
        on_result=metrics.count_audit_record,
        on_dropped=lambda dropped: metrics.count_audit_drop(
            dropped.reason, dropped.files, dropped.bytes, dropped.records or 0
        ),
    )


def _is_live(view: frozenset[str], events: bool | None, extender_profile: str, policy_source: str) -> bool:
    """Return whether the options of `view` select a live cluster, which `events` need.

    Raises:
        click.UsageError: there are to be Events without a live cluster, or an extender without any view.
    """
    if extender_profile != "none" and view <= {"no_cluster"}:
        raise click.UsageError("--extender-profile needs a view; give --in-cluster, --kubeconfig or --cluster, too.")
    is_live = "in_cluster" in view or "context" in view
    if events and not is_live:
        raise click.UsageError("--events needs a cluster to write to; give --in-cluster or --kubeconfig, too.")
    if policy_source == "crd" and not is_live:
        raise click.UsageError("--policy-source crd needs a live cluster; give --in-cluster or --kubeconfig, too.")
    return is_live


# The options that select a view of the cluster. Those of one group go together.
_VIEWS = (
    frozenset({"cluster"}),
    frozenset({"kubeconfig", "context"}),
    frozenset({"in_cluster"}),
    frozenset({"no_cluster"}),
)


def _chosen_view(ctx: click.Context) -> frozenset[str]:
    """Return the options of the view that the user has chosen, empty for none.

    Raises:
        click.UsageError: flags choose several views or, without a flag, environment variables do.
    """
    given = {name: ctx.get_parameter_source(name) for view in _VIEWS for name in view if ctx.params[name]}
    flags = {name for name, source in given.items() if source is ParameterSource.COMMANDLINE}
    chosen = [view for view in _VIEWS if view & (flags or given.keys())]
    if len(chosen) > 1:
        raise click.UsageError(
            "--cluster, --kubeconfig, --in-cluster and --no-cluster are mutually exclusive; give one of them."
        )
    return chosen[0] if chosen else frozenset()


def _view_name(ctx: click.Context, view: frozenset[str]) -> str:
    """Return the view of the cluster for the log, as the user has chosen it."""
    given = [f"{name} {ctx.params[name]}" for name in ("cluster", "kubeconfig", "context") if ctx.params[name]]
    if "in_cluster" in view:
        return "in-cluster"
    named = [each.replace("cluster ", "file ", 1) for each in given if each.partition(" ")[0] in view]
    return ", ".join(named) or "none"

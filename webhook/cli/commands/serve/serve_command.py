"""`serve`: run the admission webhook."""

import asyncio
import math
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import click
import structlog
from click.core import ParameterSource

from webhook.admission.cluster_view import scheduler_for
from webhook.admission.policy_cases import parse_tested_policies
from webhook.cli.commands.serve.serve_options import server_options
from webhook.cli.commands.serve.serve_outputs import audit_writer, exported_policy, pod_recorder
from webhook.cli.inputs.clusters import read_cluster
from webhook.cli.inputs.files import last_policy_option
from webhook.cli.inputs.profiles import read_profiles
from webhook.cli.output.logs import configure_logs
from webhook.documents.field import InvalidInput, forbidden
from webhook.events.recorder import EventRecorder
from webhook.kube.names import NAMESPACE_NAME_LABEL
from webhook.objects.policy_object import validated_policy
from webhook.placement.profiles.profile import Profile
from webhook.placement.waiting.pod_table import UNSEEN_SECONDS
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import policy_set
from webhook.policy.policy_set import PolicySet
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Settings
from webhook.serving.app import Scoring, build_server, scoring
from webhook.serving.clock import rfc3339_now
from webhook.serving.http.request_head import RegisteredTimeout
from webhook.serving.observed.predictions import Predictions
from webhook.serving.policies.cluster_policies import ClusterPolicies, PolicySource
from webhook.serving.policies.in_force import Policies
from webhook.serving.policies.policy_file import PolicyFile, read_policy_file
from webhook.serving.policies.policy_status import Reported
from webhook.serving.server import serve_until_signalled
from webhook.serving.view.live_view import live_view
from webhook.serving.view.views import FixedView
from webhook.watch.api_server import ClientConfig, Connect

_LABELS = (
    "the labels of namespaces are not known without a view of the cluster: give --in-cluster, --kubeconfig or "
    f"--cluster, or select only by {NAMESPACE_NAME_LABEL}"
)
_RENAME = "give the default policy of the file another name"
_SETTINGS = {each.name for each in fields(Settings)}
# The options that select a view of the cluster. Those of one group go together.
_VIEWS = [frozenset(each.split()) for each in ("cluster", "kubeconfig context", "in_cluster", "no_cluster")]


@click.command(context_settings={"auto_envvar_prefix": "PLACEMENT_WEBHOOK"})
@click.option("--tls-dir", required=True, type=click.Path(path_type=Path), help="Folder with tls.crt and tls.key.")
@last_policy_option
@server_options
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
    no_events: bool,
    scheduler_config: str | None,
    policy_source: str,
    webhook_configuration: str,
    audit: str,
    log_level: str,
    **options: Any,
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
    is_live = _is_live(view, policy_source, options["export_policy"])
    configure_logs("auto", log_level)
    _check_clients(view, options)
    fixed = FixedView(read_cluster(cluster)) if cluster is not None and "cluster" in view else None
    metrics = Metrics()
    metrics.show_process()
    policies, file = followed_policy(_last_file(policy), metrics, knows_labels=not view <= {"no_cluster"})
    profiles = read_profiles(scheduler_config) or {}
    followed: PolicySource | None = file
    predictions, live, recorder, timeout, exported = Predictions(), None, None, RegisteredTimeout(), None
    placing = _scoring(policies, profiles, metrics, is_live)
    name = os.environ.get("POD_NAME") or socket.gethostname()
    if is_live:
        source = ClientConfig(kubeconfig, in_cluster and "in_cluster" in view, context)
        asyncio.run(source.read())
        recorder = None if no_events else EventRecorder(source.connect, metrics, name)
        followed = with_objects(source.connect, policies, file, metrics, recorder) if policy_source == "crd" else file
        bound = placing.bound if options["extender_profile"] != "none" else None
        live = live_view(
            source, metrics, predictions, placing.waiting, policies, followed, webhook_configuration, timeout, bound
        )
        exported = exported_policy(options, source.connect, policies, followed, metrics, name, webhook_configuration)
    with audit_writer(audit, metrics, name, options) as writer:
        recorded, seen, pods = predictions if live else None, live or fixed, pod_recorder(audit, options)
        settings = {name: options[name] for name in _SETTINGS & options.keys()}
        chosen = Settings(tls_dir=tls_dir, replica=name, cluster=_view_name(ctx, view), **settings)
        server = build_server(
            chosen, policies, seen, writer, metrics, recorded, recorder, placing, followed, profiles, timeout, pods
        )
        serve_until_signalled(server, live, recorder, exported)


def _scoring(policies: Policies, profiles: Mapping[str, Profile], metrics: Metrics, is_live: bool) -> Scoring:
    """Return the scoring of pods. With a live view, assumed pods that are not seen in the cluster expire."""
    return scoring(
        policies,
        profiles,
        metrics.placement_seconds.observe,
        unseen_seconds=UNSEEN_SECONDS if is_live else math.inf,
    )


def _check_clients(view: frozenset[str], options: Mapping[str, Any]) -> None:
    """Check the options of the extender, and warn if every client with a certificate of the CA may call the server."""
    client_ca = options["client_ca"]
    if client_ca is not None and not options["client_names"]:
        # A CA of the cluster signs for its users, too.
        remedy = "give --client-name, too, unless this CA signs only for the API servers"
        structlog.get_logger().warning("--client-ca without --client-name", ca=str(client_ca), remedy=remedy)
    if options["extender_profile"] == "none":
        return
    if view <= {"no_cluster"}:
        raise click.UsageError("--extender-profile needs a view; give --in-cluster, --kubeconfig or --cluster, too.")
    if client_ca is None and not options["extender_insecure"]:
        raise click.UsageError(
            "--extender-profile needs --client-ca, by which only kube-scheduler is answered; or give "
            "--extender-insecure, to answer every client that reaches the port."
        )


def _is_live(view: frozenset[str], policy_source: str, export_mode: str) -> bool:
    """Return whether the options of `view` select a live cluster. Raise a usage error if other options need one."""
    is_live = "in_cluster" in view or "context" in view
    needs = {
        "--policy-source crd needs a live cluster": policy_source == "crd",
        "--export-policy needs a live cluster": export_mode != "off",
    }
    for problem, is_asked in needs.items():
        if is_asked and not is_live:
            raise click.UsageError(f"{problem}; give --in-cluster or --kubeconfig, too.")
    return is_live


def _chosen_view(ctx: click.Context) -> frozenset[str]:
    given = {name: ctx.get_parameter_source(name) for view in _VIEWS for name in view if ctx.params[name]}
    flags = {name for name, source in given.items() if source is ParameterSource.COMMANDLINE}
    chosen = [view for view in _VIEWS if view & (flags or given.keys())]
    if len(chosen) > 1:
        raise click.UsageError(
            "--cluster, --kubeconfig, --in-cluster and --no-cluster are mutually exclusive; give one of them."
        )
    return chosen[0] if chosen else frozenset()


def _view_name(ctx: click.Context, view: frozenset[str]) -> str:
    given = [f"{name} {ctx.params[name]}" for name in ("cluster", "kubeconfig", "context") if ctx.params[name]]
    if "in_cluster" in view:
        return "in-cluster"
    named = [each.replace("cluster ", "file ", 1) for each in given if each.partition(" ")[0] in view]
    return ", ".join(named) or "none"


def _last_file(paths: Sequence[Path]) -> Path | None:
    *others, last = paths or (None,)
    if others:
        ignored = [str(each) for each in others]
        structlog.get_logger().warning("--policy is given several times", used=str(last), ignored=ignored)
    return last


def followed_policy(path: Path | None, metrics: Metrics, *, knows_labels: bool) -> tuple[Policies, PolicyFile | None]:
    """Return the initial policies, and the policy file to follow, or None for the built-in policy.

    `knows_labels` is true if there is a view of the cluster, which has the labels of namespaces.

    Raises:
        InvalidInput: a document of the file is not a valid PlacementPolicy, a test case fails, or the policies cannot
            be in force together.
    """
    if path is None:
        return Policies(built_in_policy(), metrics, rfc3339_now), None
    text, validated = read_policy_file(path), partial(_validated_file, knows_labels=knows_labels)
    policies = Policies(validated(text, str(path)), metrics, rfc3339_now, source=f"file {path}")
    return policies, PolicyFile(path, text, policies, validated)


def with_objects(
    connect: Connect,
    policies: Policies,
    file: PolicyFile | None,
    metrics: Metrics,
    recorder: EventRecorder | None = None,
) -> PolicySource:
    """Return a source of policies: the PlacementPolicy objects, then `file`. `recorder` gets rejected objects."""
    policies.follow(partial(_warn_of_equal_names, policies))
    fault = metrics.feed_faults.inc
    on_rejected: Reported = recorder.report_on if recorder else lambda *_: None
    return ClusterPolicies(connect, policies, validated_policy, rfc3339_now, file, fault, on_rejected=on_rejected)


def _warn_of_equal_names(policies: Policies, default: Policy) -> None:
    """Warn about an object with the name of the file's default policy."""
    other = policies.in_force().with_name_of_default()
    if other is not None:
        log = structlog.get_logger()
        log.warning("two policies have one name", default=default.identity, other=other.identity, error=_RENAME)


def _validated_file(text: bytes, place: str, *, knows_labels: bool) -> PolicySet:
    """Return the policies in `text`, after their test cases have passed and schedulers have been created for them."""
    found = parse_tested_policies(text, place)
    policies = policy_set(found)
    if policies.others and not knows_labels:
        selectors = {each.place: each.policy.spec.namespace_selector for each in found}
        read = [place for place, each in selectors.items() if each and not each.keys <= {NAMESPACE_NAME_LABEL}]
        if read:
            raise InvalidInput(forbidden(f"{place}: spec.namespaceSelector", _LABELS) for place in read)
    for each in policies:
        scheduler_for(each, cache_bytes=0)
    return policies

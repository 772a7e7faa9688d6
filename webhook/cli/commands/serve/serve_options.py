"""Options of `serve`."""

from pathlib import Path
from typing import Any

import click

from certs.registration import Target
from webhook.audit.writer import MAX_TOTAL_BYTES
from webhook.cli.commands.serve.serve_outputs import EXPORT_MODES
from webhook.cli.inputs.files import FILE, PATH, AddressType, Option, file_option, options
from webhook.placement.profiles.profile import PROFILES
from webhook.runtime.settings import Settings

_DEFAULTS = Settings(tls_dir=Path())
_SECONDS = click.FloatRange(min=0)


def _option(flag: str, kind: Any, text: str | None, default: Any, metavar: str | None = None) -> Option:
    return click.option(flag, type=kind, default=default, show_default=True, metavar=metavar, help=text)


def _setting(flag: str, kind: Any, text: str) -> Option:
    return _option(flag, kind, text, getattr(_DEFAULTS, flag.removeprefix("--").replace("-", "_")))


def _check_client_names(ctx: click.Context, _: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    if names and ctx.params.get("client_ca") is None:
        raise click.UsageError("--client-name needs --client-ca: without a CA, no name of a client is verified.")
    return names


_VIEW = (
    file_option("--cluster", help="Check placement against this cluster file (see `check --help`)."),
    file_option("--kubeconfig", kind=PATH, help="Check placement against this live cluster."),
    click.option(
        "--context",
        metavar="NAME",
        help="A context of the kubeconfig; without --kubeconfig, of $KUBECONFIG or ~/.kube/config.",
    ),
    click.option("--in-cluster", is_flag=True, help="Check placement against the live cluster of this pod."),
    click.option(
        "--no-events",
        is_flag=True,
        help="Write no Kubernetes Events about pods that are denied or that no node can take.",
    ),
    click.option("--no-cluster", is_flag=True, help="Do not check placement: only inject. The default."),
    _setting(
        "--extender-profile",
        click.Choice(["none", *PROFILES]),
        "Judge nodes for a kube-scheduler by this profile, at /extender/filter and /extender/prioritize. Needs "
        "--client-ca, or --extender-insecure.",
    ),
    click.option("--extender-insecure", is_flag=True, help="Answer every client that calls the extender."),
)
_AUDIT = (
    _option("--audit", FILE, "The audit log; - for standard output.", "-", "FILE|-"),
    _option(
        "--audit-max-total-bytes",
        click.IntRange(min=1),
        "Maximum bytes of all audit files; above it the oldest are deleted, regardless of age.",
        MAX_TOTAL_BYTES,
    ),
    click.option(
        "--audit-pods",
        is_flag=True,
        help="Keep what policies read of each pod in FILE.pods, once for equal pods, for `replay`.",
    ),
)
_LISTENER = (
    _setting("--listen", AddressType(), "POST /mutate over TLS."),
    _setting("--admin-listen", AddressType(), "/healthz, /readyz and /metrics, without TLS; see --admin-token-file."),
    _setting(
        "--max-connections-per-address",
        click.IntRange(min=1),
        "Maximum connections from one address, such as an API server.",
    ),
    file_option(
        "--client-ca",
        kind=PATH,
        is_eager=True,
        help="Require client certificates of the CAs in this file on the webhook port.  [default: none required]",
    ),
    click.option(
        "--client-name",
        "client_names",
        multiple=True,
        callback=_check_client_names,
        metavar="PATTERN",
        help="Take only client certificates with a CN or subject alternative name like this, such as "
        "kube-apiserver-*; may be repeated. Needs --client-ca.",
    ),
    file_option(
        "--admin-token-file",
        kind=PATH,
        help="Require the bearer token in this file on the admin port, except for /healthz and /readyz.",
    ),
)
_SOURCES = (
    file_option(
        "--scheduler-config",
        help="The KubeSchedulerConfiguration of the cluster's kube-scheduler. The profile of a pod's schedulerName "
        "predicts its node. Read once, at start.",
    ),
    _option(
        "--policy-source",
        click.Choice(["file", "crd"]),
        "crd: the PlacementPolicy objects of the live cluster, each for its namespaces; --policy is for the others.",
        "file",
    ),
    _option(
        "--export-policy",
        click.Choice(EXPORT_MODES),
        "on: one replica keeps MutatingAdmissionPolicies in the cluster with the main rules of this policy, which "
        "inject while no replica answers; remove: it removes them. Needs a live cluster, and the rights of "
        "deploy/overlays/exported.",
        "off",
    ),
    _option(
        "--webhook-configuration",
        str,
        "The MutatingWebhookConfiguration by whose selectors missed pods are counted.",
        Target().configuration,
        "NAME",
    ),
)
_LIFE = (
    click.option(
        "--server-name",
        metavar="NAME",
        default="",
        help="Name by which API servers call, such as placement-webhook.NAMESPACE.svc; the server is ready only with a "
        "certificate for it.",
    ),
    _setting("--shutdown-delay-seconds", _SECONDS, "On SIGTERM, serve for this long while not ready."),
    _option("--log-level", click.Choice(["debug", "info", "warning", "error"]), None, "info"),
)
# All options of `serve` but `--tls-dir` and `--policy`.
server_options = options(*_VIEW, *_AUDIT, *_LISTENER, *_SOURCES, *_LIFE)

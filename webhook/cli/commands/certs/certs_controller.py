"""`placement-webhook certs controller`: keep the certificates of an installation in order."""

import asyncio
import os
import socket
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import click

from certs.names import ServerNames
from certs.pki import CA_VALIDITY, SERVER_VALIDITY
from certs.plan import Rules
from certs.registration import Target, endpoint, manifest, names_to_serve, parse_endpoint
from webhook.cli.commands.certs.certs_options import (
    F,
    SeveralValues,
    cluster_options,
    name_options,
    names_given,
    service_option,
    url_option,
    webhook_rules_of,
)
from webhook.cli.inputs.files import AddressType, policy_option
from webhook.cli.output.logs import configure_logs
from webhook.runtime.settings import Address
from webhook.watch.api_server import ClientConfig

_RULES = Rules(ServerNames((), ()))
_DAY = timedelta(days=1)


def _days(flag: str, default: timedelta, help_text: str) -> Callable[[F], F]:
    days = click.FloatRange(min=0, min_open=True, max=36_500)
    return click.option(flag, type=days, default=default / _DAY, show_default=True, help=help_text)


def _seconds(flag: str, default: timedelta, help_text: str) -> Callable[[F], F]:
    seconds = click.FloatRange(min=0, max=86_400)
    return click.option(flag, type=seconds, default=default.total_seconds(), show_default=True, help=help_text)


@click.command(cls=SeveralValues)
@name_options
@cluster_options
@click.option(
    "--also-configuration",
    "others",
    multiple=True,
    metavar="NAME",
    help="Another MutatingWebhookConfiguration whose caBundle is maintained.",
)
@service_option
@url_option
@click.option(
    "--create-configuration",
    is_flag=True,
    help="Create the configuration as soon as the server is trusted, and add webhooks that it lacks.",
)
@policy_option
@click.option("--endpoint", "probe_at", metavar="HOST:PORT", help="Address to probe before the configuration is made.")
@_days("--ca-days", CA_VALIDITY, "Lifetime of a CA.")
@_days("--server-days", SERVER_VALIDITY, "Lifetime of a certificate.")
@_seconds("--trust-seconds", _RULES.trust_wait, "Time in which API servers read a changed caBundle.")
@_seconds("--propagation-seconds", _RULES.propagation_wait, "Time in which every replica reads a changed Secret.")
@click.option(
    "--admin-listen",
    type=AddressType(),
    default="127.0.0.1:8080",
    show_default=True,
    help="/healthz, /readyz and /metrics, without TLS.",
)
@click.option("--log-format", type=click.Choice(["auto", "text", "json"]), default="auto", show_default=True)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def controller(
    dns_names: tuple[str, ...],
    ip_addresses: tuple[str, ...],
    source: ClientConfig,
    target: Target,
    others: tuple[str, ...],
    create_configuration: bool,
    policy: Path | None,
    probe_at: str | None,
    ca_days: float,
    server_days: float,
    trust_seconds: float,
    propagation_seconds: float,
    admin_listen: Address,
    log_format: str,
    log_level: str,
) -> None:
    """Keep CA, server certificate and caBundle in order until SIGTERM or SIGINT.

    The controller issues, renews and rotates the certificates of one Secret, and writes their CAs to the caBundle of
    the webhook configurations. It repairs a deleted Secret and an edited caBundle. Several controllers at once are
    harmless. It changes no Secret of cert-manager or of other owners.

    \b
    Examples:
      placement-webhook certs controller --in-cluster --create-configuration
      placement-webhook certs controller --kubeconfig ~/.kube/config
    """
    if probe_at is not None:
        parse_endpoint(probe_at, "")
    given = names_given(dns_names, ip_addresses) if dns_names or ip_addresses else None
    names = given or names_to_serve(target, endpoint(manifest(target)))
    rules = _rules(names, ca_days, server_days, trust_seconds, propagation_seconds)
    webhook_rules = webhook_rules_of(policy)
    configure_logs(log_format, log_level)
    # The other commands of the group serve no metrics.
    from certs.controller.loop import run_until_signalled
    from certs.controller.reconciler import Options

    instance = f"{os.environ.get('POD_NAME') or socket.gethostname()}"[:63] + f"-{uuid.uuid4().hex[:8]}"
    configurations = tuple(dict.fromkeys((target.configuration, *others)))
    options = Options(target, configurations, rules, instance, create_configuration, webhook_rules, probe_at)
    asyncio.run(run_until_signalled(options, admin_listen, source))


def _rules(
    names: ServerNames, ca_days: float, server_days: float, trust_seconds: float, propagation_seconds: float
) -> Rules:
    ca, server = timedelta(days=ca_days), timedelta(days=server_days)
    trust, propagation = timedelta(seconds=trust_seconds), timedelta(seconds=propagation_seconds)
    if ca < server:
        raise click.UsageError(f"--ca-days {ca_days:g} is less than --server-days {server_days:g}; make it as long.")
    if server / 3 <= trust + propagation:
        raise click.UsageError(
            "--server-days is too short: a third of it must be more than --trust-seconds and --propagation-seconds."
        )
    return Rules(names, ca, server, trust, propagation)

"""`placement-webhook certs controller`: keep the certificates of an installation in order."""

import os
import socket
import uuid
from datetime import timedelta
from pathlib import Path

import click

from certs.controller.options import Options
from certs.names import ServerNames, server_names, service_names
from certs.pki import CA_VALIDITY, SERVER_VALIDITY
from certs.registration import Target, endpoint, manifest, parse_endpoint
from certs.rotation.state import Rules
from webhook.cli.address import AddressType
from webhook.cli.certs_options import SeveralValues, cluster_options, coverage_of, name_options, names_given
from webhook.cli.files import policy_option
from webhook.cli.logs import configure_logs
from webhook.kube.field import InvalidInput
from webhook.settings import Address

_DEFAULTS = Target()
_RULES = Rules(ServerNames((), ()))
_DAYS = click.FloatRange(min=0, min_open=True, max=36_500)
_SECONDS = click.FloatRange(min=0, max=86_400)
_DAY = timedelta(days=1)


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
@click.option("--service", default=_DEFAULTS.service, show_default=True, help="Service in front of the webhook.")
@click.option("--url", help="https URL of a webhook outside the cluster, in place of the Service.")
@click.option(
    "--create-configuration",
    is_flag=True,
    help="Create the configuration as soon as the server is trusted, and add webhooks that it lacks.",
)
@policy_option
@click.option("--endpoint", "probe_at", metavar="HOST:PORT", help="Address to probe before the configuration is made.")
@click.option("--ca-days", type=_DAYS, default=CA_VALIDITY / _DAY, show_default=True, help="Lifetime of a CA.")
@click.option(
    "--server-days", type=_DAYS, default=SERVER_VALIDITY / _DAY, show_default=True, help="Lifetime of a certificate."
)
@click.option(
    "--trust-seconds",
    type=_SECONDS,
    default=_RULES.trust_wait.total_seconds(),
    show_default=True,
    help="Time in which API servers read a changed caBundle.",
)
@click.option(
    "--propagation-seconds",
    type=_SECONDS,
    default=_RULES.propagation_wait.total_seconds(),
    show_default=True,
    help="Time in which every replica reads a changed Secret.",
)
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
    kubeconfig: Path | None,
    context: str | None,
    in_cluster: bool,
    namespace: str,
    secret: str,
    configuration: str,
    others: tuple[str, ...],
    service: str,
    url: str | None,
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
    target = Target(namespace, secret, service, configuration, url)
    options = Options(
        target,
        tuple(dict.fromkeys((configuration, *others))),
        _rules(
            _wanted_names(target, dns_names, ip_addresses), ca_days, server_days, trust_seconds, propagation_seconds
        ),
        f"{os.environ.get('POD_NAME') or socket.gethostname()}"[:63] + f"-{uuid.uuid4().hex[:8]}",
        create_configuration,
        coverage_of(policy),
        probe_at,
    )
    if probe_at is not None:
        parse_endpoint(probe_at, "")
    configure_logs(log_format, log_level)
    # The other commands of the group need neither an event loop nor a second client.
    from certs.controller.process import run_until_signalled

    run_until_signalled(options, admin_listen, kubeconfig=kubeconfig, context=context, in_cluster=in_cluster)


def _wanted_names(target: Target, dns_names: tuple[str, ...], ip_addresses: tuple[str, ...]) -> ServerNames:
    """Return the given names; without any, those of the Service or the host of the url."""
    if dns_names or ip_addresses:
        return names_given(dns_names, ip_addresses)
    if not target.url:
        return server_names(service_names(target.service, target.namespace))
    host = endpoint(manifest(target)).server_name
    try:
        return server_names([], [host])
    except InvalidInput:
        return server_names([host])


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

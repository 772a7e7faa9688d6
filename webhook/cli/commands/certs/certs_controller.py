"""`placement-webhook certs controller` keeps certificates in order; `certs rotate` asks it for new ones."""

import asyncio
import os
import socket
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from certs.cluster.client import Cluster, configuration_named, secret_of
from certs.inspection import read_key_material
from certs.names import ServerNames
from certs.pki import CA_VALIDITY, SERVER_VALIDITY
from certs.plan import Observed, Request, Rules, plan
from certs.registration import Target, endpoint_of, manifest, names_to_serve, parse_endpoint, trusted_certificates
from certs.secret import artifacts_in, is_owned, request_patch, requested_rotation
from webhook.cli.commands.certs.certs_options import (
    SeveralValues,
    cluster_options,
    name_options,
    names_given,
    run_in,
    service_option,
    url_option,
    webhook_rules_of,
)
from webhook.cli.inputs.files import AddressType, Option, policy_option
from webhook.cli.output.logs import configure_logs
from webhook.cli.output.terminal import echo
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, invalid, required
from webhook.runtime.settings import Address
from webhook.watch.api_server import ClientConfig

_RULES = Rules(ServerNames((), ()))
_DAY = timedelta(days=1)
_POLL_SECONDS = 0.5
_ATTEMPTS = 5


def _days(flag: str, default: timedelta, help_text: str) -> Option:
    days = click.FloatRange(min=0, min_open=True, max=36_500)
    return click.option(flag, type=days, default=default / _DAY, show_default=True, help=help_text)


def _seconds(flag: str, default: timedelta, help_text: str) -> Option:
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
    admin_listen: Address,
    log_format: str,
    log_level: str,
    **times: float,
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
    names = given or names_to_serve(target, endpoint_of(manifest(target)))
    rules = _rules(names, **times)
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


@click.command()
@cluster_options
@click.option("--ca", "of_ca", is_flag=True, help="Rotate the CA, and with it the server certificate.")
@click.option(
    "--timeout-seconds",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    help="Wait for this long until the new certificate is in the Secret. 0 does not wait.",
)
def rotate(source: ClientConfig, target: Target, of_ca: bool, timeout_seconds: float) -> None:
    """Request a new server certificate, or with --ca a new CA, and show the progress.

    The certs controller carries it out. API servers trust both CAs until no replica serves the old certificate.

    \b
    Example:
      placement-webhook certs rotate --ca --kubeconfig ~/.kube/config
    """
    wanted = Request.CA if of_ca else Request.SERVING

    async def work(cluster: Cluster) -> None:
        before = await _requested(cluster, target, wanted)
        echo(f"{target.secret_place}: rotation requested: {wanted}")
        if timeout_seconds and not await _is_shown(cluster, target, wanted, before, timeout_seconds):
            detail = "is not done in time; the log of the certs controller has the reason"
            raise InvalidInput([invalid(target.secret_place, str(wanted), detail)])

    run_in(source, work)


async def _requested(cluster: Cluster, target: Target, wanted: Request) -> JsonObject:
    """Write the request to the Secret, and return the Secret as it was before."""
    for _ in range(_ATTEMPTS):
        secret = await cluster.read(secret_of(target))
        if secret is None or not is_owned(secret):
            detail = "a Secret of the certs controller; without one, `placement-webhook certs register` renews"
            raise InvalidInput([required(target.secret_place, detail)])
        if await cluster.change(secret_of(target), request_patch(secret, wanted)):
            return secret
    raise InvalidInput([required(target.secret_place, "another client keeps changing it; try again")])


async def _is_shown(
    cluster: Cluster, target: Target, wanted: Request, before: JsonObject, timeout_seconds: float
) -> bool:
    """Print each next step of the controller until the rotation is done, and return true.

    Return false after the timeout.
    """
    deadline, shown = time.monotonic() + timeout_seconds, ""
    while True:
        now = datetime.now(UTC)
        secret = await cluster.read(secret_of(target))
        found = await cluster.read(configuration_named(target.configuration))
        if secret is not None and _is_done(secret, before, wanted, now):
            server = read_key_material(artifacts_in(secret), now).pair.server
            echo(f"tls.crt is renewed, valid until {server.not_valid_after_utc:%Y-%m-%d}" if server else "")
            return True
        line = _next_step(secret, found, now)
        if line != shown:
            echo(line)
            shown = line
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)


def _next_step(secret: JsonObject | None, configuration: JsonObject | None, now: datetime) -> str:
    if secret is None or not is_owned(secret):
        return "the Secret is gone, or has another owner"
    held, bundles = artifacts_in(secret), trusted_certificates([configuration] if configuration else [])
    names = read_key_material(held, now).pair.names
    step = plan(Observed(held, bundles, requested=requested_rotation(secret)), Rules(names), now)
    return f"next {step.action} within {step.wait.total_seconds():.0f} s: {'; '.join(step.reasons)}"


def _is_done(secret: JsonObject, before: JsonObject, wanted: Request, now: datetime) -> bool:
    """Return whether the Secret has a new usable pair and, if a rotation of the CA was requested, a new CA."""
    held, was = artifacts_in(secret), artifacts_in(before)
    keys = read_key_material(held, now)
    if requested_rotation(secret) is not None or keys.issuer is None or held.certificate == was.certificate:
        return False
    return wanted is Request.SERVING or (keys.issuer == keys.signer and held.ca_key != was.ca_key)

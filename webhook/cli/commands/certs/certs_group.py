"""`placement-webhook certs`: self-managed certificates, their registration in a cluster, and their status in files."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import yaml

from certs import directory as store
from certs.cluster.client import Cluster
from certs.cluster.register import Registration
from certs.cluster.register import register as register_in_cluster
from certs.inspection import inspect
from certs.plan import Action, Rules, carried_out, plan_at_once
from certs.registration import Target
from certs.registration import manifest as configuration_of
from certs.status import as_text, report
from webhook.cli.commands.certs.certs_controller import controller, rotate
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
from webhook.cli.inputs.files import PATH, PolicyFile, file_option, output_option, policy_option
from webhook.cli.output.program import SuggestingGroup
from webhook.cli.output.terminal import echo, echo_json, echo_lines
from webhook.watch.api_server import ClientConfig

_DEFAULTS = Target()
_DONE = {Action.ISSUE: "issued", Action.RENEW: "renewed", Action.KEEP: "kept"}


@click.group(cls=SuggestingGroup)
def certs() -> None:
    """Manage a CA and server certificate, their registration in a cluster, and their status in files."""


certs.add_command(controller)
certs.add_command(rotate)


@certs.command(cls=SeveralValues)
@click.option("--dir", "directory", type=PATH, required=True, help="For ca.crt, ca.key, tls.crt and tls.key.")
@name_options
@click.option("--force", is_flag=True, help="Issue a new CA and certificate regardless of the directory's content.")
@click.option("--discard-ca-key", is_flag=True, help="Keep no ca.key: this CA cannot sign or renew certificates again.")
def issue(
    directory: Path, dns_names: tuple[str, ...], ip_addresses: tuple[str, ...], force: bool, discard_ca_key: bool
) -> None:
    """Issue a CA and a server certificate into a directory, or renew the server certificate there.

    If you run it again, it changes nothing while the certificates are in order, far from expiry and for the same names.
    Otherwise it renews the server certificate with the same CA, so that clients which trust that CA do not change.

    \b
    Examples:
      placement-webhook certs issue --dir tls --dns placement-webhook.placement-webhook.svc
      placement-webhook certs issue --dir tls --dns localhost --ip 127.0.0.1 ::1
    """
    now = datetime.now(UTC)
    names = names_given(dns_names, ip_addresses)
    held = store.read(directory, may_be_absent=True)
    step = plan_at_once(inspect(held, now), now, names=names, replacing=force)
    step.check("--force replaces all four files, after which `certs register` has to be run again")
    issued = carried_out(step, held, Rules(names), now)
    store.write(directory, replace(issued, ca_key=None) if discard_ca_key else issued, held)
    current = inspect(store.read(directory), now)
    echo(f"{directory}: {_DONE[step.action]}: {'; '.join(step.reasons)}")
    if current.ca and current.server:
        echo(f"ca.crt   until {current.ca.not_valid_after_utc:%Y-%m-%d}")
        echo(f"tls.crt  until {current.server.not_valid_after_utc:%Y-%m-%d}, for {current.names}")


@certs.command(cls=SeveralValues)
@click.option("--dir", "directory", type=PATH, help="Certificates to register; default: those of the Secret.")
@name_options
@cluster_options
@service_option
@url_option
@click.option("--endpoint", metavar="HOST:PORT", help="Address to probe; default: the one that API servers call.")
@click.option("--wait-seconds", type=click.FloatRange(min=0), default=0.0, help="Repeat the probe for this long.")
@click.option("--require-probe", is_flag=True, help="Reject an endpoint that cannot be reached from here.")
@click.option("--skip-probe", is_flag=True, help="Register without probing the endpoint.")
@click.option(
    "--secret-first",
    is_flag=True,
    help="Write a missing or expired Secret before the probe: without it, the server cannot pass the probe.",
)
@click.option("--force", is_flag=True, help="Replace the Secret regardless of its content and its manager.")
@file_option(
    "--policy",
    cls=PolicyFile,
    kind=PATH,
    multiple=True,
    help="Call the webhooks for the kinds and the key domains of the policies in this file; default: a new "
    "configuration follows the built-in one, an existing one is kept.",
)
@click.option("--only-ca-bundle", is_flag=True, help="Add no webhooks to an existing configuration; keep its rules.")
@click.option("--dry-run", type=click.Choice(["none", "server"]), default="none", show_default=True)
def register(
    directory: Path | None,
    dns_names: tuple[str, ...],
    ip_addresses: tuple[str, ...],
    source: ClientConfig,
    target: Target,
    policy: Path | None,
    dry_run: str,
    **options: Any,
) -> None:
    """Write certificates to the Secret of the cluster and their CA to the caBundle of the webhook configuration.

    Without --dir, the certificates of the Secret are registered. If it has none or they are due, new ones are issued.
    The CA is added to the valid CAs of the caBundle, so that API servers always trust the server. Before anything is
    written, a TLS handshake verifies that the endpoint would be trusted. A configuration of an earlier version gets the
    webhooks that it lacks.

    \b
    Examples:
      placement-webhook certs register --dry-run server
      placement-webhook certs register --dir tls --url https://localhost:8443/mutate --dry-run server
    """
    if directory and (dns_names or ip_addresses):
        raise click.UsageError("--dir has a certificate with its names; leave --dns and --ip out.")
    if options["skip_probe"] and options["require_probe"]:
        raise click.UsageError("--skip-probe and --require-probe are mutually exclusive; give one of them.")
    artifacts = store.read(directory) if directory else None
    names = names_given(dns_names, ip_addresses) if dns_names or ip_addresses else None
    # The other options have the names of its fields.
    wanted = Registration(target, artifacts, names, webhook_rules=webhook_rules_of(policy), **options)
    is_dry = dry_run == "server"

    async def work(cluster: Cluster) -> None:
        async for step in register_in_cluster(cluster, wanted, datetime.now(UTC)):
            echo(step + (" (server dry run)" if is_dry else ""))

    run_in(source, work, dry_run=is_dry)


@certs.command()
@click.option("--dir", "directory", type=PATH, required=True, help="A directory of certificates.")
@click.option(
    "--least-days",
    type=click.IntRange(min=0),
    show_default="30, or a sixth of the lifetime if that is less",
    help="Fewer days left are a problem.",
)
@output_option
def status(directory: Path, least_days: int | None, output: str) -> None:
    """Print the status of the certificates of a directory. Exit with 2 if there is a problem.

    The certificates of a cluster are checked by `placement-webhook doctor`.

    \b
    Example:
      placement-webhook certs status --dir tls
    """
    least_left = None if least_days is None else timedelta(days=least_days)
    held, modes = store.read(directory), store.mode_errors(directory)
    document = report(f"directory {directory}", held, modes, datetime.now(UTC), least_left)
    if output == "json":
        echo_json(document)
    else:
        echo_lines(as_text(document))
        for problem in document["problems"]:
            echo(f"wrong: {problem}", err=True, fg="red")
    if not document["healthy"]:
        raise click.exceptions.Exit(2)


@certs.command()
@click.option("--namespace", default=_DEFAULTS.namespace, show_default=True)
@service_option
@click.option("--configuration", default=_DEFAULTS.configuration, show_default=True, help="Name of the object.")
@url_option
@policy_option
def manifest(namespace: str, service: str, configuration: str, url: str | None, policy: Path | None) -> None:
    """Print the MutatingWebhookConfiguration that `certs register` creates, without caBundle.

    With --policy, the webhooks are called for the kinds and key domains of all policies of the file. The output is also
    a patch for kustomize.

    \b
    Example:
      placement-webhook certs manifest --policy policy.yaml > webhooks.yaml
    """
    target = Target(namespace, service=service, configuration=configuration, url=url)
    printed = yaml.safe_dump(configuration_of(target, webhook_rules_of(policy)), sort_keys=False, width=120)
    echo_lines(printed)

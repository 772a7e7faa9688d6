"""`placement-webhook certs`: own certificates, their registration in a cluster, and how they stand."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from certs.inspection import CA_KEY, inspect
from certs.issuance import issue as issue_in_memory
from certs.names import ServerNames, server_names
from certs.plan import Action
from certs.register import Probing, Registration
from certs.register import register as register_in_cluster
from certs.registration import Target
from certs.status import Place, as_text, report
from certs.store import directory as store
from certs.store.cluster import ClusterError, artifacts_of, connect
from webhook.cli.terminal import say, say_json, say_lines

F = TypeVar("F", bound=Callable[..., Any])

_DIRECTORY = click.Path(path_type=Path)
_DEFAULTS = Target()
_DONE = {Action.ISSUE: "issued", Action.RENEW: "renewed", Action.KEEP: "kept"}


class _SeveralValues(click.Command):
    """A command whose `--dns` and `--ip` take one or more values each time: `--dns a b --dns c,d`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        flag: str | None = None
        for before, arg in zip([None, *args], args, strict=False):
            if arg.startswith("-"):
                flag = arg if arg in ("--dns", "--ip") else None
            elif flag and before != flag:
                spread.append(flag)
            spread.append(arg)
        return super().parse_args(ctx, spread)


def _name_options(command: F) -> F:
    command = click.option("--ip", "ip_addresses", metavar="IP…", multiple=True, help="IP addresses likewise.")(command)
    help_text = "DNS names that clients will ask for."
    return click.option("--dns", "dns_names", metavar="NAME…", multiple=True, help=help_text)(command)


def _cluster_options(command: F) -> F:
    """Which cluster, and what the objects in it are called."""
    for option in reversed(
        [
            click.option("--kubeconfig", type=_DIRECTORY, help="Default: $KUBECONFIG, else ~/.kube/config."),
            click.option("--context", help="A context of the kubeconfig; default: its current one."),
            click.option("--in-cluster", is_flag=True, help="The cluster this runs in, by the pod's service account."),
            click.option("--namespace", default=_DEFAULTS.namespace, show_default=True),
            click.option("--secret", default=_DEFAULTS.secret, show_default=True, help="Secret of the certificates."),
            click.option(
                "--configuration",
                default=_DEFAULTS.configuration,
                show_default=True,
                help="MutatingWebhookConfiguration whose caBundle is kept.",
            ),
        ]
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def _told_plainly() -> Iterator[None]:
    """What the API server refuses is for the caller to mend: exit code 2. That it does not answer is a fault: 1."""
    try:
        yield
    except ClusterError as error:
        say(f"Error: {error}", err=True)
        raise click.exceptions.Exit(2 if 400 <= error.code < 500 else 1) from error


@click.group()
def certs() -> None:
    """An own CA and server certificate, their registration in a cluster, and how they stand."""


@certs.command(cls=_SeveralValues)
@click.option("--dir", "directory", type=_DIRECTORY, required=True, help="For ca.crt, ca.key, tls.crt and tls.key.")
@_name_options
@click.option("--force", is_flag=True, help="Issue a new CA and certificate whatever is in the directory.")
@click.option("--discard-ca-key", is_flag=True, help="Keep no ca.key: nobody can sign with this CA again, nor renew.")
def issue(
    directory: Path, dns_names: tuple[str, ...], ip_addresses: tuple[str, ...], force: bool, discard_ca_key: bool
) -> None:
    """Issue a CA and a server certificate into a directory, or renew the latter there.

    Run again, it changes nothing while everything is in order, far from expiry and for the same names. Otherwise it
    renews the server certificate with the same CA, so that nothing which trusts that CA has to change.

    \b
    Examples:
      placement-webhook certs issue --dir tls --dns placement-webhook.placement-webhook.svc
      placement-webhook certs issue --dir tls --dns localhost --ip 127.0.0.1 ::1
    """
    now = datetime.now(UTC)
    names = _names(dns_names, ip_addresses)
    held = store.read_if_any(directory)
    issued = issue_in_memory(held, names, now, replace=force, keep_ca_key=not discard_ca_key)
    store.write(directory, issued.artifacts, remove=(CA_KEY,) if discard_ca_key else ())
    current = inspect(store.read(directory), now)
    say(f"{directory}: {_DONE[issued.action]}: {'; '.join(issued.reasons)}")
    if current.ca and current.server:
        say(f"ca.crt   until {current.ca.not_valid_after_utc:%Y-%m-%d}")
        say(f"tls.crt  until {current.server.not_valid_after_utc:%Y-%m-%d}, for {current.names}")


@certs.command(cls=_SeveralValues)
@click.option("--dir", "directory", type=_DIRECTORY, help="Certificates to register; default: those of the Secret.")
@_name_options
@_cluster_options
@click.option("--service", default=_DEFAULTS.service, show_default=True, help="Service in front of the webhook.")
@click.option("--url", help="https URL of a webhook outside the cluster, in place of the Service.")
@click.option("--endpoint", metavar="HOST:PORT", help="Where to probe; default: where the API server will call.")
@click.option(
    "--wait-seconds", type=click.FloatRange(min=0), default=0.0, help="How long to probe until it is trusted."
)
@click.option("--require-probe", is_flag=True, help="Refuse an endpoint that cannot be reached from here.")
@click.option("--skip-probe", is_flag=True, help="Register without asking who serves.")
@click.option(
    "--secret-first",
    is_flag=True,
    help="Write a Secret that is missing or has expired before the probe: its server cannot pass one without.",
)
@click.option("--force", is_flag=True, help="Replace the Secret whatever is in it and whoever keeps it.")
@click.option("--dry-run", type=click.Choice(["none", "server"]), default="none", show_default=True)
def register(
    directory: Path | None,
    dns_names: tuple[str, ...],
    ip_addresses: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    in_cluster: bool,
    namespace: str,
    secret: str,
    configuration: str,
    service: str,
    url: str | None,
    endpoint: str | None,
    wait_seconds: float,
    require_probe: bool,
    skip_probe: bool,
    secret_first: bool,
    force: bool,
    dry_run: str,
) -> None:
    """Put certificates into the cluster's Secret and their CA into the webhook configuration's caBundle.

    Without --dir, the Secret's own certificates are registered, and new ones are issued into it where it has none or
    they are due. The CA is put beside those that are there and still valid, so that servers and API servers agree at
    every moment. Before anything is written, a TLS handshake with the endpoint tells whether it would be trusted.

    \b
    Examples:
      placement-webhook certs register --dry-run server
      placement-webhook certs register --dir tls --url https://10.0.0.1:8443/mutate
    """
    if directory and (dns_names or ip_addresses):
        raise click.UsageError("--dir brings a certificate with its names; give no --dns or --ip beside it.")
    if skip_probe and require_probe:
        raise click.UsageError("--skip-probe and --require-probe exclude each other; give one of them.")
    wanted = Registration(
        Target(namespace, secret, service, configuration, url),
        store.read(directory) if directory else None,
        _names(dns_names, ip_addresses) if dns_names or ip_addresses else None,
        Probing(skip_probe, require_probe, wait_seconds, endpoint),
        force,
        secret_first,
    )
    with _told_plainly():
        cluster = connect(kubeconfig=kubeconfig, context=context, in_cluster=in_cluster, dry_run=dry_run == "server")
        for step in register_in_cluster(cluster, wanted, datetime.now(UTC)):
            say(step + (" (server dry run)" if dry_run == "server" else ""))


@certs.command()
@click.option("--dir", "directory", type=_DIRECTORY, help="A directory of certificates.")
@_cluster_options
@click.option(
    "--least-days", type=click.IntRange(min=0), default=30, show_default=True, help="Fewer left are a problem."
)
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(
    directory: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    in_cluster: bool,
    namespace: str,
    secret: str,
    configuration: str,
    least_days: int,
    output: str,
) -> None:
    """How the certificates of a directory, of the cluster, or of both stand. Exit code 2 where something is wrong.

    The cluster is asked if --kubeconfig, --context or --in-cluster says which, or if there is no --dir.
    """
    with _told_plainly():
        places: list[Place] = []
        found = None
        if directory:
            held, errors = store.read(directory), tuple(store.mode_errors(directory))
            places.append(Place(f"directory {directory}", held, True, errors))
        if kubeconfig or context or in_cluster or not directory:
            cluster = connect(kubeconfig=kubeconfig, context=context, in_cluster=in_cluster)
            kept = artifacts_of(cluster.secret(namespace, secret) or {})
            places.append(Place(f"Secret {namespace}/{secret}", kept, False))
            found = cluster.configuration(configuration) or {"metadata": {"name": configuration}}
    told = report(places, found, datetime.now(UTC), timedelta(days=least_days))
    if output == "json":
        say_json(told)
    else:
        say_lines(as_text(told))
        for problem in told["problems"]:
            say(f"wrong: {problem}", err=True, fg="red")
    if not told["healthy"]:
        raise click.exceptions.Exit(2)


def _names(dns_names: tuple[str, ...], ip_addresses: tuple[str, ...]) -> ServerNames:
    def spread(values: tuple[str, ...]) -> list[str]:
        return [each.strip() for value in values for each in value.split(",")]

    return server_names(spread(dns_names), spread(ip_addresses), dns_path="--dns", ip_path="--ip")

"""Options and helpers of the commands of `placement-webhook certs`."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from certs.cluster.client import TOO_MANY_REQUESTS, Cluster, connected
from certs.names import ServerNames, server_names
from certs.registration import Target
from certs.webhook_rules import WebhookRules
from webhook.cli.inputs.clusters import live_options
from webhook.cli.inputs.files import Command, options
from webhook.cli.inputs.policies import read_policies
from webhook.cli.output.terminal import echo
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig

T = TypeVar("T")

_DEFAULTS = Target()


class SeveralValues(click.Command):
    """A command whose `--dns` and `--ip` take one or more values each time: `--dns a b --dns c,d`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the flag repeated before each further value."""
        spread: list[str] = []
        flag: str | None = None
        for before, arg in zip([None, *args], args, strict=False):
            if arg.startswith("-"):
                flag = arg if arg in ("--dns", "--ip") else None
            elif flag and before != flag:
                spread.append(flag)
            spread.append(arg)
        return super().parse_args(ctx, spread)


name_options = options(
    click.option("--dns", "dns_names", metavar="NAME…", multiple=True, help="DNS names of the server certificate."),
    click.option("--ip", "ip_addresses", metavar="IP…", multiple=True, help="IP addresses of the server certificate."),
)
service_option = click.option(
    "--service", default=_DEFAULTS.service, show_default=True, help="Service in front of the webhook."
)
url_option = click.option("--url", help="https URL of a webhook outside the cluster, in place of the Service.")


def cluster_options(command: Command) -> Command:
    """Add the options that select a cluster and the names of the objects in it.

    The command gets them as a `ClientConfig` and a `Target`. The `Target` also has the values of `service_option` and
    `url_option` if the command has these options.
    """

    @functools.wraps(command)
    def called(*, kubeconfig: Path | None, context: str | None, in_cluster: bool, **others: Any) -> Any:
        names = {each.name: others.pop(each.name) for each in fields(Target) if each.name in others}
        return command(source=ClientConfig(kubeconfig, in_cluster, context), target=Target(**names), **others)

    add = options(
        live_options,
        click.option("--in-cluster", is_flag=True, help="The cluster of this pod, with its service account."),
        click.option("--namespace", default=_DEFAULTS.namespace, show_default=True),
        click.option("--secret", default=_DEFAULTS.secret, show_default=True, help="Secret of the certificates."),
        click.option(
            "--configuration",
            default=_DEFAULTS.configuration,
            show_default=True,
            help="MutatingWebhookConfiguration whose caBundle is maintained.",
        ),
    )
    return add(called)


def run_in(source: ClientConfig, work: Callable[[Cluster], Awaitable[T]], *, dry_run: bool = False) -> T:
    """Return the result of `work` in the cluster of `source`.

    Exit with 2 for an error that the caller can correct, and with 1 if the API server does not answer.
    """

    async def run() -> T:
        async with connected(source, dry_run=dry_run) as cluster:
            return await work(cluster)

    try:
        return asyncio.run(run())
    except ApiServerError as error:
        echo(f"Error: {error}", err=True)
        is_of_caller = 400 <= error.code < 500 and error.code != TOO_MANY_REQUESTS
        raise click.exceptions.Exit(2 if is_of_caller else 1) from error


def webhook_rules_of(policy: Path | None) -> WebhookRules | None:
    """Return the webhook rules for the policies in this file, or None if there is no file."""
    return None if policy is None else WebhookRules.of(read_policies((policy,)))


def names_given(dns_names: tuple[str, ...], ip_addresses: tuple[str, ...]) -> ServerNames:
    """Return the names of `--dns` and `--ip`, which also take lists with commas.

    Raises:
        InvalidInput: a name is invalid, or there is none.
    """

    def spread(values: tuple[str, ...]) -> list[str]:
        return [each.strip() for value in values for each in value.split(",")]

    return server_names(spread(dns_names), spread(ip_addresses), dns_path="--dns", ip_path="--ip")

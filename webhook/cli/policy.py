"""`policy`: check a file, print the schema, print a policy."""

from pathlib import Path

import click

from webhook.cli.clusters import live_options
from webhook.cli.files import policy_option, read_policy
from webhook.cli.mutate import to_yaml
from webhook.cli.terminal import echo, echo_json, echo_lines
from webhook.cluster.cache.resources import REQUIRED_RESOURCES
from webhook.placement.cluster_warnings import absent_schedulers_of
from webhook.policy.document import PolicyDocument
from webhook.policy.loader import load_policy
from webhook.policy.policy import Policy


@click.group()
def policy() -> None:
    """Check a policy file, print the JSON schema of policies, or a policy."""


@policy.command()
@click.argument("file", type=click.Path(path_type=Path))
@live_options
def check(file: Path, kubeconfig: Path | None, context: str | None) -> None:
    """Check that FILE is a valid PlacementPolicy. Otherwise, print all errors and exit with 2.

    With --kubeconfig or --context, also warn about schedulers that FILE names and that do not run in that cluster.
    """
    found = load_policy(file, "FILE")
    types = ", ".join(found.spec.workload_types)
    echo(f"{file}: valid: {found.identity}, workload types {types}")
    if kubeconfig is not None or context is not None:
        _warn_of_schedulers(file, found, kubeconfig, context)


def _warn_of_schedulers(file: Path, policy: Policy, kubeconfig: Path | None, context: str | None) -> None:
    # Imported here, so that a command on a file does not import the client.
    from webhook.cli.live import read_live_cluster

    snapshot = read_live_cluster(kubeconfig, context, REQUIRED_RESOURCES)
    for warning in absent_schedulers_of(policy.spec, snapshot):
        echo(f"Warning: {file}: {warning}", fg="yellow", err=True)


@policy.command()
def schema() -> None:
    """Print the JSON schema of a PlacementPolicy, for editors and other validators."""
    document = PolicyDocument.model_json_schema(by_alias=True)
    echo_json(document, indent=True)


@policy.command()
@policy_option
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def show(policy: Path | None, output: str) -> None:
    """Print a policy with all defaults; without --policy, the built-in policy."""
    found = read_policy(policy)
    document = found.document.model_dump(mode="json", by_alias=True)
    if output == "json":
        echo_json(document, indent=True)
        return
    echo(f"# {found.identity}")
    echo_lines(to_yaml(document))

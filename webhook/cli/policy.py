"""`policy`: check a file, print the schema, print a policy."""

from pathlib import Path

import click

from webhook.cli.files import policy_option, read_policy
from webhook.cli.mutate import to_yaml
from webhook.cli.terminal import echo, echo_json, echo_lines
from webhook.policy.document import PolicyDocument
from webhook.policy.loader import load_policy


@click.group()
def policy() -> None:
    """Check a policy file, print the JSON schema of policies, or a policy."""


@policy.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Check that FILE is a valid PlacementPolicy. Otherwise, print all errors and exit with 2."""
    found = load_policy(file, "FILE")
    types = ", ".join(found.spec.workload_types)
    echo(f"{file}: valid: {found.identity}, workload types {types}")


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

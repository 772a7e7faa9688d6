"""`policy`: check a file, run its test cases, print the schema, print a policy."""

from pathlib import Path

import click

from webhook.cli.clusters import live_options
from webhook.cli.files import FILE, STANDARD_INPUT, check_standard_input, read_text
from webhook.cli.mutate import to_yaml
from webhook.cli.policies import policies_option, read_policies
from webhook.cli.policy_test import test
from webhook.cli.terminal import echo, echo_json, echo_lines
from webhook.cluster.cache.resources import PRIORITY_CLASSES, REQUIRED_RESOURCES
from webhook.kube.field import InvalidInput
from webhook.placement.cluster_warnings import absent_schedulers_of, unfit_classes_of
from webhook.policy.document import PolicyDocument
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import PlacedPolicy, has_default, policy_set
from webhook.policy.policy_set import PolicySet
from webhook.policy_cases import parse_tested_policies


@click.group()
def policy() -> None:
    """Check or test a policy file, print the JSON schema of policies, or a policy."""


@policy.command()
@click.argument("files", type=FILE, metavar="FILE…", nargs=-1, required=True)
@live_options
@click.pass_context
def check(ctx: click.Context, files: tuple[str, ...], kubeconfig: Path | None, context: str | None) -> None:
    """Check that each FILE is a valid PlacementPolicy and its test cases pass. If not, print all errors; exit with 2.

    FILE can have several policies for --policy or as objects: a warning names those that would never be in force.
    FILE can be - for standard input. With --kubeconfig or --context, also warn about schedulers that a policy names and
    that do not run in that cluster, and about PriorityClasses that do not exist there.

    \b
    Examples:
      placement-webhook policy check policy.yaml
      placement-webhook policy show | placement-webhook policy check -
    """
    check_standard_input(*(("FILE", file) for file in files))
    valid: list[PlacedPolicy] = []
    good = 0
    for file in files:
        try:
            found = _read_valid(file)
        except InvalidInput as error:
            for each in error.errors:
                echo(f"Error: {each}", err=True)
        else:
            good += 1
            for one in found:
                valid.append(one)
                types = ", ".join(one.policy.spec.workload_types)
                echo(f"{one.file}: valid: {one.policy.identity}, workload types {types}")
    _warn_of_conflicts([each.policy for each in valid])
    if valid and (kubeconfig is not None or context is not None):
        _warn_of_cluster(valid, kubeconfig, context)
    if good < len(files) > 1:
        echo(f"{len(files) - good} of {len(files)} files are not valid", err=True)
    ctx.exit(0 if good == len(files) else 2)


def _read_valid(file: str) -> list[PlacedPolicy]:
    """Return the policies of the file, which can be in force together, be it as the objects of a cluster.

    Raises:
        InvalidInput: they cannot be; lists all errors.
    """
    found = parse_tested_policies(read_text(file, "FILE"), "<stdin>" if file == STANDARD_INPUT else file)
    policy_set(found, built_in_policy())
    if not has_default(found):
        text = "every policy has a namespaceSelector: right for PlacementPolicy objects, but --policy needs a default"
        echo(f"{found[0].file}: {text}", err=True)
    return found


def _warn_of_conflicts(policies: list[Policy]) -> None:
    """Warn of policies with a namespaceSelector that would never be in force together in a cluster."""
    selecting = [each for each in policies if each.spec.namespace_selector is not None]
    for warning in PolicySet.of(built_in_policy(), selecting).conflicts().values():
        echo(f"Warning: {warning}", fg="yellow", err=True)


def _warn_of_cluster(policies: list[PlacedPolicy], kubeconfig: Path | None, context: str | None) -> None:
    # Imported here, so that a command on a file does not import the client.
    from webhook.cli.live import read_live_cluster

    snapshot = read_live_cluster(kubeconfig, context, (*REQUIRED_RESOURCES, PRIORITY_CLASSES))
    for each in policies:
        spec = each.policy.spec
        for warning in (*absent_schedulers_of(spec, snapshot), *unfit_classes_of(spec, snapshot)):
            echo(f"Warning: {each.place}: {warning}", fg="yellow", err=True)


policy.add_command(test)


@policy.command()
def schema() -> None:
    """Print the JSON schema of a PlacementPolicy, for editors and other validators."""
    document = PolicyDocument.model_json_schema(by_alias=True)
    echo_json(document, indent=True)


@policy.command()
@policies_option
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def show(policies: tuple[Path, ...], output: str) -> None:
    """Print policies with all defaults, the default policy first; without --policy, the built-in policy."""
    found = read_policies(policies)
    for index, each in enumerate((found.default, *found.others)):
        document = each.document.model_dump(mode="json", by_alias=True)
        if output == "json":
            echo_json(document, indent=True)
            continue
        if index:
            echo("---")
        echo(f"# {each.identity}")
        echo_lines(to_yaml(document))

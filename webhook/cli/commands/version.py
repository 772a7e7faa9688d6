"""`version`: print the version of the program, and what it models."""

import platform

import click

from webhook import __version__
from webhook.cli.inputs.files import output_option
from webhook.cli.output.terminal import echo, echo_json
from webhook.kube.release import NEWEST, OLDEST
from webhook.policy.loader import built_in_policy
from webhook.policy.spec.document import API_VERSION


@click.command()
@output_option
def version(output: str) -> None:
    """Print the version of the program, the releases of Kubernetes that it models, and the built-in policy.

    \b
    Examples:
      placement-webhook version
      placement-webhook version -o json
    """
    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "kubernetes": f"1.{OLDEST} to 1.{NEWEST}",
        "policyApi": API_VERSION,
        "builtInPolicy": built_in_policy().identity,
    }
    if output == "json":
        echo_json(facts)
        return
    titles = ("placement-webhook", "Python", "Kubernetes, modelled", "policy API", "built-in policy")
    for title, text in zip(titles, facts.values(), strict=True):
        echo(f"{title} {text}")

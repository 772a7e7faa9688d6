"""`doctor`: report what is wrong with an installation, and how to mend it."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from certs.registration import Target
from placement_doctor.check import Check, Diagnosis, Severity, diagnose
from placement_doctor.cluster import Cluster
from placement_doctor.reader import Wanted, read_cluster
from placement_doctor.registry import CHECKS, POLICY_CHECKS
from webhook.cli.inputs.clusters import live_options
from webhook.cli.inputs.files import output_option
from webhook.cli.inputs.live import ask
from webhook.cli.inputs.policies import policies_option, read_policies
from webhook.cli.output.terminal import echo, echo_json
from webhook.documents.listing import plural
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig

_EXIT_CODES = {None: 0, Severity.INFO: 0, Severity.WARNING: 3, Severity.ERROR: 4}
_CHECK = click.Choice([each.id for each in CHECKS])
_TITLES = {Severity.ERROR: ("error", "red"), Severity.WARNING: ("warning", "yellow"), Severity.INFO: ("note", "cyan")}


@click.command()
@live_options
@click.option("--in-cluster", is_flag=True, help="The cluster of this pod, with its service account.")
@policies_option
@click.option(
    "--configuration",
    default=Target().configuration,
    show_default=True,
    help="MutatingWebhookConfiguration of the webhook.",
)
@click.option("--namespace", help="Namespace of the webhook; default: that of the Service in the configuration.")
@click.option("--service", help="Service of the webhook; default: that of the configuration.")
@click.option("--endpoint", metavar="HOST:PORT", help="Address to probe, such as a port-forward.")
@click.option("--trial-namespace", metavar="NAME", help="Namespace of the pod that is created on dry run.")
@click.option("--check", "only", metavar="ID", multiple=True, type=_CHECK, help="Run only this check; several times.")
@click.option("--skip", metavar="ID", multiple=True, type=_CHECK, help="Do not run this check; several times.")
@click.option("--policy-only", is_flag=True, help="Run the checks of policies against the cluster, as `policy check`.")
@click.option("--list", "lists", is_flag=True, help="Print the checks and what they read, and exit.")
@click.option(
    "--within-seconds",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    help="Read for at most this long; what was not read is a finding.",
)
@output_option
@click.pass_context
def doctor(
    ctx: click.Context,
    /,
    kubeconfig: Path | None,
    context: str | None,
    in_cluster: bool,
    policies: tuple[Path, ...],
    only: tuple[str, ...],
    skip: tuple[str, ...],
    policy_only: bool,
    lists: bool,
    output: str,
    **wanted: Any,
) -> None:
    """Report what is wrong with the installation in a cluster, and how to mend it.

    The cluster is read once, and nothing is changed: one pod is created on dry run. Exit code 0: no fault; 3: only
    warnings; 4: an error, which breaks the webhook or pods of users. What you have no right to read is a warning.

    \b
    Examples:
      placement-webhook doctor --context staging
      placement-webhook doctor --policy policy.yaml -o json
      placement-webhook doctor --check installed --check certs-controller
      placement-webhook doctor --skip answer --skip node-spelling
      placement-webhook doctor --endpoint localhost:8443    # kubectl port-forward service/... 8443:443
    """
    if policy_only and only:
        raise click.UsageError("--policy-only and --check are mutually exclusive; give one of them.")
    checks = _chosen(POLICY_CHECKS if policy_only else only, skip)
    if lists:
        _print_checks(checks, output)
        return
    if in_cluster and (kubeconfig is not None or context is not None):
        raise click.UsageError("--in-cluster and --kubeconfig or --context are mutually exclusive; give one of them.")
    given = read_policies(policies) if policies else None
    sources = frozenset(source for each in checks for source in each.needs)
    source = ClientConfig(kubeconfig, in_cluster, context)
    found = diagnose(_read(source, Wanted(policy=given, sources=sources, **wanted)), checks)
    if output == "json":
        healthy = found.worst in (None, Severity.INFO)
        findings = [{"check": each.check} | each._asdict() for each in found.findings]
        omitted = dict(found.omitted)
        echo_json({"healthy": healthy, "checks": list(found.checks), "findings": findings, "omitted": omitted})
    else:
        _print_diagnosis(found)
    ctx.exit(_EXIT_CODES[found.worst])


def _chosen(only: Iterable[str], skip: Iterable[str]) -> tuple[Check, ...]:
    """Return the checks to run, in the order of the registry."""
    wanted = set(only) or {each.id for each in CHECKS}
    checks = tuple(each for each in CHECKS if each.id in wanted - set(skip))
    if not checks:
        raise click.UsageError("--check and --skip leave no check; leave one of them out.")
    return checks


def _read(source: ClientConfig, wanted: Wanted) -> Cluster:
    try:
        return ask(source, partial(read_cluster, wanted=wanted), prints_name=True)
    except ApiServerError as error:
        echo(f"Error: {error}", err=True)
        raise click.exceptions.Exit(2 if 400 <= error.code < 500 else 1) from error


def _print_diagnosis(found: Diagnosis) -> None:
    """Print the findings, the errors first, and the number of findings of each severity."""
    for each in found.findings:
        title, colour = _TITLES[each.severity]
        echo(f"{title} [{each.check}] {each.where}", fg=colour)
        echo(f"  {each.what}")
        echo(f"  mend: {each.remedy}")
    for check, count in found.omitted.items():
        echo(f"and {count} more of [{check}]; --check {check} shows no more, mend the first ones")
    counts = {each: sum(finding.severity is each for finding in found.findings) for each in Severity}
    notes = plural(counts[Severity.INFO], "note") if counts[Severity.INFO] else ""
    checks = plural(len(found.checks), "check")
    if not (counts[Severity.ERROR] or counts[Severity.WARNING]):
        echo(f"no fault found ({checks})" + (f", {notes}" if notes else ""))
        return
    shown = [plural(counts[each], _TITLES[each][0]) for each in Severity if counts[each]]
    echo(f"{', '.join(shown)} ({checks})")


def _print_checks(checks: tuple[Check, ...], output: str) -> None:
    """Print the checks: the id, the fault that the check finds, and the sources that it reads."""
    if output == "json":
        shown = (
            {"id": each.id, "finds": each.meaning, "remedy": each.remedy, "reads": _reads(each)} for each in checks
        )
        echo_json([*shown])
        return
    for each in checks:
        echo(each.id, fg="cyan")
        echo(f"  finds: {each.meaning}")
        echo(f"  reads: {', '.join(_reads(each)) or 'what the other checks read'}")


def _reads(check: Check) -> list[str]:
    return sorted(each.title for each in check.needs)

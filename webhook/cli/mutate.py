"""`mutate`: print pods as the webhook would admit them, without a cluster or a server."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from webhook.cli.admission import admit_checked_document, check_patch, print_verdict
from webhook.cli.clusters import live_options, read_cluster_or_live, release_option
from webhook.cli.files import FILE, check_standard_input, pods_option
from webhook.cli.policies import policies_option, read_policies
from webhook.cli.terminal import echo, echo_json, echo_lines
from webhook.cli.workloads import Workload, print_misplaced, print_policy, read_pods, with_claims_of
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod_set import pod_name
from webhook.kube.release import Release
from webhook.kube.text import escaped_json, printable_lines
from webhook.kube.yaml_scalars import TAG, plain_tag
from webhook.pipeline import ClusterView, scheduler_for
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.policy.policy import Policy
from webhook.verdict import Bypassed, Denied, Patched, Verdict

_EXIT_UNKNOWN_PODS, _EXIT_DENIED = 2, 5


@click.command()
@pods_option
@policies_option
@click.option(
    "--cluster",
    type=FILE,
    metavar="FILE",
    help="The output of `kubectl get nodes,pods,namespaces -A -o json`, for namespace defaults and the check.",
)
@live_options
@release_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json", "patch", "diff"]),
    default="yaml",
    show_default=True,
    help="The mutated pods; the JSON patch of each pod, one a line, null for a denied pod; or the difference.",
)
@click.pass_context
def mutate(
    ctx: click.Context,
    filenames: tuple[str, ...],
    policies: tuple[Path, ...],
    cluster: str | None,
    kubeconfig: Path | None,
    context: str | None,
    release: Release | None,
    output: str,
) -> None:
    """Print pods as the webhook would admit them.

    A Deployment, Job and so on stand for the first pod of each of their templates. Each patch is proven before it is
    printed: it gives the pod that is printed, and removes nothing. The defaults of namespaces are read
    from a cluster only if you name one with --cluster, --kubeconfig or --context. Warnings go to standard error. Exit
    code 5: a pod would be denied.

    \b
    Examples:
      placement-webhook mutate -f pod.yaml -o diff
      kubectl get deployment web -o json | placement-webhook mutate -f - -o patch
    """
    check_standard_input(*(("--filename", filename) for filename in filenames), ("--cluster", cluster))
    rules = read_policies(policies)
    snapshot = None
    if (cluster, kubeconfig, context) != (None, None, None):
        snapshot = read_cluster_or_live(cluster, kubeconfig, context, release)
    _check_release(release, snapshot)
    workloads = read_pods(filenames, rules, snapshot)
    _warn_of_shadow(workloads)
    print_misplaced(workloads)
    pods = [each for each in workloads if each.pods is not None]
    views = _Views(snapshot)
    verdicts = [admit_checked_document(each.document, each.policy, views.of(each)) for each in pods]
    shown = 0
    for workload, verdict in zip(pods, verdicts, strict=True):
        print_policy(workload)
        print_verdict(workload.document, verdict, workload.located)
        if workload.note:
            echo(f"Warning: {workload.name}: {workload.note}", fg="yellow", err=True)
        if not isinstance(verdict, Denied):
            check_patch(workload.document, workload.policy, views.of(workload), verdict)
            _print(workload, verdict, output, first=shown == 0)
            shown += 1
        elif output == "patch":
            echo_json(None)
    for workload in workloads:
        if workload.pods is None:
            echo(f"Error: {workload.document.place}: {workload.owner}: {workload.note}", fg="red", err=True)
    if shown < len(pods):
        ctx.exit(_EXIT_DENIED)
    if len(pods) < len(workloads):
        ctx.exit(_EXIT_UNKNOWN_PODS)


def _warn_of_shadow(workloads: Iterable[Workload]) -> None:
    """Warn that the server would admit pods unchanged."""
    for policy, name in {each.policy: each.chosen_policy for each in workloads}.items():
        if policy.spec.mode == "shadow" or policy.spec.canary_percent < 100:
            place = f"{name}: spec.mode" if name else "spec.mode"
            text = f"{place} or spec.canaryPercent: the server leaves pods alone; this is the result for others"
            echo(f"Warning: {text}", fg="yellow", err=True)


def _check_release(release: Release | None, snapshot: Snapshot | None) -> None:
    if release is not None and snapshot is None:
        raise click.UsageError("--release is that of a cluster: name one with --cluster, --kubeconfig or --context.")


class _Views:
    """The views of a cluster, each with the schedulers of a policy; None without a cluster."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        self._snapshot = snapshot
        self._schedulers: dict[Policy, BackendSchedulers] = {}

    def of(self, workload: Workload) -> ClusterView | None:
        """Return the view for the first pod of a template, with the claims that are created with it."""
        if self._snapshot is None:
            return None
        policy = workload.policy
        if policy not in self._schedulers:
            self._schedulers[policy] = scheduler_for(policy)
        return ClusterView(with_claims_of(workload, self._snapshot, 1), self._schedulers[policy])


def _print(workload: Workload, verdict: Verdict, output: str, *, first: bool) -> None:
    before = workload.document.content
    after = before if isinstance(verdict, Bypassed | Denied) else verdict.pod
    if output == "patch":
        operations = verdict.operations if isinstance(verdict, Patched) else []
        echo_json(operations)
    elif output == "json":
        echo_json(after)
    elif output == "yaml":
        echo_lines(("" if first else "---\n") + _comment(workload) + to_yaml(after))
    else:
        _print_diff(before, after)


def _comment(workload: Workload) -> str:
    """Return a comment with the object of the pod and the number of its pods; for a Pod nothing."""
    if not workload.owner or workload.pods is None:
        return ""
    replicas = workload.pods.replicas
    of_pods = "a pod on each node" if replicas is None else f"the first of {replicas} pods"
    return f"# {printable_lines(workload.title)}: {'the only pod' if replicas == 1 else of_pods}\n"


def _print_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    name = pod_name(before)
    colours = {"+": "green", "-": "red", "@": "cyan"}
    lines = difflib.unified_diff(
        to_yaml(before).splitlines(),
        to_yaml(after).splitlines(),
        f"{name} (as written)",
        f"{name} (admitted)",
        lineterm="",
    )
    for line in lines:
        echo(line, fg=colours.get(line[:1]))


class _PlainDumper(yaml.SafeDumper):
    """Writes an object that occurs twice in full each time, without an anchor and an alias."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Return True."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # kubectl reads more texts as numbers and booleans than PyYAML, so PyYAML leaves some without quotes.
    style = None if plain_tag(text) == f"{TAG}str" else "'"
    # Only double quotes allow escapes.
    style = style if printable_lines(text) == text else '"'
    return dumper.represent_scalar(f"{TAG}str", text, style=style)


_PlainDumper.add_representer(str, _text)


def to_yaml(value: Any) -> str:
    """Return `value` as YAML in the order of its keys, with control characters as escapes."""
    return escaped_json(yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=120))

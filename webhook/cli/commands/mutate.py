"""`mutate`: print pods as the webhook would admit them, without a cluster or a server."""

from collections.abc import Callable, Iterable
from functools import cache

import click

from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Allowed, Verdict
from webhook.cli.inputs.clusters import live_options, release_option
from webhook.cli.inputs.files import file_option, output_choice
from webhook.cli.inputs.manifests import pods_options
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.inputs.workloads import Workload, print_policy, with_claims_of
from webhook.cli.output.program import FileCommand
from webhook.cli.output.terminal import echo, echo_json, echo_lines, warn
from webhook.cli.output.yaml_text import diff_lines, print_diff, to_yaml
from webhook.cli.predictions.admission import admit_checked_document, admitted_pod, print_verdict
from webhook.documents.field import InvalidInput
from webhook.documents.text import printable_lines
from webhook.kube.pod.pod_validation import check_complete, check_storable
from webhook.kube.shape import check_pod
from webhook.kube.workloads.pod_set import pod_name
from webhook.placement.scorer import Scorer
from webhook.policy.policy import Policy

_EXIT_UNKNOWN_PODS, _EXIT_DENIED = 2, 5


@click.command(cls=FileCommand)
@with_session(
    pods_options,
    policies_option,
    file_option(
        "--cluster",
        help="The output of `kubectl get nodes,pods,namespaces -A -o json`, for namespace defaults and the check.",
    ),
    live_options,
    release_option,
    output_choice(
        ["yaml", "json", "patch", "diff"],
        help="The mutated pods; the JSON patch of each pod, one a line, null for a denied or invalid one; or a diff.",
    ),
    needs_cluster=False,
)
def mutate(session: Session) -> int:
    """Print pods as the webhook would admit them.

    A Deployment, Job and so on stand for the first pod of each of their templates. The library jsonpatch applies each
    patch, as an API server applies it. The defaults of namespaces, and the policy in force, are read from a cluster
    only if you name one with --cluster, --kubeconfig or --context, or as a plugin of kubectl. Warnings go to standard
    error. Exit code 5: a pod would be denied.

    \b
    Examples:
      placement-webhook mutate -f pod.yaml -o diff
      kubectl get deployment web -o json | placement-webhook mutate -f - -o patch
    """
    if session.release is not None and not session.has_cluster:
        raise click.UsageError("--release is that of a cluster: name one with --cluster, --kubeconfig or --context.")
    workloads = session.workloads(session.snapshot if session.has_cluster else None)
    _warn_of_shadow(workloads)
    schedulers = cache(scheduler_for)
    pods = [each for each in workloads if each.pods is not None]
    # The views are not kept: each has the claims of the cluster again.
    verdicts = [_verdict(session, each, _view(session, each, schedulers)) for each in pods]
    shown = 0
    for workload, verdict in zip(pods, verdicts, strict=True):
        if verdict is not None:
            print_policy(workload)
            print_verdict(workload, verdict)
            if workload.note:
                warn(f"{workload.name}: {workload.note}")
        if verdict is None or isinstance(verdict, Denied):
            if session.output == "patch":
                echo_json(None)
            continue
        _warn_of_rejection(workload)
        _print(workload, verdict, session.output, first=shown == 0)
        shown += 1
    for workload in workloads:
        if workload.pods is None:
            echo(f"Error: {workload.document.place}: {workload.owner}: {workload.note}", fg="red", err=True)
    if any(isinstance(verdict, Denied) for verdict in verdicts):
        return _EXIT_DENIED
    return _EXIT_UNKNOWN_PODS if len(pods) < len(workloads) else 0


def _view(session: Session, workload: Workload, schedulers: Callable[[Policy], Scorer]) -> ClusterView | None:
    """Return the view for the first pod of a template, including its planned claims, or None without a cluster."""
    if not session.has_cluster:
        return None
    return ClusterView(with_claims_of(workload, session.snapshot, 1), schedulers(workload.policy))


def _verdict(session: Session, workload: Workload, view: ClusterView | None) -> Verdict | None:
    """Return the verdict on a pod. Return None for an invalid pod if the command continues with the other pods."""
    try:
        return admit_checked_document(workload.document, workload.policy, view)
    except InvalidInput as error:
        session.report(error.errors)
        return None


def _warn_of_rejection(workload: Workload) -> None:
    """Warn about a pod that the API server rejects whatever the webhook does."""
    try:
        check_pod(workload.document.content)
        check_storable(workload.document.content)
        if not workload.owner:
            check_complete(workload.document.content)
    except InvalidInput as error:
        warn(f"{workload.name}: the API server rejects this pod: {'; '.join(map(str, error.errors))}")


def _warn_of_shadow(workloads: Iterable[Workload]) -> None:
    for policy, name in {each.policy: each.chosen_policy for each in workloads}.items():
        if policy.spec.mode == "shadow" or policy.spec.canary_percent < 100:
            place = f"{name}: spec.mode" if name else "spec.mode"
            text = f"{place} or spec.canaryPercent: the server leaves pods alone; this is the result for others"
            warn(text)


def _print(workload: Workload, verdict: Allowed | Bypassed, output: str, *, first: bool) -> None:
    before = workload.document.content
    after = admitted_pod(workload.document, verdict)
    if output == "patch":
        echo_json(list(verdict.operations))
    elif output == "json":
        echo_json(after)
    elif output == "yaml":
        echo_lines(("" if first else "---\n") + _comment(workload) + to_yaml(after))
    else:
        print_diff(diff_lines(before, after, pod_name(before)))


def _comment(workload: Workload) -> str:
    if not workload.owner or workload.pods is None:
        return ""
    replicas = workload.pods.replicas
    of_pods = "a pod on each node" if replicas is None else f"the first of {replicas} pods"
    return f"# {printable_lines(workload.title)}: {'the only pod' if replicas == 1 else of_pods}\n"

"""`check`: report which node can take a pod, and why the others cannot."""

from pathlib import Path
from typing import Any

import click

from webhook.cli.admission import admit_document, print_verdict
from webhook.cli.check_text import Section, print_section, print_total, text_console
from webhook.cli.clusters import live_options, read_cluster_or_live
from webhook.cli.files import check_standard_input, pods_option, policy_option, read_pods, read_policy
from webhook.cli.mutate_hint import MutateHint
from webhook.cli.profiles import Schedulers, read_schedulers
from webhook.cli.terminal import echo_json
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import Document
from webhook.kube.field import InvalidInput
from webhook.kube.pod_templates import pod_name
from webhook.kube.shape import check_pod
from webhook.pipeline import ClusterView
from webhook.placement.framework.result import Placement, to_check_json
from webhook.placement.templates import template_nodes
from webhook.policy.policy import Policy
from webhook.verdict import Bypassed, Denied

_EXIT_WAITING, _EXIT_INFEASIBLE, _EXIT_DENIED = 3, 4, 5


@click.command()
@pods_option
@click.option(
    "--cluster",
    metavar="FILE",
    help="The output of `kubectl get nodes,pods,namespaces -A -o json` (or yaml); - for standard input. Default: the "
    "live cluster that kubectl would use.",
)
@live_options
@click.option(
    "--scheduler-profile",
    metavar="NAME",
    help="`default` (of kube-scheduler, the default) or `binpack` (MostAllocated). With --scheduler-config: one of its "
    "profiles; default: the schedulerName of each pod.",
)
@click.option(
    "--scheduler-config",
    metavar="FILE",
    help="A KubeSchedulerConfiguration, read as in kube-scheduler; - for standard input.",
)
@click.option("--mutate", "with_policy", is_flag=True, help="Apply the policy to the pods first, as the webhook does.")
@policy_option
@click.option(
    "--max-nodes",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Maximum nodes in a table of the text; the others are counted by reason.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def check(
    ctx: click.Context,
    filenames: tuple[str, ...],
    cluster: str | None,
    kubeconfig: Path | None,
    context: str | None,
    scheduler_profile: str | None,
    scheduler_config: str | None,
    with_policy: bool,
    policy: Path | None,
    max_nodes: int,
    output: str,
) -> None:
    """Report which node can take a pod now, and why the others cannot, with the messages of kube-scheduler.

    Each pod is evaluated as written, and as if it were the only pending pod. Exit code 0: every pod is Feasible; 3: a
    pod is Waiting or Unknown; 4: a pod is Infeasible; 5: a pod would be denied (--mutate).

    \b
    Examples:
      kubectl get nodes,pods,namespaces -A -o json > cluster.json
      placement-webhook check -f pod.yaml --cluster cluster.json
      placement-webhook check -f pod.yaml --context staging
    """
    files = [("--filename", filename) for filename in filenames]
    check_standard_input(*files, ("--cluster", cluster), ("--scheduler-config", scheduler_config))
    rules = read_policy(policy)
    schedulers = read_schedulers(scheduler_config, scheduler_profile, template_nodes(rules.spec.node_templates))
    snapshot = read_cluster_or_live(cluster, kubeconfig, context)
    pods = read_pods(filenames)
    hint = MutateHint(rules, snapshot, schedulers)
    answers: list[tuple[Document, Placement | Denied]] = []
    for document in pods:
        admitted = _admitted(document, rules, snapshot) if with_policy else document
        if isinstance(admitted, Denied):
            answers.append((document, admitted))
        else:
            placement = _place(admitted, schedulers, snapshot)
            answers.append((admitted, placement if with_policy else hint.suggested_first(document, placement)))
    hint.print_rest()
    console = text_console()
    for document, answer in answers:
        name = pod_name(document.content)
        if output == "json":
            echo_json(_json(name, answer))
        elif not isinstance(answer, Denied):
            reasons = schedulers.explain(document.content, snapshot)
            print_section(console, Section(name, answer, reasons), max_nodes)
    if output == "text" and len(pods) > 1:
        placements = [answer for _, answer in answers if not isinstance(answer, Denied)]
        denied = ["Refused"] * (len(answers) - len(placements))
        print_total(console, [*(placement.verdict for placement in placements), *denied])
    ctx.exit(max(_code(answer) for _, answer in answers))


def _json(name: str, answer: Placement | Denied) -> dict[str, Any]:
    """Return the line of a pod. A denied pod is not scheduled, but its line has the same keys."""
    if isinstance(answer, Denied):
        return to_check_json(name, Placement.unknown(answer.denial.message)) | {"verdict": "Refused"}
    return to_check_json(name, answer)


def _admitted(document: Document, policy: Policy, snapshot: Snapshot) -> Document | Denied:
    """Return the pod as the webhook would admit it, with the defaults of its namespace, or its denial."""
    verdict = admit_document(document, policy, ClusterView(snapshot, scorer=None))
    print_verdict(document, verdict)
    if isinstance(verdict, Denied):
        return verdict
    return document if isinstance(verdict, Bypassed) else Document(document.place, verdict.pod)


def _place(document: Document, schedulers: Schedulers, snapshot: Snapshot) -> Placement:
    try:
        check_pod(document.content)
        return schedulers.place(document.content, snapshot)
    except InvalidInput as error:
        raise InvalidInput(each.prefixed(document.place) for each in error.errors) from error


def _code(placement: Placement | Denied) -> int:
    if isinstance(placement, Denied):
        return _EXIT_DENIED
    if placement.verdict == "Feasible":
        return 0
    return _EXIT_INFEASIBLE if placement.verdict == "Infeasible" else _EXIT_WAITING

"""`check`: report which node can take a pod, and why the others cannot."""

from pathlib import Path

import click

from webhook.cli.check_text import print_section, print_total, text_console
from webhook.cli.clusters import cluster_option, live_options, read_cluster_or_live, release_option
from webhook.cli.files import check_standard_input, pending_option, pods_option
from webhook.cli.pending import place_pending_pods
from webhook.cli.policies import policies_option, read_policies
from webhook.cli.profiles import read_schedulers, scheduler_options
from webhook.cli.replica_check import Checks
from webhook.cli.terminal import echo_json
from webhook.cli.workloads import print_misplaced, read_pods
from webhook.kube.release import Release

_EXIT_CODES = {"Feasible": 0, "Waiting": 3, "Unknown": 3, "Infeasible": 4, "Refused": 5}


@click.command()
@pods_option
@cluster_option
@live_options
@release_option
@scheduler_options
@click.option("--mutate", "with_policy", is_flag=True, help="Apply the policy to the pods first, as the webhook does.")
@policies_option
@pending_option
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
    release: Release | None,
    scheduler_profile: str | None,
    scheduler_config: str | None,
    with_policy: bool,
    policies: tuple[Path, ...],
    pending: str,
    max_nodes: int,
    output: str,
) -> None:
    """Report which node can take a pod now, and why the others cannot, with the messages of kube-scheduler.

    Each pod or object is evaluated as written, and beside the pending pods of the cluster that come before it in the
    queue of kube-scheduler. The replicas of an object are placed one after the other. Exit code 0: every pod is
    Feasible; 3: a pod is Waiting or Unknown; 4: a pod is Infeasible; 5: a pod would be denied (--mutate).

    \b
    Examples:
      kubectl get nodes,pods,namespaces -A -o json > cluster.json
      placement-webhook check -f pod.yaml --cluster cluster.json
      placement-webhook check -f pod.yaml --context staging
    """
    files = [("--filename", filename) for filename in filenames]
    check_standard_input(*files, ("--cluster", cluster), ("--scheduler-config", scheduler_config))
    rules = read_policies(policies)
    schedulers = read_schedulers(scheduler_config, scheduler_profile, with_templates=True)
    snapshot = read_cluster_or_live(cluster, kubeconfig, context, release)
    workloads = read_pods(filenames, rules, snapshot)
    print_misplaced(workloads)
    queue = place_pending_pods(snapshot, schedulers.of(rules.default).for_pending(), counts=pending == "count")
    answers = Checks(snapshot, schedulers, with_policy, queue).answers(workloads)
    console = text_console()
    for answer in answers:
        if output == "json":
            echo_json(answer.to_json())
        elif not answer.refusal:
            print_section(console, answer.section, max_nodes)
    if output == "text" and len(answers) > 1:
        noun = "pod templates" if any(answer.workload.owner for answer in answers) else "pods"
        print_total(console, (answer.verdict for answer in answers), noun)
    ctx.exit(max(_EXIT_CODES[answer.verdict] for answer in answers))

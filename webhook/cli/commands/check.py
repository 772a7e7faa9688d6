"""`check`: report which node can take a pod, and why the others cannot."""

from collections import Counter
from collections.abc import Mapping, Sequence

import click
from rich.console import Console

from webhook.cli.inputs.clusters import cluster_option, live_options, release_option
from webhook.cli.inputs.files import output_option
from webhook.cli.inputs.manifests import pods_options
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.profiles import scheduler_options
from webhook.cli.inputs.session import (
    Session,
    max_nodes_option,
    pending_option,
    policy_or_as_written_option,
    with_session,
)
from webhook.cli.output.program import FileCommand
from webhook.cli.output.screen import Column, Row, coloured, marked, print_lines, print_table, text_console
from webhook.cli.output.terminal import echo, echo_json
from webhook.cli.predictions.checked_replicas import Answer
from webhook.cli.predictions.replica_check import Checks
from webhook.documents.field import BETWEEN_ERRORS
from webhook.documents.listing import plural, some

# In the order of the total.
_EXIT_CODES = {"Feasible": 0, "Waiting": 3, "Infeasible": 4, "Unknown": 3, "Refused": 5, "Invalid": 2}
_MOST_REASONS, _MOST_NAMES = 8, 3
Scored = Mapping[str, float]


@click.command(cls=FileCommand)
@with_session(
    pods_options,
    cluster_option,
    live_options,
    release_option,
    scheduler_options,
    policy_or_as_written_option,
    policies_option,
    pending_option,
    max_nodes_option("Maximum nodes in the table of those that can take a pod."),
    output_option,
    unbinds=True,
)
def check(session: Session) -> int:
    """Report which node can take a pod now, and why the others cannot, with the messages of kube-scheduler.

    The policy is applied to each pod or object first, as the webhook does. It is evaluated beside the pending pods of
    the cluster that come before it in the queue of kube-scheduler. The replicas of an object are placed one after the
    other. Exit code 0: every pod is Feasible; 2: the API server would reject a pod (Invalid); 3: a pod is Waiting or
    Unknown; 4: a pod is Infeasible; 5: a pod would be denied.

    \b
    Examples:
      kubectl get nodes,pods,namespaces -A -o json > cluster.json
      placement-webhook check -f pod.yaml --cluster cluster.json
      placement-webhook check -f pod.yaml --context staging
    """
    workloads = session.workloads(session.snapshot)
    answers = Checks.of(session).answers(workloads)
    console = text_console()
    for answer in answers:
        for fault in answer.faults:
            echo(f"Error: {fault}", err=True)
        if session.is_json:
            echo_json(answer.to_json())
        else:
            print_answer(console, answer, session.max_nodes)
    if not session.is_json and len(answers) > 1:
        _print_total(console, answers)
    codes = {_EXIT_CODES[answer.verdict] for answer in answers}
    return _EXIT_CODES["Invalid"] if _EXIT_CODES["Invalid"] in codes else max(codes, default=0)


def print_answer(console: Console, answer: Answer, max_nodes: int) -> None:
    """Print `answer` with at most `max_nodes` of the nodes that can take the pod, and the others by reason."""
    placement, policy = answer.placement, answer.workload.chosen_policy
    where = f" on [bold]{marked(placement.node)}[/bold]" if placement.node else ""
    console.print(f"[bold]{marked(answer.workload.name)}[/bold]: {coloured(answer.verdict)}{where}")
    if answer.verdict in ("Refused", "Invalid"):
        # Only the breaks between errors are ours: names can have others.
        print_lines(console, placement.message.split(BETWEEN_ERRORS))
        return
    without_pending, without_pods = some(answer.without_pending), some(answer.without_pods)
    lines = [
        policy and f"policy: {policy}",
        answer.replicas_text,
        f"the API server adds to it by {some(answer.completed_by)}" if answer.completed_by else "",
        "the running pod of this name counts as gone" if answer.replaced and not answer.workload.owner else "",
        f"{placement.feasible} of {placement.total} nodes can take it" if placement.total else "",
        placement.full_message,
        *answer.evictions,
        answer.preemption_note,
        *answer.overdue,
        *answer.gang_lines,
        answer.reserved.text,
        without_pending and f"would fit without the pods that wait before it: {without_pending}",
        without_pods and f"would fit if running pods were gone: {without_pods}",
        placement.deny_exemption and f"not sure: {placement.deny_exemption}",
        f"not looked at: {', '.join(placement.unmodelled)}" if placement.unmodelled else "",
    ]
    print_lines(console, lines)
    _print_nodes(console, answer, max_nodes)
    suggestions = ["suggestions:", *(f"  - {each}" for each in placement.suggestions)] if placement.suggestions else []
    bypass = answer.bypass and f"the webhook leaves it alone: {answer.bypass}"
    print_lines(console, [bypass, f"QoS class: {answer.qos_class}" if answer.qos_class else "", *suggestions])


def _print_total(console: Console, answers: Sequence[Answer]) -> None:
    noun = "pod templates" if any(answer.workload.owner for answer in answers) else "pods"
    counts = Counter(answer.verdict for answer in answers)
    parts = ", ".join(f"{counts[verdict]} {coloured(verdict)}" for verdict in _EXIT_CODES if counts[verdict])
    console.print(f"{counts.total()} {noun}: {parts}")


def _print_nodes(console: Console, answer: Answer, max_nodes: int) -> None:
    ranked = sorted(answer.placement.scores.items(), key=lambda item: (-item[1]["total"], item[0]))
    if nodes_for := answer.nodes_for:
        print_lines(console, [nodes_for])
    if scored := ranked[:max_nodes]:
        print_table(console, *_table(scored), indent=2)
    if left_out := len(ranked) - len(scored):
        console.print(f"  and {left_out} more that can take it")
    failing = list(answer.nodes_by_reasons.items())
    print_lines(console, (f"{_names(nodes)}: {reasons}" for reasons, nodes in failing[:_MOST_REASONS]))
    if others := failing[_MOST_REASONS:]:
        nodes = plural(sum(len(nodes) for _, nodes in others), "more node")
        console.print(f"  and {nodes} for {plural(len(others), 'other reason')}; -o json has all")


def _names(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) <= _MOST_NAMES else f"{len(nodes)} nodes"


def _table(scored: Sequence[tuple[str, Scored]]) -> tuple[list[Column], list[Row]]:
    plugins = list(dict.fromkeys(plugin for _, scores in scored for plugin in scores if plugin != "total"))
    columns = [Column("node", least=20), Column("total", is_number=True)]
    columns += [Column(plugin, is_number=True, drop=1 + _spread(plugin, scored)) for plugin in plugins]
    keys = ("total", *plugins)
    return columns, [Row([node, *(str(scores.get(key, "")) for key in keys)]) for node, scores in scored]


def _spread(plugin: str, scored: Sequence[tuple[str, Scored]]) -> int:
    """Return the difference between the highest and the lowest score of the plugin."""
    found = [scores.get(plugin, 0) for _, scores in scored]
    return int(max(found) - min(found))

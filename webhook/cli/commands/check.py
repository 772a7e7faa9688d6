"""`check`: report which node can take a pod, and why the others cannot."""

from collections import Counter
from collections.abc import Mapping, Sequence

import click
from rich.console import Console

from webhook.cli.inputs.clusters import cluster_option, live_options, release_option
from webhook.cli.inputs.files import output_option, pods_option
from webhook.cli.inputs.policies import policies_option
from webhook.cli.inputs.profiles import scheduler_options
from webhook.cli.inputs.session import (
    Session,
    max_nodes_option,
    mutate_option,
    pending_option,
    with_session,
)
from webhook.cli.output.screen import coloured, marked, print_lines, text_console
from webhook.cli.output.table import Column, Row, print_table
from webhook.cli.output.terminal import echo_json, some
from webhook.cli.predictions.replica_check import Answer, Checks

# In the order of the total.
_EXIT_CODES = {"Feasible": 0, "Waiting": 3, "Infeasible": 4, "Unknown": 3, "Refused": 5}
Scored = Mapping[str, float]


@click.command()
@with_session(
    pods_option,
    cluster_option,
    live_options,
    release_option,
    scheduler_options,
    mutate_option,
    policies_option,
    pending_option,
    max_nodes_option("Maximum nodes in a table of the text; the others are counted by reason."),
    output_option,
)
def check(session: Session) -> int:
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
    workloads = session.workloads(session.snapshot)
    answers = Checks.of(session).answers(workloads)
    console = text_console()
    for answer in answers:
        if session.is_json:
            echo_json(answer.to_json())
        elif not answer.refusal:
            print_answer(console, answer, session.max_nodes)
    if not session.is_json and len(answers) > 1:
        _print_total(console, answers)
    return max(_EXIT_CODES[answer.verdict] for answer in answers)


def print_answer(console: Console, answer: Answer, max_nodes: int) -> None:
    """Print `answer` with at most `max_nodes` nodes, the best first; the others are counted by reason."""
    placement, policy = answer.placement, answer.workload.chosen_policy
    where = f" on [bold]{marked(placement.node)}[/bold]" if placement.node else ""
    console.print(f"[bold]{marked(answer.workload.name)}[/bold]: {coloured(placement.verdict)}{where}")
    without_pending, without_pods = some(answer.without_pending), some(answer.without_pods)
    lines = [
        policy and f"policy {policy}",
        answer.replicas_text,
        f"{placement.feasible} of {placement.total} nodes can take it" if placement.total else "",
        placement.message,
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
    print_lines(console, [f"QoS class: {answer.qos_class}" if answer.qos_class else "", *suggestions])


def _print_total(console: Console, answers: Sequence[Answer]) -> None:
    """Print the number of pods with each verdict."""
    noun = "pod templates" if any(answer.workload.owner for answer in answers) else "pods"
    counts = Counter(answer.verdict for answer in answers)
    parts = ", ".join(f"{counts[verdict]} {coloured(verdict)}" for verdict in _EXIT_CODES if counts[verdict])
    console.print(f"{counts.total()} {noun}: {parts}")


def _print_nodes(console: Console, answer: Answer, max_nodes: int) -> None:
    ranked = sorted(answer.placement.scores.items(), key=lambda item: (-item[1]["total"], item[0]))
    failing = sorted(answer.reasons.items(), key=lambda item: (item[1], item[0]))
    scored, failed = ranked[:max_nodes], failing[: max(max_nodes - len(ranked), 0)]
    if scored or failed:
        print_table(console, *_table(scored, failed), indent=2)
    if left_out := len(ranked) - len(scored):
        console.print(f"  and {left_out} more that can take it")
    reasons = Counter(", ".join(reasons) for _, reasons in failing[len(failed) :])
    by_count = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    print_lines(console, (f"and {count} more: {reason}" for reason, count in by_count))


def _table(
    scored: Sequence[tuple[str, Scored]], failed: Sequence[tuple[str, tuple[str, ...]]]
) -> tuple[list[Column], list[Row]]:
    """Return a table of the nodes that can take the pod with their scores, then of the others with their reasons."""
    plugins = list(dict.fromkeys(plugin for _, scores in scored for plugin in scores if plugin != "total"))
    columns = [Column("node", least=20)]
    if scored:
        columns.append(Column("total", is_number=True))
        columns += [Column(plugin, is_number=True, drop=1 + _spread(plugin, scored)) for plugin in plugins]
    if failed:
        columns.append(Column("why not", least=30, folds=True))
    rows = []
    for node, scores in scored:
        numbers = [str(scores["total"]), *(str(scores.get(plugin, "")) for plugin in plugins)]
        rows.append(Row([node, *numbers, *([""] if failed else [])]))
    blanks = [""] * (1 + len(plugins)) if scored else []
    rows += [Row([node, *blanks, ", ".join(reasons)], "dim" if scored else "") for node, reasons in failed]
    return columns, rows


def _spread(plugin: str, scored: Sequence[tuple[str, Scored]]) -> int:
    """Return how far the scores of the plugin are apart: the plugin decides little if they are close."""
    found = [scores.get(plugin, 0) for _, scores in scored]
    return int(max(found) - min(found))

"""`check`: which node could take a pod, and why the others could not."""

from pathlib import Path

import click
import orjson
from rich.console import Console
from rich.table import Table

from webhook.cli.admission import judge_document, remark
from webhook.cli.files import STANDARD_INPUT, pods_option, policy_option, read_cluster, read_pods, read_policy
from webhook.kube.documents import Document
from webhook.kube.field import InvalidInput
from webhook.kube.shape import check_pod
from webhook.kube.workload import pod_name
from webhook.pipeline import Cluster, Mutated
from webhook.placement.framework import Framework, Placement, Question, never
from webhook.placement.profile import PROFILES
from webhook.placement.result import to_check_json
from webhook.verdict import Denied

_EXIT_WAITING, _EXIT_INFEASIBLE, _EXIT_REFUSED = 3, 4, 5
_COLOURS = {"Feasible": "green", "Waiting": "yellow", "Infeasible": "red", "Unknown": "magenta"}


@click.command(short_help="Say which node could take a pod, and why the others could not.")
@pods_option
@click.option(
    "--cluster",
    required=True,
    metavar="FILE",
    help="What `kubectl get nodes,pods,namespaces -A -o json` (or yaml) prints; - for standard input.",
)
@click.option(
    "--scheduler-profile",
    type=click.Choice(["default", "binpack"]),
    default="default",
    show_default=True,
    help="kube-scheduler's default, or MostAllocated.",
)
@click.option(
    "--mutate", "through_policy", is_flag=True, help="Run the pods through the policy first, as the webhook does."
)
@policy_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def check(
    ctx: click.Context,
    filenames: tuple[str, ...],
    cluster: str,
    scheduler_profile: str,
    through_policy: bool,
    policy: Path | None,
    output: str,
) -> None:
    """Say which node could take a pod now, and why the others could not, in kube-scheduler's words.

    Each pod is judged as it stands, and as if it were the only one that waits. Exit code 0: every pod is Feasible; 3:
    some pod is Waiting or Unknown; 4: some pod is Infeasible; 5: some pod would be refused (--mutate).

    \b
    Examples:
      kubectl get nodes,pods,namespaces -A -o json > cluster.json
      placement-webhook check -f pod.yaml --cluster cluster.json
    """
    if STANDARD_INPUT in filenames and cluster == STANDARD_INPUT:
        raise click.UsageError("--filename and --cluster cannot both be standard input; put one of them into a file.")
    view = Cluster(read_cluster(cluster), Framework(PROFILES[scheduler_profile]))
    rules = read_policy(policy)
    pods = read_pods(filenames)
    codes = {0}
    placements: list[tuple[Document, Placement]] = []
    for document in pods:
        admitted = document
        if through_policy:
            verdict = judge_document(document, rules, view.snapshot)
            remark(document, verdict)
            if isinstance(verdict, Denied):
                codes.add(_EXIT_REFUSED)
                continue
            if isinstance(verdict, Mutated):
                admitted = Document(document.place, verdict.mutation.pod)
        placements.append((admitted, _place(admitted, view)))
    for document, placement in placements:
        name = pod_name(document.content)
        if output == "json":
            click.echo(orjson.dumps(to_check_json(name, placement)))
        else:
            _print_text(name, placement)
        codes.add(_code(placement))
    ctx.exit(max(codes))


def _place(document: Document, view: Cluster) -> Placement:
    try:
        check_pod(document.content)
        return view.scorer.answer(Question.of(document.content), view.snapshot, never)
    except InvalidInput as error:
        raise InvalidInput(each.under(document.place) for each in error.errors) from error


def _code(placement: Placement) -> int:
    if placement.verdict == "Feasible":
        return 0
    return _EXIT_INFEASIBLE if placement.verdict == "Infeasible" else _EXIT_WAITING


def _print_text(name: str, placement: Placement) -> None:
    console = Console(highlight=False, soft_wrap=True)
    colour = _COLOURS[placement.verdict]
    where = f" on [bold]{placement.node}[/bold]" if placement.node else ""
    console.print(f"[bold]{name}[/bold]: [{colour}]{placement.verdict}[/{colour}]{where}")
    console.print(f"  {placement.feasible} of {placement.total} nodes can take it")
    if placement.message:
        console.print(f"  {placement.message}", markup=False)
    if placement.unmodelled:
        console.print(f"  not looked at: {', '.join(placement.unmodelled)}")
    if placement.scores:
        console.print(_score_table(placement))


def _score_table(placement: Placement, most: int = 10) -> Table:
    plugins = list(
        dict.fromkeys(plugin for scores in placement.scores.values() for plugin in scores if plugin != "total")
    )
    ranked = sorted(placement.scores.items(), key=lambda item: (-item[1]["total"], item[0]))
    left_out = len(ranked) - most
    table = Table(
        "node", "total", *plugins, box=None, pad_edge=True, caption=f"and {left_out} more" if left_out > 0 else None
    )
    for node, scores in ranked[:most]:
        table.add_row(node, str(scores["total"]), *(str(scores.get(plugin, "")) for plugin in plugins))
    return table

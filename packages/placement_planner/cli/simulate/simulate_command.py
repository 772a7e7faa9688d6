"""`simulate`: run a trace of pods in virtual time under policies and scheduler profiles."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from placement_planner.cli.simulate.inputs import read_experiment
from placement_planner.cli.simulate.text import print_outcomes, svg
from placement_planner.simulation.arrival import Load, Mode
from placement_planner.simulation.outcome import Outcome
from placement_planner.simulation.sweep import Experiment, Run, simulated, swept
from webhook.cli.inputs.files import PATH, DurationType, check_standard_input, file_option, output_option
from webhook.cli.output.atomic_file import check_writable, write_atomically
from webhook.cli.output.screen import text_console
from webhook.cli.output.terminal import Progress, echo_json, warn
from webhook.documents.field import BETWEEN_ERRORS

# The largest of a PriorityClass that is not one of the system's.
_LARGEST_PRIORITY = 1_000_000_000


class _Plot(click.Path):
    """The file of an SVG on the command line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix not in ("", ".svg"):
            self.fail(f'"{value}" must end in .svg: the plot is an SVG', param, ctx)
        return path


_OUTPUT = _Plot(path_type=Path, dir_okay=False)


class _Priority(click.ParamType[tuple[str, int]]):
    """A workload type and a priority on the command line."""

    name = "TYPE=N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        workload_type, _, number = str(value).partition("=")
        try:
            priority = int(number)
        except ValueError:
            priority = _LARGEST_PRIORITY + 1
        if not workload_type or abs(priority) > _LARGEST_PRIORITY:
            self.fail(f'"{value}" must be a workload type and a priority such as inference=100', param, ctx)
        return workload_type, priority


@click.command()
@file_option(
    "--trace",
    required=True,
    help="A CSV with the columns arrival, duration, replicas, requests and annotations, an audit log of the API server "
    "at the level Request, or an audit file of `serve --audit-pods`; - for standard input.",
)
@file_option(
    "--cluster",
    required=True,
    help="The output of `kubectl get nodes,pods,namespaces -A -o json` (or yaml); - for standard input. Running pods "
    "stay; pending ones are left out.",
)
@file_option(
    "--policy",
    "policies",
    kind=PATH,
    multiple=True,
    help="A file of PlacementPolicies; each file is compared with the others. Default: the built-in policy.",
)
@click.option(
    "--scheduler-profile",
    "profiles",
    multiple=True,
    metavar="NAME",
    help="`default`, `binpack` or `pack-gpus`, or with --scheduler-config one of its profiles; each is compared with "
    "the others. Default: the schedulerName of each pod.",
)
@file_option("--scheduler-config", help="A KubeSchedulerConfiguration with the profiles.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, show_default=True, help="Run the seeds 1 to this.")
@click.option(
    "--arrivals",
    type=click.Choice(["trace", "fill", "random"]),
    default="trace",
    show_default=True,
    help="At the times of the trace; or in random order, one line a second, without an end, until they request --load "
    "of the cards; or drawn at random for --span, so that they use --load of the cards on average.",
)
@click.option("--load", type=click.FloatRange(1, 1000), default=100, show_default=True, help="Percent of the cards.")
@click.option("--span", type=DurationType(), default="24h", show_default=True, help="How long random pods arrive.")
@click.option("--lifetime", type=DurationType(), help="The mean lifetime of pods without a duration. Default: no end.")
@click.option("--preempt", "preempts", is_flag=True, help="Evict pods for others as kube-scheduler does.")
@click.option(
    "--priority",
    "priorities",
    type=_Priority(),
    multiple=True,
    help="The priority of the pods of a workload type that have neither a priority nor a PriorityClass. Default: 0.",
)
@output_option
@file_option("--plot", kind=_OUTPUT, help="Write an SVG of the cards allocated over time.")
@click.option("--processes", type=click.IntRange(1), help="Default: the processors of this machine.")
def simulate(
    trace: str,
    cluster: str,
    policies: tuple[Path, ...],
    profiles: tuple[str, ...],
    scheduler_config: str | None,
    seeds: int,
    arrivals: Mode,
    load: float,
    span: float,
    lifetime: float | None,
    preempts: bool,
    priorities: tuple[tuple[str, int], ...],
    output: str,
    plot: Path | None,
    processes: int | None,
) -> None:
    """Run a trace of pods in virtual time, and compare what each policy and scheduler profile does with it.

    The pods arrive, are admitted by the policy, wait in kube-scheduler's queue, are placed and end. Gangs start whole
    where their scheduler starts them so. Reported are the cards allocated over time, the waits, the pods that never
    find a node, and fragmentation. A cycle of the scheduler takes no time, and pods are not preempted without
    --preempt. A seed decides between nodes with equal scores, and on all that is random in arrivals and preemption.

    With --preempt, a single pod that no node can take evicts pods of lower priority if its scheduler is a
    kube-scheduler that preempts. They keep their cards for their grace period (30s if the trace has none), and their
    work is lost; the node is reserved for the pod meanwhile. A victim waits again at once, for its whole duration, if
    it has a controller, as all pods of a CSV have; others are lost, as are running pods of --cluster. Not modelled: a
    gang whole evicts no pod; gangs are evicted in part, since kube-scheduler knows none, and the others of the gang
    run on; batch schedulers evict nothing; PodDisruptionBudgets keep the status of --cluster.

    \b
    Examples:
      placement-webhook simulate --trace trace.csv --cluster cluster.json
      placement-webhook simulate --trace trace.csv --cluster cluster.json --policy policy.yaml -o json
      placement-webhook simulate --trace trace.csv --cluster cluster.json --scheduler-profile binpack --seeds 2
      placement-webhook simulate --trace trace.csv --cluster cluster.json --arrivals fill --plot allocated.svg
      placement-webhook simulate --trace trace.csv --cluster cluster.json --preempt --priority inference=100
    """
    check_standard_input(("--trace", trace), ("--cluster", cluster), ("--scheduler-config", scheduler_config))
    check_writable(plot, "--plot")
    way = Load(arrivals, load / 100, span, lifetime)
    experiment = read_experiment(trace, cluster, policies, profiles, scheduler_config, way)
    _check_types(priorities, experiment)
    experiment.priorities, experiment.preempts = dict(priorities), preempts
    runs = [
        Run(policy, profile, seed)
        for policy in range(len(experiment.policies))
        for profile in dict.fromkeys(profiles or ("",))
        for seed in range(1, seeds + 1)
    ]
    found = _outcomes(experiment, runs, processes)
    _warn(found)
    if plot is not None:
        write_atomically(plot, "--plot", lambda file: file.write(svg(found).encode()))
    if output == "text":
        print_outcomes(text_console(), found)
        return
    for each in found:
        echo_json({key: value for key, value in asdict(each).items() if key != "evictions" or preempts})


def _check_types(priorities: Iterable[tuple[str, int]], experiment: Experiment) -> None:
    """Raise a usage error for a priority of a workload type that no policy has."""
    types = {name for _, policies in experiment.policies for policy in policies for name in policy.spec.workload_types}
    for name, _ in priorities:
        if name not in types:
            known = ", ".join(sorted(types))
            raise click.BadParameter(f"no policy has the workload type '{name}': {known}", param_hint="'--priority'")


def _outcomes(experiment: Experiment, runs: Sequence[Run], processes: int | None) -> list[Outcome]:
    """Return the outcomes of `runs` in order, and show the progress on a terminal."""
    progress = Progress()
    workers = min(processes or len(os.sched_getaffinity(0)), len(runs))
    found: dict[Run, Outcome] = {}
    try:
        for run, outcome in _sweep(experiment, runs, workers, progress.show):
            found[run] = outcome
            progress.show(f"{len(found)} of {len(runs)} runs")
    finally:
        progress.end()
    return [found[run] for run in runs]


def _sweep(
    experiment: Experiment, runs: Sequence[Run], workers: int, show: Callable[[str], None]
) -> Iterator[tuple[Run, Outcome]]:
    if workers > 1:
        yield from swept(experiment, runs, workers)
    else:
        for number, run in enumerate(runs, start=1):
            yield run, simulated(experiment, run, partial(_show_arrivals, show, f"run {number} of {len(runs)}"))


def _show_arrivals(show: Callable[[str], None], run: str, done: int, total: int) -> None:
    show(f"{run}: {done} of {total} arrivals")


def _warn(outcomes: Sequence[Outcome]) -> None:
    """Warn about pods that were denied and plugins that were not evaluated, which the outcomes do not show."""
    for each in {each.policy: each for each in outcomes if each.denied}.values():
        denial = each.denial.replace(BETWEEN_ERRORS, "; ")
        warn(f"policy {each.policy} denies {each.denied} of {each.denied + each.pods} pods: {denial}")
    if unmodelled := sorted({name for each in outcomes for name in each.unmodelled}):
        warn(f"not evaluated, though a pod depends on it: {', '.join(unmodelled)}")

"""`replay`: report what another policy would decide on recorded admissions."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import click

from placement_planner.log_lines import skippable
from placement_planner.replay.admission import Admission
from placement_planner.replay.cluster_objects import admissions_of_objects
from placement_planner.replay.policy_comparison import Replay, Report
from placement_planner.replay_sources import ReplaySources
from placement_planner.replay_text import print_notes, print_patches, print_report
from webhook.admission.recorded_pod import kept_domains
from webhook.cli.inputs.clusters import live_options
from webhook.cli.inputs.files import FILE, PATH, NamesType, check_standard_input, file_option, output_choice
from webhook.cli.inputs.policies import read_policies
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.terminal import Progress, echo, echo_json, warn
from webhook.documents.field import FieldError, InvalidInput, required
from webhook.documents.listing import plural
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicySet

_EXIT_FAILED, _EXIT_INTERRUPTED = 7, 130
_BETWEEN_PROGRESS = 256

_FAILURES: dict[str, tuple[Callable[[Report], int], str]] = {
    "denied": (lambda report: report.refused, "would be refused"),
    "verdict": (lambda report: report.worse, "would have a worse verdict"),
    "any": (lambda report: report.changed, "would be decided otherwise"),
}


@click.command()
@click.argument("sources", type=FILE, metavar="[SOURCE...|-]", nargs=-1)
@with_session(
    file_option(
        "--policy",
        "policies",
        kind=PATH,
        multiple=True,
        required=True,
        help="The PlacementPolicy to try; several documents or files as for `mutate`.",
    ),
    file_option(
        "--against",
        kind=PATH,
        multiple=True,
        help="The policy to compare with. Default: the one in force in the live cluster; without one, the built-in "
        "policy if the records name it.",
    ),
    file_option(
        "--cluster",
        help="Also compare the verdicts on this cluster: the output of `kubectl get nodes,pods,namespaces -A -o json`. "
        "Without a SOURCE, its pods are the source, too.",
    ),
    live_options,
    click.option(
        "--fail-on",
        default="",
        type=NamesType(_FAILURES, allows_none=True),
        metavar="WHAT,...",
        help="Exit with 7 if a pod is denied, or has a worse verdict, only under the new policy, or is decided "
        f"otherwise at all: {', '.join(_FAILURES)}.",
    ),
    click.option(
        "--skip-invalid", is_flag=True, help="Leave out lines that cannot be read. Default: stop at the first."
    ),
    output_choice(
        ["text", "json", "diff"],
        help="Counts by change; a line for each pod with a change; or both patches, once for equal pods.",
    ),
    needs_cluster=False,
    needs_pods=False,
)
def replay(
    session: Session, sources: tuple[str, ...], against: tuple[Path, ...], fail_on: tuple[str, ...], skip_invalid: bool
) -> int:
    """Report what another policy would decide on recorded admissions, compared with the policy in force.

    SOURCE is an audit file of `serve --audit-pods`, an API server's audit log of the level Request or RequestResponse,
    or objects as kubectl prints them. Without one, the pods and workload objects of --cluster or of the live cluster
    are decided on as if they were created now. The library jsonpatch applies the patches. Exit code 7: see --fail-on.

    \b
    Examples:
      placement-webhook replay --policy policy.yaml --against policy.yaml audit.jsonl
      placement-webhook replay --policy policy.yaml --against policy.yaml --cluster cluster.json -o json
      placement-webhook replay --policy policy.yaml --context staging --fail-on denied,verdict
    """
    if not sources and not session.has_cluster:
        raise click.UsageError("give a SOURCE, --cluster or --kubeconfig: there is nothing to decide on.")
    if "verdict" in fail_on and not session.has_cluster:
        raise click.UsageError("--fail-on verdict needs a view of the cluster: give --cluster or --kubeconfig.")
    check_standard_input(*(("SOURCE", each) for each in sources), ("--cluster", session.cluster))
    new, old = session.rules, read_policies(against, "--against") if against else None
    invalid = 0

    def report(error: FieldError) -> None:
        nonlocal invalid
        if not skip_invalid:
            raise InvalidInput([skippable(error)])
        invalid += 1

    names = sources or ((session.cluster,) if session.cluster is not None else ())
    with ExitStack() as stack:
        opened = ReplaySources(names, report, stack)
        snapshot = session.snapshot if session.has_cluster else None
        if old is None and session.is_live and (in_force := session.read_policies_in_force()) is not None:
            old = in_force.policies
        admissions = opened.admissions(new.default.kinds) if names else _of_live_objects(session, opened)
        if old is None:
            old, admissions = _recorded(admissions)
        if opened.has_records:
            _warn_of_other_domains(new, old)
        made = Replay(new, old, snapshot)
        made.report.left_out = opened.left_out
        was_interrupted = _run(made, admissions, session.output)
        _finish(made.report, new, old, session.output, len(opened), invalid)
    if was_interrupted:
        echo(f"Interrupted after {plural(made.report.pods, 'pod')}: this is what was found until then.", err=True)
    return _EXIT_INTERRUPTED if was_interrupted else _exit_code(made.report, fail_on)


def _of_live_objects(session: Session, opened: ReplaySources) -> Iterator[Admission]:
    # Imported here, so that a command on a file does not import the client.
    from webhook.cli.inputs.live import read_live_workloads

    return admissions_of_objects(read_live_workloads(session.source), session.rules.default.kinds, opened.left_out)


def _recorded(admissions: Iterator[Admission]) -> tuple[PolicySet, Iterator[Admission]]:
    """Return the policy that the first record names, which must be the built-in policy, and the admissions."""
    first = next(admissions, None)
    built_in = built_in_policy()
    if first is None or first.policy == built_in.identity:
        return PolicySet(built_in), chain([first] if first is not None else [], admissions)
    named = f"the records are of {first.policy}" if first.policy else "these sources name no policy"
    detail = f"{named}: give the file of the policy to compare with, or the cluster where it is in force"
    raise InvalidInput([required("--against", detail)])


def _warn_of_other_domains(new: PolicySet, old: PolicySet) -> None:
    """Warn if the records lack values of annotations that the new policy reads."""
    kept = set[str]().union(*(kept_domains(each.spec) for each in old))
    for each in new:
        if (domain := each.spec.key_domain) not in kept:
            domains = ", ".join(sorted(kept))
            warn(f"{each.identity} reads annotations of {domain}, but audit files have values only of {domains}")


def _run(made: Replay, admissions: Iterator[Admission], output: str) -> bool:
    """Decide on all admissions and print the differences. Return whether the user interrupted it."""
    progress = Progress()
    try:
        for number, each in enumerate(admissions):
            if number % _BETWEEN_PROGRESS == 0:
                progress.show(f"{made.report.pods} pods, {made.report.changed} otherwise")
            found = made.add(each)
            if found is not None and output == "json":
                echo_json(found.to_json())
            elif found is not None and output == "diff" and found.is_first:
                print_patches(found)
    except KeyboardInterrupt:
        return True
    finally:
        progress.end()
    return False


def _finish(report: Report, new: PolicySet, old: PolicySet, output: str, sources: int, invalid: int) -> None:
    """Print the counts. It is an error if there was no admission to decide on."""
    if not report.pods:
        reasons = "; ".join(f"{count} × {reason}" for reason, count in report.left_out.most_common())
        detail = f"no creation of a pod was found that can be decided on{': ' if reasons else ''}{reasons}"
        raise InvalidInput([required("SOURCE", detail)])
    if output == "text":
        print_report(report, new, old, sources)
    print_notes(report, old, invalid, is_text=output == "text")


def _exit_code(report: Report, fail_on: tuple[str, ...]) -> int:
    """Return 7, and print the reason, if a condition of `fail_on` is met, or else 0."""
    code = 0
    for name in fail_on:
        count_of, what = _FAILURES[name]
        if count := count_of(report):
            echo(f"--fail-on {name}: {plural(count, 'pod')} {what}", fg="red", err=True)
            code = _EXIT_FAILED
    return code

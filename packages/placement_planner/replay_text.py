"""The text of `replay`: the counts by change, and the patches of two policies."""

import difflib
import sys
from collections import Counter

import orjson

from placement_planner.replay.decision import Change, Decision
from placement_planner.replay.policy_comparison import Difference, Report, Tally
from webhook.cli.output.screen import Column, Row, print_line, print_table, text_console
from webhook.cli.output.terminal import echo
from webhook.cli.output.yaml_text import print_diff
from webhook.documents.field import BETWEEN_ERRORS
from webhook.documents.listing import plural
from webhook.policy.policy_set import PolicySet

_COLUMNS = (
    Column("CHANGE", least=30, folds=True),
    Column("PODS", is_number=True),
    Column("OWNERS", least=16, folds=True, drop=2),
    Column("NAMESPACES", least=16, folds=True, drop=1),
    Column("EXAMPLE", least=20, folds=True, drop=3),
)
_MOST_CHANGES = 200


def print_report(report: Report, new: PolicySet, old: PolicySet, sources: int) -> None:
    """Print the counts of all changes."""
    console = text_console()
    of_sources = f" of {plural(sources, 'source')}" if sources else ""
    print_line(console, f"{plural(report.pods, 'pod')}{of_sources}, by {_names(old)} and by {_names(new)}")
    if not report.changed:
        print_line(console, "no pod would be decided otherwise", "green")
        return
    print_line(console, f"{report.changed} would be decided otherwise, {report.refused} of them refused")
    print_line(console, "")
    tallies = report.sorted_tallies()
    print_table(console, _COLUMNS, [_row(*each) for each in tallies[:_MOST_CHANGES]])
    if len(tallies) > _MOST_CHANGES:
        print_line(console, f"and {len(tallies) - _MOST_CHANGES} more changes; -o json has all", "dim")


def print_notes(report: Report, old: PolicySet, invalid: int, *, is_text: bool) -> None:
    """Print to standard error the limitations of the report, and its totals if the output is not text."""
    sys.stdout.flush()
    if not is_text:
        echo(f"{plural(report.pods, 'pod')}: {report.changed} otherwise, {report.refused} refused", err=True)
    for reason, count in report.left_out.most_common():
        echo(f"left out: {count} × {reason}", err=True)
    if invalid:
        echo(f"left out: {plural(invalid, 'line')} that cannot be read", err=True)
    known = {each.revision for each in old}
    others = Counter({name: count for name, count in report.policies.items() if name.rpartition("@")[2] not in known})
    if others:
        names = _top(others)
        echo(f"note: {sum(others.values())} pods were admitted by other policies than --against: {names}", err=True)


def print_patches(found: Difference) -> None:
    """Print the patches of the two policies for one pod, with one operation on each line."""
    old, new = found.old, found.new
    before, after = (f"{found.admission.pod} ({each.policy})" for each in (old, new))
    print_diff(difflib.unified_diff(_lines(old), _lines(new), before, after, lineterm=""))


def _lines(decision: Decision) -> list[str]:
    head = [f"outcome: {decision.outcome}", *([f"verdict: {decision.verdict}"] if decision.verdict else [])]
    message = [f"message: {each}" for each in decision.message.split(BETWEEN_ERRORS) if each]
    warnings = [f"warning: {each}" for each in decision.warnings]
    return [*head, *message, *warnings, *(orjson.dumps(each).decode() for each in decision.operations)]


def _row(change: Change, tally: Tally) -> Row:
    style = "red" if change.kind == "outcome" and "→ Denied" in change.detail else ""
    example = tally.examples[0]
    place = f"{example.pod} ({example.place})" if example.place else example.pod
    return Row((str(change), str(tally.pods), _top(tally.owners, 1), _top(tally.namespaces), place), style)


def _top(counts: Counter[str], most: int = 2) -> str:
    """Return the most frequent names with their counts, and the number of the others."""
    shown = [f"{name} ({count})" for name, count in counts.most_common(most)]
    left_out = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {left_out} more" if left_out > 0 else "")


def _names(policies: PolicySet) -> str:
    return ", ".join(each.identity for each in policies)

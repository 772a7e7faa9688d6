"""Text output of the `audit` commands: plain columns, coloured on a terminal."""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from rich.console import Console
from rich.text import Text

from webhook.audit.chain import Verification
from webhook.audit.field_changes import field_changes, field_path
from webhook.audit.lines import digest
from webhook.audit.reading import Entry
from webhook.audit.record import POD, AuditRecord, PlacementEntry, RuleEntry
from webhook.audit.summary import Summary
from webhook.cli.output.screen import Column, Row, print_line, print_table
from webhook.documents.documents import JsonObject
from webhook.documents.listing import plural
from webhook.documents.text import cut, printable
from webhook.kube.api.independent_patch import PatchError, TooDeepError

NONE = "-"
_NO_PREVIOUS = "none: the first of its chain"
_STYLES = {
    "Patched": "green",
    "Unchanged": "dim",
    "Bypassed": "dim",
    "Denied": "yellow",
    "Error": "bold red",
    "Evicted": "yellow",
    "Omitted": "bold yellow",
    "Feasible": "green",
    "Waiting": "yellow",
    "Infeasible": "red",
}
_LINE_STYLES = {"+": "green", "-": "red", "!": "yellow"}
# The number of characters of a decision ID that tell decisions apart; `audit show` takes a beginning.
_ID_CHARACTERS = 8
_MOST_COUNTED = 10
# In the table, an annotation is named by its key without the domain.
_ANNOTATION = re.compile(r"\bmetadata\.annotations\[[^\]/]+/([^\]/]+)\]")
LIST_COLUMNS = (
    Column("TIME"),
    Column("OUTCOME"),
    Column("TYPE", drop=2),
    Column("VERDICT", drop=3),
    Column("MS", drop=1),
    Column("POD", least=19, folds=True),
    Column("DECISION"),
    Column("NOTE", least=11, drop=4),
)


def list_row(record: AuditRecord) -> Row:
    """Return one row of `audit list`."""
    if record.omitted is not None:
        unknown = (NONE,) * 4
        cited = record.decision[:_ID_CHARACTERS]
        return _styled((_seconds(record.time), "Omitted", *unknown, cited, record.error or ""))
    notes = [] if record.kind == POD else [record.kind]
    if record.dry_run:
        notes.append("dry run")
    if record.error:
        notes.append(cut(_ANNOTATION.sub(r"\1", record.error.split("\n", 1)[0]), 100))
    if record.shadow:
        notes.append(f"would be {record.shadow.outcome}")
    cells = (
        _seconds(record.time),
        record.outcome,
        record.workload_type or NONE,
        record.placement.verdict if record.placement else NONE,
        f"{record.duration_ms:.1f}",
        f"{record.namespace}/{record.name}",
        record.decision[:_ID_CHARACTERS],
        ", ".join(notes),
    )
    return _styled(cells)


def _styled(cells: Sequence[str]) -> Row:
    return Row(cells, next((_STYLES[cell] for cell in cells if cell in _STYLES), ""))


def _seconds(time: str) -> str:
    return time[:19] + "Z" if time.endswith("Z") else time


def print_record(console: Console, entry: Entry) -> None:
    """Print one record."""
    record = entry.record
    for title, value in _facts(record):
        console.print(
            Text(f"{title:<10} ", "bold"), Text(printable(value), _STYLES.get(value, "")), sep="", soft_wrap=True
        )
    _section(console, "Rules", _rule_lines(record.rules))
    _section(console, "Patch (- before, + after)", _field_lines(record.patch, record.before))
    _section(console, "Placement", _placement_lines(record.placement))
    _section(console, "Warnings", _marked(record.warnings))
    if shadow := record.shadow:
        lines = [shadow.outcome, *map(printable, (shadow.message or "").splitlines())]
        _section(console, "In shadow mode: this would be the answer", lines)
        _section(console, "Its rules", _rule_lines(shadow.rules))
        _section(console, "Its patch (- before, + after)", _field_lines(shadow.patch, record.before))
        _section(console, "Its placement", _placement_lines(shadow.placement))
        _section(console, "Its warnings", _marked(shadow.warnings))
    _section(console, "Left out of this record, as too large", _marked(record.truncated))
    hashes = [f"hash      {digest(entry.line)}", f"previous  {printable(record.previous or _NO_PREVIOUS)}"]
    _section(console, f"Record {record.sequence} of its chain, {printable(entry.place)}", hashes)


def _facts(record: AuditRecord) -> Iterator[tuple[str, str]]:
    if record.omitted is not None:
        yield "Omitted", record.error or ""
        yield "Time", f"{record.time}, in replica {record.replica}"
        for namespace, count in record.omitted.namespaces.items():
            yield "Namespace", f"{namespace}: {count}"
        return
    yield "Decision", record.decision
    yield "Time", f"{record.time}, took {record.duration_ms:.3f} ms in replica {record.replica}"
    owner = f", of {record.owner.kind} {record.owner.name}" if record.owner else ""
    name = f"{record.namespace}/{record.name}{owner}"
    yield ("Pod", name) if record.kind == POD else ("Object", f"{record.kind} {name}")
    dry_run = " (dry run)" if record.dry_run else ""
    yield "Request", f"{record.operation}{dry_run} by {record.user or NONE}, uid {record.uid or NONE}"
    if record.client:
        yield "Client", f"{record.client}, by its certificate"
    yield "Type", record.workload_type or NONE
    yield "Policy", f"{record.policy.name}@{record.policy.revision}" if record.policy else NONE
    yield "Outcome", record.outcome
    for line in (record.error or "").splitlines():
        yield "Why", line


def _section(console: Console, title: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    console.print()
    console.print(Text(title, "bold"), soft_wrap=True)
    for line in lines:
        console.print(Text("  " + line, _LINE_STYLES.get(line.lstrip()[:1], "")), soft_wrap=True)


def _marked(texts: Sequence[str]) -> list[str]:
    return [f"! {printable(text)}" for text in texts]


def _rule_lines(rules: Sequence[RuleEntry]) -> list[str]:
    width = max((len(rule.name) for rule in rules), default=0)
    lines: list[str] = []
    for rule in rules:
        texts = [f"skipped: {rule.skipped}"] if rule.skipped is not None else rule.edits or ["nothing to do"]
        names = itertools.chain([rule.name], itertools.repeat(""))
        lines += [printable(f"{name:<{width}}   {text}") for name, text in zip(names, texts, strict=False)]
    return lines


def _field_lines(patch: Sequence[JsonObject], before: JsonObject) -> list[str]:
    """Return the changed fields with their values before and after the patch."""
    try:
        changes = field_changes(patch, before)
    except (PatchError, TooDeepError) as error:
        return [f"! {printable(str(error)) or 'nested too deeply'}: the record is cut off, or not as it was written"]
    lines: list[str] = []
    for change in changes:
        for after in change.after if change.is_appended else [change.after]:
            lines.append(printable(field_path(change.pointer)) + ("[+]" if change.is_appended else ""))
            lines += [f"  - {line}" for line in _value_lines(change.before)]
            lines += [f"  + {line}" for line in _value_lines(after)]
    return lines


def _value_lines(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [printable(value)]
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
    return [printable(line) for line in text.removesuffix("...\n").splitlines()]


def _placement_lines(placement: PlacementEntry | None) -> list[str]:
    if placement is None:
        return []
    node = f", best on node {placement.node}" if placement.node else ""
    lines = [f"{placement.verdict}: {placement.feasible} of {placement.total} nodes can take it{node}"]
    reserved = ""
    if placement.reserved:
        pods = placement.reserved.pods
        many = f"{pods} pods that wait take their places first"
        reserved = "1 pod that waits takes its place first" if pods == 1 else many
    unmodelled = f"not looked at: {', '.join(placement.unmodelled)}" if placement.unmodelled else ""
    return [printable(line) for line in (*lines, placement.message, reserved, unmodelled) if line]


_RULE_COLUMNS = (Column("RULE"), Column("PODS EDITED"), Column("EDITS"), Column("PODS SKIPPED"))
_OMITTED = {
    "unwritable": "{} without a record in these files: it could not be written, and went to standard error",
    "dryRun": "{} without a record: dry runs beyond the share of a namespace",
}
_SLOWEST_COLUMNS = (Column("SLOWEST MS"), Column("OUTCOME"), Column("POD", least=16), Column("DECISION"))


def print_summary(console: Console, summary: Summary) -> None:
    """Print the counts, one table for each."""
    dry_runs = f", {summary.dry_runs} of them dry runs" if summary.dry_runs else ""
    print_line(console, f"{plural(summary.total, 'record')}{dry_runs}")
    for reason, count in summary.omitted.items():
        print_line(console, f"besides, {_OMITTED[reason].format(plural(count, 'admission'))}", "yellow")
    if not (summary.first and summary.last):
        return
    print_line(console, f"from {_seconds(summary.first)} to {_seconds(summary.last)}")
    durations = ", ".join(f"{name} {milliseconds:.3f}" for name, milliseconds in summary.duration_ms.items())
    print_line(console, f"milliseconds: {durations}")
    for title, counts in (
        ("OUTCOME", summary.outcomes),
        ("IN SHADOW MODE, WOULD BE", summary.shadowed),
        ("TYPE", summary.workload_types),
        ("VERDICT", summary.verdicts),
        ("USER", summary.users),
        ("NAMESPACE", summary.namespaces),
        ("POLICY", summary.policies),
        ("DENIED BECAUSE OF", summary.refusals),
        ("BYPASSED BECAUSE OF", summary.bypasses),
        ("FAILED BECAUSE OF", summary.errors),
    ):
        if counts:
            console.print()
            rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            columns = (Column(title, least=20, folds=True), Column("RECORDS"))
            print_table(console, columns, [_styled((name, str(count))) for name, count in rows[:_MOST_COUNTED]])
            if left_out := rows[_MOST_COUNTED:]:
                print_line(console, f"and {len(left_out)} more; -o json has all", "dim")
    if summary.rules:
        console.print()
        rules = [(name, *map(str, (rule.edited, rule.edits, rule.skipped))) for name, rule in summary.rules.items()]
        print_table(console, _RULE_COLUMNS, map(Row, rules))
    if summary.slowest:
        console.print()
        slowest = [(f"{r.duration_ms:.3f}", r.outcome, f"{r.namespace}/{r.name}", r.decision) for r in summary.slowest]
        print_table(console, _SLOWEST_COLUMNS, map(_styled, slowest))


def print_verification(console: Console, verification: Verification) -> None:
    """Print the chains and notes of the files. The caller prints the faults."""
    intact = "" if verification.faults else "intact: "
    chains = plural(len(verification.chains), "chain")
    style = "red" if verification.faults else "green"
    print_line(console, f"{intact}{plural(verification.records, 'record')} in {chains}", style)
    for chain in verification.chains if not verification.faults else ():
        console.print()
        print_line(console, f"files     {printable(', '.join(chain.files))}")
        print_line(console, f"replica   {printable(', '.join(chain.replicas))}")
        first, last = _seconds(chain.start.record.time), _seconds(chain.end.record.time)
        print_line(console, f"records   {chain.records}, {first} to {last}")
        print_line(console, f"head      {chain.head}")
    for note in verification.notes:
        print_line(console, f"note: {printable(note)}", "yellow")

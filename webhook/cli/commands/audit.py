"""`placement-webhook audit`: list, print, count, verify and export audit records."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, get_args

import click

from webhook.audit.chain import verify as verify_files
from webhook.audit.pods import compare_pods, note_pods
from webhook.audit.reading import Entry
from webhook.audit.selection import Selection
from webhook.audit.sources import Sources
from webhook.audit.summary import summarise
from webhook.cli.inputs.files import PATH, file_option, output_choice
from webhook.cli.output.atomic_file import check_writable, write_atomically
from webhook.cli.output.program import SuggestingGroup
from webhook.cli.output.screen import print_table, text_console
from webhook.cli.output.terminal import echo, echo_json, echo_json_lines
from webhook.cli.records import audit_text as text
from webhook.cli.records.audit_following import BrokenLines, follow_file
from webhook.cli.records.audit_source import Source, source_options
from webhook.documents.field import InvalidInput, invalid
from webhook.placement.framework.result import PlacementVerdict


@click.group(cls=SuggestingGroup)
def audit() -> None:
    """Read the audit log: the admitted pods, the injected fields with reasons, and the predicted placement.

    FILE is an audit file, or - for standard input. You can give rotated files and the files of several replicas
    together; they are read in the order of time. The default is audit.jsonl in this folder with its rotated files.
    --kubeconfig reads the logs of the running replicas through the API server instead.

    \b
    placement-webhook audit list --verdict Infeasible audit.jsonl
    placement-webhook audit show 01J9Z6 audit.jsonl
    cat replica-*.jsonl | placement-webhook audit summary -
    """


_output = output_choice(["text", "json"], help="text for people, json for programs.")


@audit.command("list")
@source_options
@click.option("--user", "users", multiple=True, help="Of this user, with * and ? for many; may be repeated.")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    type=click.Choice(get_args(PlacementVerdict), case_sensitive=False),
    help="With this verdict of the placement check; may be repeated.",
)
@click.option("--policy", "policies", multiple=True, help="By this policy: NAME or NAME@REVISION; repeatable.")
@click.option("-F", "--follow", is_flag=True, help="Go on with the records that a server adds to FILE.")
@_output
def list_(
    source: Source,
    users: tuple[str, ...],
    verdicts: tuple[str, ...],
    policies: tuple[str, ...],
    follow: bool,
    output: str,
) -> None:
    """Print one line for each admission, the oldest first. -o json prints the records as they are in the file.

    DECISION is the beginning of the decision ID, as `audit show` takes it. For other selections, pass the records
    through jq; docs/audit.md has examples.

    \b
    placement-webhook audit list --user 'system:serviceaccount:team-a:*' --verdict Infeasible
    jq -c 'select(.outcome == "Denied")' audit.jsonl | placement-webhook audit list -
    placement-webhook audit list --follow audit.jsonl
    """
    selection = Selection(users, verdicts, policies)
    if follow:
        follow_file(source, selection, output)
    with source.opened() as sources:
        broken = BrokenLines()
        entries: Iterable[Entry] = (each for each in sources.entries(broken.report) if selection.matches(each.record))
        if output == "json":
            echo_json_lines(entry.line for entry in entries)
        else:
            remaining = iter(entries)
            first = list(islice(remaining, 1))
            rows = (text.list_row(entry.record) for entry in chain(first, remaining))
            print_table(text_console(), text.LIST_COLUMNS, rows)
            if not first and sources.has_records:
                echo("no record that was read is selected", err=True)
    broken.report_rest()


@audit.command()
@click.argument("decision")
@source_options
@_output
def show(decision: str, source: Source, output: str) -> None:
    """Print the record of one admission.

    DECISION can be any unique beginning of a decision ID.

    \b
    placement-webhook audit show 01J9Z6
    placement-webhook audit show 01J9Z6 -o json audit.jsonl audit.jsonl.1
    """
    with source.opened() as sources:
        entry = _find(decision, sources)
    if output == "json":
        echo_json_lines([entry.line])
    else:
        text.print_record(text_console(), entry)


def _find(decision: str, sources: Sources) -> Entry:
    found: dict[str, Entry] = {}
    broken = BrokenLines()
    for entry in sources.entries(broken.report):
        if entry.record.decision == decision:
            return entry
        if decision and entry.record.decision.startswith(decision):
            found[entry.record.decision] = entry
    broken.report_rest()
    if not found:
        raise InvalidInput([invalid("DECISION", decision, "no record has it; `audit list` lists the decisions")])
    if len(found) > 1:
        some = ", ".join([*found][:5]) + (", …" if len(found) > 5 else "")
        detail = f"{len(found)} records begin with it; add characters: {some}"
        raise InvalidInput([invalid("DECISION", decision, detail)])
    return next(iter(found.values()))


@audit.command()
@source_options
@click.option(
    "--slowest", type=click.IntRange(min=0), default=5, show_default=True, help="Number of slowest admissions to print."
)
@_output
def summary(source: Source, slowest: int, output: str) -> None:
    """Print counts, reasons and durations of admissions.

    Counts by outcome, workload type, verdict, user, namespace, policy and rule, and by the reason why pods were denied,
    bypassed, or failed. The text has the ten most frequent of each.

    \b
    placement-webhook audit summary audit.jsonl
    jq -c 'select(.namespace == "team-a")' audit.jsonl | placement-webhook audit summary -
    """
    broken = BrokenLines()
    with source.opened() as sources:
        counts = summarise((entry.record for entry in sources.entries(broken.report)), slowest)
    broken.report_rest()
    if output == "json":
        echo_json(counts.to_json())
    else:
        text.print_summary(text_console(), counts)


@audit.command()
@source_options
@click.option(
    "--head", "heads", multiple=True, help="Hash of a record that must exist, saved earlier; may be repeated."
)
@click.option("--partial", is_flag=True, help="Allow missing oldest records: deleted, or in files not given.")
@_output
def verify(source: Source, heads: tuple[str, ...], partial: bool, output: str) -> None:
    """Verify that no record, and no pod in FILE.pods, was altered, removed or moved.

    Each record holds its own hash and the hash of the previous record. Give all files of a replica, in any order. You
    can add the files of other replicas. A head shows that no record was cut off at the end: the one in FILE.head,
    which the server keeps beside the file, or one that you saved earlier. This command prints the head; --head
    compares with it. With --kubeconfig, the chain of each replica is verified by itself, as far as its log reaches.

    \b
    placement-webhook audit verify audit.jsonl*
    placement-webhook audit verify --head "$(cat head.txt)" audit.jsonl*
    """
    pods: dict[str, str] = {}
    with source.opened(with_heads=True) as sources:
        # The kubelet rotates a log: its oldest records are no longer there.
        verification = verify_files(
            note_pods(sources.lines(), pods),
            heads,
            kept_heads=sources.heads,
            partial=partial or source.is_partial,
            may_begin_later=sources.printed,
            place=source.place,
        )
        notes, faults = compare_pods(pods, sources.index_pods())
    verification = replace(
        verification,
        notes=[*verification.notes, *notes],
        faults=[*verification.faults, *faults],
    )
    if output == "json":
        echo_json(verification.to_json())
    else:
        text.print_verification(text_console(), verification)
    if verification.faults:
        raise InvalidInput(verification.faults)


@audit.command()
@source_options
@file_option("-o", "--output", kind=PATH, help="Write to this file, whole or not at all.")
def export(source: Source, output: Path | None) -> None:
    """Print the records of all sources in the order of time, one JSON object a line, to keep them in one file.

    The other commands read that file, as do jq, DuckDB and pandas; docs/audit.md has examples.

    \b
    placement-webhook audit export replica-*.jsonl -o all.jsonl
    placement-webhook audit export audit.jsonl | gzip > audit.jsonl.gz
    """
    check_writable(output, "--output")
    broken = BrokenLines()

    def write(file: IO[bytes]) -> None:
        file.writelines(entry.line + b"\n" for entry in sources.entries(broken.report))

    with source.opened() as sources:
        write_atomically(output, "--output", write)
    broken.report_rest()

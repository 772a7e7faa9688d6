"""`placement-webhook audit`: list, print, count, verify, export and query audit records."""

import shutil
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import click

from webhook.audit.archive import write_archive
from webhook.audit.chain import verify as verify_files
from webhook.audit.pods import compare_pods, note_pods
from webhook.audit.reading import Entry
from webhook.audit.selection import parse_moment
from webhook.audit.sources import Sources
from webhook.audit.summary import summarise
from webhook.cli.inputs.files import PATH, file_option, output_choice
from webhook.cli.output.atomic_file import check_writable, write_atomically
from webhook.cli.output.program import SuggestingGroup
from webhook.cli.output.screen import Column, Row, print_table, text_console
from webhook.cli.output.terminal import echo, echo_json, echo_json_lines
from webhook.cli.records import audit_text as text
from webhook.cli.records.audit_filters import filters, selection_of
from webhook.cli.records.audit_following import BrokenLines, follow_file
from webhook.cli.records.audit_source import DEFAULT_FILE, Source, source_options
from webhook.cli.records.audit_table import lines_of, query_json, query_texts, record_table, write_parquet
from webhook.documents.field import InvalidInput, invalid

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@click.group(cls=SuggestingGroup)
def audit() -> None:
    """Read the audit log: the admitted pods, the injected fields with reasons, and the predicted placement.

    FILE is an audit file, an archive of `audit export`, or - for standard input. You can give rotated files and the
    files of several replicas together; they are read in the order of time. The default is audit.jsonl in this folder
    with its rotated files. --kubeconfig reads the records of the running replicas through the API server instead: their
    logs, or their audit files.

    \b
    placement-webhook audit list --outcome Denied --since 1h audit.jsonl
    placement-webhook audit show 01J9Z6 audit.jsonl
    cat replica-*.jsonl | placement-webhook audit summary -
    """


_output = output_choice(["text", "json"], help="text for people, json for programs.")


@audit.command("list")
@source_options(since=False)
@filters
@click.option("--limit", type=click.IntRange(min=1), help="Print only this number of newest records.")
@click.option("-F", "--follow", is_flag=True, help="Go on with the records that a server adds to FILE.")
@_output
def list_(source: Source, limit: int | None, follow: bool, output: str, **chosen: Any) -> None:
    """Print one line for each admission, the oldest first. -o json prints the records as they are in the file.

    DECISION is the beginning of the decision ID, as `audit show` takes it.

    \b
    placement-webhook audit list -n team-a --type training
    placement-webhook audit list --pod 'team-a/worker-*' --since 2026-05-01T08:00:00Z
    placement-webhook audit list --outcome Denied -o json > denied.jsonl
    placement-webhook audit list --user 'system:serviceaccount:team-a:*' --verdict Infeasible
    placement-webhook audit list --follow audit.jsonl
    """
    selection = selection_of(**chosen)
    if follow:
        follow_file(source, selection, limit, output)
    with source.opened(selection.since) as sources:
        broken = BrokenLines()
        entries: Iterable[Entry] = (each for each in sources.entries(broken.report) if selection.matches(each.record))
        entries = deque(entries, maxlen=limit) if limit else entries
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
@source_options(since=True)
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
@source_options(since=False)
@filters
@click.option(
    "--slowest", type=click.IntRange(min=0), default=5, show_default=True, help="Number of slowest admissions to print."
)
@_output
def summary(source: Source, slowest: int, output: str, **chosen: Any) -> None:
    """Print counts, reasons and durations of admissions.

    Counts by outcome, workload type, verdict, user, namespace, policy and rule, and by the reason why pods were denied,
    bypassed, or failed. The text has the ten most frequent of each.

    \b
    placement-webhook audit summary --since 1d
    placement-webhook audit summary -n team-a -o json
    """
    selection = selection_of(**chosen)
    broken = BrokenLines()
    with source.opened(selection.since) as sources:
        entries = sources.entries(broken.report)
        counts = summarise((entry.record for entry in entries if selection.matches(entry.record)), slowest)
    broken.report_rest()
    if output == "json":
        echo_json(counts.to_json())
    else:
        text.print_summary(text_console(), counts)


@audit.command()
@source_options(since=True)
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
    compares with it. With --kubeconfig, the chain of each replica is verified by itself: of one that prints its
    records as far as its log reaches, of one that writes a file with all of its rotated files and its head.

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
        faults=[*sources.head_faults, *verification.faults, *faults],
    )
    if output == "json":
        echo_json(verification.to_json())
    else:
        text.print_verification(text_console(), verification)
    if verification.faults:
        raise InvalidInput(verification.faults)


_skip_invalid = click.option(
    "--skip-invalid", is_flag=True, help="Leave out lines that cannot be read. Default: stop at the first."
)


@audit.command()
@source_options(since=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["tar", "parquet"]),
    default="tar",
    show_default=True,
    help="An archive of the files; or one table of all records.",
)
@click.option(
    "--since", help="Leave out records before this time or age; of an archive, rotated files that end before."
)
@file_option("-o", "--output", kind=PATH, help="Write to this file, whole or not at all.")
@_skip_invalid
def export(source: Source, form: str, since: str | None, output: Path | None, skip_invalid: bool) -> None:
    """Print one FILE, its rotated files, its head and its pods as a tar archive; or the records as Parquet.

    The server may write meanwhile. The default is audit.jsonl in this folder. `audit list --kubeconfig` runs this
    command in the containers of replicas that write a file. Parquet has the columns of `audit sql`.

    \b
    placement-webhook audit export audit.jsonl > audit.tar
    placement-webhook audit verify audit.tar
    placement-webhook audit export --format parquet -o audit.parquet audit.jsonl
    """
    if output is None and sys.stdout.isatty():
        raise click.UsageError("the output is binary: give --output FILE, pipe it, or write it to a file.")
    check_writable(output, "--output")
    point = parse_moment(since, datetime.now(UTC), "--since") if since else None
    if form == "parquet":
        with source.opened(point) as sources, record_table(lines_of(sources, point, skip_invalid)) as table:
            _write_parquet(table, output)
        return
    if source.replicas is not None or len(source.files) > 1:
        raise click.UsageError("an archive is of one FILE; --format parquet takes several, and --kubeconfig.")
    file = Path(source.files[0] if source.files else DEFAULT_FILE)
    write_atomically(output, "--output", lambda stream: write_archive(file, stream, point))


def _write_parquet(table: "DuckDBPyConnection", output: Path | None) -> None:
    if output is not None:
        write_atomically(output, "--output", lambda file: write_parquet(table, file))
        return
    # DuckDB writes to files alone.
    with NamedTemporaryFile() as file:
        write_parquet(table, file)
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)


@audit.command()
@click.argument("query")
@source_options(since=False)
@_skip_invalid
@_output
def sql(query: str, source: Source, skip_invalid: bool, output: str) -> None:
    """Print the result of a SELECT on the table `records`, by DuckDB.

    docs/audit.md has its columns and ten queries. `DESCRIBE records` prints the columns, too. -o json prints one row a
    line. This needs the package of DuckDB: pip install 'placement-webhook[sql]'.

    \b
    placement-webhook audit sql "SELECT outcome, count(*) AS records FROM records GROUP BY ALL" audit.jsonl
    """
    with source.opened() as sources, record_table(lines_of(sources, None, skip_invalid)) as table:
        if output == "json":
            echo_json_lines(query_json(table, query))
        else:
            names, rows = query_texts(table, query)
            print_table(text_console(), [Column(name) for name in names], map(Row, rows))

"""Print the records that a server adds to an audit file, and report the lines that are not records."""

import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from webhook.audit.reading import FollowedFile, InvalidLine
from webhook.audit.selection import Selection
from webhook.audit.sources import STANDARD_INPUT
from webhook.cli.output.screen import print_line, print_table, text_console
from webhook.cli.output.terminal import echo, echo_json_lines
from webhook.cli.records import audit_text as text
from webhook.cli.records.audit_source import DEFAULT_FILE, Source

_MOST_WARNINGS = 10
_SECONDS_BETWEEN = 0.5


def follow_file(source: Source, selection: Selection, output: str) -> NoReturn:
    """Print the selected records of the file, then those that are added, until the user ends the command."""
    files = source.files or (DEFAULT_FILE,)
    if source.replicas is not None or len(files) > 1 or STANDARD_INPUT in files:
        raise click.UsageError("--follow reads one audit file; `kubectl logs --follow` has what replicas print.")
    broken, console, is_first = BrokenLines(), text_console(), True
    with FollowedFile(Path(files[0])) as followed:
        while True:
            found = []
            for each in followed.new_lines():
                if isinstance(each, InvalidLine):
                    broken.report(each)
                elif selection.matches(each.record):
                    found.append(each)
            rows = [text.list_row(entry.record) for entry in found]
            if output == "json":
                echo_json_lines(entry.line for entry in found)
            elif is_first:
                print_table(console, text.LIST_COLUMNS, rows)
            for row in () if is_first or output == "json" else rows:
                print_line(console, "  ".join(row.cells).rstrip(), row.style)
            is_first = False
            _pause()


def _pause() -> None:
    sys.stdout.flush()
    time.sleep(_SECONDS_BETWEEN)


class BrokenLines:
    """Reports the lines that are not records on standard error: the first few, then the number of others."""

    def __init__(self) -> None:
        self._count = 0

    def report(self, line: InvalidLine) -> None:
        """Report the line, or count it after the first few."""
        self._count += 1
        if self._count <= _MOST_WARNINGS:
            echo(f"warning: {line.place}: not an audit record, left out: {line.problem}", err=True)

    def report_rest(self) -> None:
        """Report the number of lines that were only counted."""
        if self._count > _MOST_WARNINGS:
            echo(f"warning: {self._count - _MOST_WARNINGS} more lines are not audit records, left out", err=True)

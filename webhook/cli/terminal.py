"""Output to standard output and standard error, with the control characters of objects escaped.

Users control the texts of pods, clusters, records, certificates and API servers. These texts are printed with control
characters as escapes. Only this module and `webhook.cli.screen` (for layouts) add colours.
"""

import os
import sys
from collections.abc import Iterable
from typing import Any

import click
import orjson

from webhook.kube.text import json_bytes, printable, printable_lines, safe_json


def may_colour() -> bool:
    """Return whether a terminal gets colours: NO_COLOR (https://no-color.org) is not set, and it is not dumb."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def echo(text: str, *, err: bool = False, fg: str | None = None) -> None:
    """Print `text` as one line, in the colour `fg` on a terminal."""
    text = printable(text)
    click.echo(click.style(text, fg=fg) if fg and may_colour() else text, err=err)


def echo_fields(*fields: str) -> None:
    """Print the fields as one line, separated by tabs."""
    click.echo("\t".join(map(printable, fields)))


def echo_lines(text: str, *, err: bool = False) -> None:
    """Print `text` with its line breaks. The caller makes the texts of objects in it `printable`."""
    click.echo(printable_lines(text), nl=False, err=err)


def echo_json(document: Any, *, indent: bool = False) -> None:
    """Print `document` as JSON, on one line unless `indent` is set."""
    echo_json_lines([json_bytes(document, orjson.OPT_INDENT_2 if indent else 0)])


def echo_json_lines(lines: Iterable[bytes]) -> None:
    """Print lines of JSON unchanged, except for escaped control characters."""
    sys.stdout.flush()
    output = sys.stdout.buffer
    output.writelines(safe_json(line) + b"\n" for line in lines)
    output.flush()


def echo_progress(text: str) -> None:
    """Print `text` on standard error, on a terminal in place of the previous text."""
    is_terminal = sys.stderr.isatty()
    click.echo(("\r" if is_terminal else "") + printable(text), nl=not is_terminal, err=True)

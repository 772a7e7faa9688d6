"""The one way to standard output and standard error: nothing that an object holds commands the terminal.

Pods, clusters, records, certificates and API servers' answers are written by anybody. Their texts are printed with
control characters as escapes; only this module, and `webhook.cli.screen` for what is laid out, adds colours.
"""

import sys
from collections.abc import Iterable
from typing import Any

import click
import orjson

from webhook.kube.text import json_bytes, printable, printable_lines, safe_json


def say(text: str, *, err: bool = False, fg: str | None = None) -> None:
    """Print `text` as one line, in the colour `fg` on a terminal."""
    click.secho(printable(text), fg=fg, err=err)


def say_lines(text: str, *, err: bool = False) -> None:
    """Print `text` as it stands, its line breaks included. Texts of objects in it are to be `printable` already."""
    click.echo(printable_lines(text), nl=False, err=err)


def say_json(document: Any, *, indent: bool = False) -> None:
    """Print `document` as JSON, on one line unless it is to be indented."""
    say_json_lines([json_bytes(document, orjson.OPT_INDENT_2 if indent else 0)])


def say_json_lines(lines: Iterable[bytes]) -> None:
    """Print lines of JSON as they stand, but for what could command a terminal."""
    sys.stdout.flush()
    output = sys.stdout.buffer
    output.writelines(safe_json(line) + b"\n" for line in lines)
    output.flush()


def say_progress(text: str) -> None:
    """Print `text` on standard error, on a terminal in the place of the last."""
    is_terminal = sys.stderr.isatty()
    click.echo(("\r" if is_terminal else "") + printable(text), nl=not is_terminal, err=True)

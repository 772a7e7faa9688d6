"""Write objects as YAML that kubectl reads as the same objects."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from webhook.cli.output.terminal import echo
from webhook.documents.text import escaped_json, printable_lines
from webhook.documents.yaml_text import TAG, plain_tag


class _PlainDumper(yaml.SafeDumper):
    """Writes an object that occurs twice in full each time, without YAML anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Return True."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # kubectl reads more texts as numbers and booleans than PyYAML, so PyYAML leaves some without quotes.
    style = None if plain_tag(text) == f"{TAG}str" else "'"
    # Only double quotes allow escapes.
    style = style if printable_lines(text) == text else '"'
    return dumper.represent_scalar(f"{TAG}str", text, style=style)


_PlainDumper.add_representer(str, _text)

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def to_yaml(value: Any) -> str:
    """Return `value` as YAML in the order of its keys, with control characters as escapes."""
    return escaped_json(yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=120))


def diff_lines(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the lines of a unified diff of two versions of the pod `name`."""
    sides = to_yaml(before).splitlines(), to_yaml(after).splitlines()
    yield from difflib.unified_diff(*sides, f"{name} (as written)", f"{name} (admitted)", lineterm="")


def print_diff(lines: Iterable[str]) -> None:
    """Print the lines of a unified diff, in its colours on a terminal."""
    for line in lines:
        echo(line, fg=_COLOURS.get(line[:1]))

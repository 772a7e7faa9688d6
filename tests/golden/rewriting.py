"""Rewrite the expected results of golden cases; comments, `why`, `source` and the order of keys are kept."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.golden.case import read, seen, wanted

_WIDTH = 130
_KEY = re.compile(r"  (\w+):")
_BOOLEANS = {"true", "false", "yes", "no", "on", "off"}
_COMMENT = re.compile(r"^\s*#|\s#")


class CannotRewriteError(Exception):
    """Raised for a case that has to be edited by hand, with the reason."""


class _Dumper(yaml.SafeDumper):
    """Write the cases' style: double quotes for a string that YAML reads as a boolean, no aliases."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Write every value in full."""
        return True


def _string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if text in _BOOLEANS else None)


_Dumper.add_representer(str, _string)


def rewritten(text: str, name: str) -> str:
    """Return the case in `text` with the expected results of the current code.

    Raises:
        CannotRewriteError: the verdict has no longer what the case wants, or a comment would be lost.
    """
    case = read(text, name)
    found, expected = seen(case), wanted(case)
    gone = sorted(key for key, value in found.items() if value is None and expected[key] is not None)
    if gone:
        raise CannotRewriteError(f"{name}: the outcome is {found['outcome']}, which has no {', '.join(gone)}")
    changed = {key: value for key, value in found.items() if value != expected[key]}
    head, separator, rest = text.partition("\nwant:\n")
    return head + separator + "".join(_blocks(rest, changed, name))


def _blocks(want: str, changed: Mapping[str, Any], name: str) -> Iterator[str]:
    """The text of each key of `want`, anew for the `changed` ones."""
    left = dict(changed)
    for block in re.split(r"^(?=  \w)", want, flags=re.MULTILINE):
        key = match[1] if (match := _KEY.match(block)) else ""
        if key not in left:
            yield block
            continue
        if any(_COMMENT.search(line) for line in block.splitlines()):
            raise CannotRewriteError(f"{name}: want.{key} has a comment, which would be lost")
        yield rendered(key, left.pop(key))
    for key, value in left.items():
        yield rendered(key, value)


def rendered(key: str, value: Any) -> str:
    """The lines of `key` inside `want`."""
    text = yaml.dump({"want": {key: value}}, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
    return text.removeprefix("want:\n")

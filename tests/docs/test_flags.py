"""Every flag of a command stands on a page and in a test, beside the name of a command that has it."""

import re
from collections.abc import Iterator
from functools import cache

import click
import pytest

from tests.docs.markdown import ROOT
from webhook.cli.root import root


def _commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found is not None
        yield from _commands(found, each)


def _flags() -> dict[tuple[str, ...], set[str]]:
    """Return the spellings of each flag, with the commands that have it: many share theirs."""
    found: dict[tuple[str, ...], set[str]] = {}
    for name, command in _commands(root):
        for each in command.params:
            if isinstance(each, click.Option):
                found.setdefault((*each.opts, *each.secondary_opts), set()).add(name)
    return found


FLAGS = _flags()


# A word with hyphens, with the quotes or the sign of a keyword that belong to it.
_WORD = re.compile(r'"?[\w-]+["=]?')


@cache
def _files(*patterns: str) -> tuple[set[str], ...]:
    """Return the words of each file."""
    own = ROOT / "tests" / "docs" / "test_flags.py"
    texts = (path.read_text() for each in patterns for path in ROOT.glob(each) if path != own)
    return tuple({spelling for found in {*_WORD.findall(text)} for spelling in _spellings(found)} for text in texts)


def _spellings(found: str) -> Iterator[str]:
    """Yield the word as an option or a name with hyphens, its parts, a quoted name, and a keyword of a call."""
    word = found.strip('"=')
    parts = word.split("-")
    yield from (found, word, *parts)
    if found.endswith("="):
        yield f"{parts[-1]}="


def _is_named(flag: tuple[str, ...], files: tuple[set[str], ...]) -> bool:
    # Tests also pass flags by name: {"server-name": …}, only_ca_bundle=True.
    names = [each.lstrip("-") for each in flag if each.startswith("--")]
    passed = [f'"{name}"' for name in names] + [f"{name.replace('-', '_')}=" for name in names if "-" in name]
    spellings = {*flag, *passed}
    return any(not words.isdisjoint(spellings) and not words.isdisjoint(FLAGS[flag]) for words in files)


@pytest.mark.parametrize("flag", FLAGS, ids="/".join)
def test_a_flag_stands_on_a_page(flag: tuple[str, ...]) -> None:
    assert _is_named(flag, _files("README.md", "docs/**/*.md")), f"docs/ does not name {flag[0]} of {FLAGS[flag]}"


@pytest.mark.parametrize("flag", FLAGS, ids="/".join)
def test_a_flag_stands_in_a_test(flag: tuple[str, ...]) -> None:
    assert _is_named(flag, _files("tests/**/*.py")), f"no test passes {flag[0]} of {FLAGS[flag]}"

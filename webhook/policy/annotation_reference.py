"""Generate the table of docs/annotations.md from the rows of `webhook.policy.keys`.

`python -m webhook.policy.annotation_reference FILE` replaces the table in FILE.
"""

import sys
from pathlib import Path

from webhook.policy.keys import ANNOTATIONS, Annotation
from webhook.policy.loader import built_in_policy

_HEAD = "| annotation | values | meaning |\n|---|---|---|\n"


def table() -> str:
    """Return the table as Markdown, with the keys of the built-in policy; annotations without effect come last."""
    keys = built_in_policy().keys
    rows = sorted(ANNOTATIONS, key=lambda row: not row.has_effect)
    return _HEAD + "".join(_line(keys.of(row), row) for row in rows)


def _line(key: str, row: Annotation[object]) -> str:
    return f"| `{key}` | {row.values} | {row.meaning} |\n"


def with_table(text: str) -> str:
    """Return the document `text` with its table replaced."""
    start = text.index(_HEAD)
    return text[:start] + table() + text[text.index("\n\n", start) + 1 :]


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_table(page.read_text()))

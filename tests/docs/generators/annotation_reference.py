"""Generate the table of docs/annotations.md from the rows of `webhook.policy.keys`.

`python -m tests.docs.generators.annotation_reference FILE` replaces the table in FILE.
"""

from tests.docs.generators.generated_table import replace_table
from webhook.policy.keys import ANNOTATIONS, Annotation
from webhook.policy.loader import built_in_policy

HEAD = "| annotation | values | meaning |\n|---|---|---|\n"


def table() -> str:
    """Return the table as Markdown, with the keys of the built-in policy."""
    keys = built_in_policy().keys
    return HEAD + "".join(_line(keys.of(row), row) for row in ANNOTATIONS)


def _line(key: str, row: Annotation[object]) -> str:
    return f"| `{key}` | {row.values} | {row.meaning} |\n"


if __name__ == "__main__":
    replace_table(HEAD, table())

"""Replace a generated table of a Markdown page."""

import sys
from pathlib import Path


def with_table(page: str, head: str, table: str) -> str:
    """Return the Markdown `page` with `table` in place of its table that begins with `head`."""
    start = page.index(head)
    return page[:start] + table + page[page.index("\n\n", start) + 1 :]


def replace_table(head: str, table: str) -> None:
    """Replace the table that begins with `head` in the file that the command line names."""
    file = Path(sys.argv[1])
    file.write_text(with_table(file.read_text(), head, table))

"""Rewrite the expected results of the golden cases with the current code (`make golden`) and print the changes."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.golden.case import CASES
from tests.golden.rewriting import CannotRewriteError, rewritten


def rewrite(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Rewrite the files; return those that changed, and the reasons for those left as they are."""
    changed, refused = [], []
    for path in paths:
        before = path.read_text()
        try:
            after = rewritten(before, path.name)
        except CannotRewriteError as error:
            refused.append(str(error))
            continue
        if after != before:
            path.write_text(after)
            changed.append(path)
    return changed, refused


def main() -> int:
    """Return the exit code: 1 if a case has to be edited by hand."""
    changed, refused = rewrite(CASES)
    print(f"{len(changed)} of {len(CASES)} golden cases rewritten", flush=True)
    if changed:
        subprocess.run(["git", "--no-pager", "diff", "--stat", "--", *map(str, changed)], check=False)
    for reason in refused:
        print(f"not rewritten: {reason}", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())

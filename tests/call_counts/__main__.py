"""Count the calls of each case: print them, write them to the table, or print the functions called most by one case."""

import gc
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import click

from tests.call_counts.clock import CLOCK
from tests.call_counts.table import TABLE, lines_of

# Later releases of Python run these without a call.
_INLINED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
_SHOWN = 30


def _calls(work: Callable[[], object]) -> Counter[CodeType]:
    """Return how often `work` calls each function that is written in Python."""
    found: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name not in _INLINED:
            found[frame.f_code] += 1

    gc.collect()
    gc.disable()  # what a collection calls depends on all that was created before
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return found


def _counted(names: Iterable[str]) -> dict[str, Counter[CodeType]]:
    # Not at the top: what is imported here finds the clock that the cases move.
    from tests.call_counts.cases import CASES

    found = {}
    for name in names or CASES:
        with tempfile.TemporaryDirectory() as folder:
            served, work = CASES[name].work(Path(folder))
            found[name] = _calls(work)
            assert served.outcome == CASES[name].outcome, f"{name}: {served.outcome}"
    return found


@click.command()
@click.option("--write", is_flag=True, help="Write the table.")
@click.option("--most", metavar="CASE", help="Print the functions that this case calls most.")
def main(write: bool, most: str | None) -> None:
    """Print the number of calls of each case."""
    CLOCK.replace_clocks()
    found = _counted([most] if most else [])
    if most:
        for code, count in found[most].most_common(_SHOWN):
            click.echo(f"{count:6} {code.co_qualname} {code.co_filename}:{code.co_firstlineno}")
        return
    text = lines_of({name: calls.total() for name, calls in found.items()})
    if write:
        TABLE.write_text(text)
    click.echo(text, nl=False)


if __name__ == "__main__":
    main()

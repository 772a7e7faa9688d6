"""The interface of a check."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from webhook.doctor.finding import Fault
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source


@dataclass(frozen=True, slots=True)
class Check:
    """A check: `find` yields the faults of an installation, from what was read of `needs`.

    What was not read has no objects; the check `readable` reports it once for all checks. `meaning` is the fault and
    `remedy` its usual remedy, in the words of docs/doctor.md.
    """

    id: str
    meaning: str
    remedy: str
    needs: frozenset[Source]
    find: Callable[[Installation], Iterable[Fault]]


def check(
    id: str,  # noqa: A002 - the field
    meaning: str,
    remedy: str,
    *needs: Source,
) -> Callable[[Callable[[Installation], Iterable[Fault]]], Check]:
    """Make a check of the decorated function."""

    def made(find: Callable[[Installation], Iterable[Fault]]) -> Check:
        return Check(id, meaning, remedy, frozenset(needs), find)

    return made

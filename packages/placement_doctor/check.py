"""Checks, the findings that they report, and the diagnosis that they make of a cluster.

Pure: equal clusters have equal diagnoses.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from inspect import getdoc
from typing import NamedTuple, TypeAlias

from placement_doctor.cluster import Cluster
from placement_doctor.source import Source

MOST_FINDINGS = 10
MOST_NAMED = 10
_MOST_FIELDS = 5


class Severity(Enum):
    """The worst first: an `ERROR` breaks the webhook or its pods, a `WARNING` will or may; an `INFO` is no fault."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(NamedTuple):
    """The object and field, what is wrong there, and what mends it, a command where one does.

    `check` is the id of the check that found it, which the diagnosis sets.
    """

    severity: Severity
    where: str
    what: str
    remedy: str
    check: str = ""


error = partial(Finding, Severity.ERROR)
warning = partial(Finding, Severity.WARNING)
info = partial(Finding, Severity.INFO)


def named(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """Return the first `names` as text, with the number of the others: `a, b and 3 more`."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


Find: TypeAlias = Callable[[Cluster], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """A check: `find` yields what is wrong in a cluster, from what was read of `needs`.

    What was not read has no objects; the check `readable` reports it once for all checks. `meaning` is the fault and
    `remedy` its usual remedy, in the words of docs/doctor.md.
    """

    id: str
    meaning: str
    remedy: str
    needs: frozenset[Source]
    find: Find


def check(remedy: str, needs: Iterable[Source] = ()) -> Callable[[Find], Check]:
    """Make a check of the decorated function, whose name is the id; the first line of its docstring is the meaning."""

    def made(find: Find) -> Check:
        meaning = (getdoc(find) or "").partition("\n")[0].removesuffix(".")
        return Check(find.__name__.replace("_", "-"), meaning, remedy, frozenset(needs), find)

    return made


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings, the most severe first, and the ids of the checks that ran.

    A check has at most `MOST_FINDINGS`; `omitted` is the number of further ones by the id of the check.
    """

    findings: tuple[Finding, ...]
    checks: tuple[str, ...]
    omitted: Mapping[str, int]

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding, or None if there are no findings."""
        return self.findings[0].severity if self.findings else None


def diagnose(cluster: Cluster, checks: Iterable[Check]) -> Diagnosis:
    """Return what `checks` find."""
    chosen = tuple(checks)
    findings: list[Finding] = []
    omitted: Counter[str] = Counter()
    for each in chosen:
        found = sorted(_merged(each.find(cluster)), key=_rank)
        findings += [finding._replace(check=each.id) for finding in found[:MOST_FINDINGS]]
        if len(found) > MOST_FINDINGS:
            omitted[each.id] = len(found) - MOST_FINDINGS
    return Diagnosis(tuple(sorted(findings, key=_rank)), tuple(each.id for each in chosen), dict(omitted))


def _rank(finding: Finding) -> int:
    return [*Severity].index(finding.severity)


def _merged(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings; those of several fields of an object that one remedy mends are one."""
    fields: dict[tuple[str, Finding], list[str]] = {}
    for each in findings:
        place, separator, name = each.where.rpartition(": ")
        fields.setdefault((place + separator, each._replace(where="")), []).append(name)
    for (place, finding), names in fields.items():
        yield finding._replace(where=place + named(dict.fromkeys(names), _MOST_FIELDS))

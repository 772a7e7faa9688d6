"""Checks, the findings that they report, and the diagnosis of a cluster.

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
    """The severities, the worst first.

    An `ERROR` breaks the webhook or its pods, a `WARNING` will or may break them, and an `INFO` is not a fault.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(NamedTuple):
    """An object and field, what is wrong there, and the remedy, which is a command if possible.

    `check` is the id of the check that found it. The diagnosis sets it.
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
    """A check. `find` yields what is wrong in a cluster, and reads the sources `needs`.

    A source that could not be read has no objects. The check `readable` reports it once for all checks. `meaning` is
    the fault and `remedy` the usual remedy, as docs/doctor.md lists them.
    """

    id: str
    meaning: str
    remedy: str
    needs: frozenset[Source]
    find: Find


def check(remedy: str, needs: Iterable[Source] = ()) -> Callable[[Find], Check]:
    """Return a decorator that turns a function into a check.

    The name of the function is the id of the check, and the first line of its docstring is the meaning.
    """

    def made(find: Find) -> Check:
        meaning = (getdoc(find) or "").partition("\n")[0].removesuffix(".")
        return Check(find.__name__.replace("_", "-"), meaning, remedy, frozenset(needs), find)

    return made


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings, the most severe first, and the ids of the checks that ran.

    A check has at most `MOST_FINDINGS` findings. `omitted` is the number of further findings by the id of the check.
    """

    findings: tuple[Finding, ...]
    checks: tuple[str, ...]
    omitted: Mapping[str, int]

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding, or None if there are no findings."""
        return self.findings[0].severity if self.findings else None


def diagnose(cluster: Cluster, checks: Iterable[Check]) -> Diagnosis:
    """Return the diagnosis with the findings of `checks`."""
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
    """Yield the findings. Findings about several fields of an object with the same remedy are merged."""
    fields: dict[tuple[str, Finding], list[str]] = {}
    for each in findings:
        place, separator, name = each.where.rpartition(": ")
        fields.setdefault((place + separator, each._replace(where="")), []).append(name)
    for (place, finding), names in fields.items():
        yield finding._replace(where=place + named(dict.fromkeys(names), _MOST_FIELDS))

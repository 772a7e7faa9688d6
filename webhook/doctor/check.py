"""The interface of a check, and the diagnosis that checks make of a cluster. Pure: equal clusters have equal ones."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import getdoc
from typing import TypeAlias

from webhook.doctor.cluster import Cluster
from webhook.doctor.finding import Finding, Severity, named
from webhook.doctor.source import Source

MOST_FINDINGS = 10
_MOST_FIELDS = 5
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)

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


def check(id: str, remedy: str, *needs: Source) -> Callable[[Find], Check]:  # noqa: A002 - the field
    """Make a check of the decorated function, the first line of whose docstring is the meaning."""

    def made(find: Find) -> Check:
        meaning = (getdoc(find) or "").partition("\n")[0].removesuffix(".")
        return Check(id, meaning, remedy, frozenset(needs), find)

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
        """The severity of the worst finding; None without findings."""
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
    return _ORDER.index(finding.severity)


def _merged(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings; those of several fields of an object that one remedy mends are one."""
    fields: dict[tuple[str, Finding], list[str]] = {}
    for each in findings:
        place, separator, name = each.where.rpartition(": ")
        fields.setdefault((place + separator, each._replace(where="")), []).append(name)
    for (place, finding), names in fields.items():
        yield finding._replace(where=place + named(dict.fromkeys(names), _MOST_FIELDS))

"""Run checks on an installation. Pure: equal installations have equal diagnoses."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from webhook.doctor.check import Check
from webhook.doctor.finding import Fault, Finding, Severity, named
from webhook.doctor.installation import Installation
from webhook.doctor.registry import CHECKS

MOST_FINDINGS = 10
_MOST_FIELDS = 5
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


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


def diagnose(installation: Installation, checks: Iterable[Check] = CHECKS) -> Diagnosis:
    """Return what `checks` find."""
    chosen = tuple(checks)
    findings: list[Finding] = []
    omitted: Counter[str] = Counter()
    for each in chosen:
        faults = sorted(_merged(each.find(installation)), key=lambda fault: _ORDER.index(fault.severity))
        findings += [Finding(each.id, *fault) for fault in faults[:MOST_FINDINGS]]
        if len(faults) > MOST_FINDINGS:
            omitted[each.id] = len(faults) - MOST_FINDINGS
    findings.sort(key=lambda found: _ORDER.index(found.severity))
    return Diagnosis(tuple(findings), tuple(each.id for each in chosen), dict(omitted))


def _merged(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield the faults; those of several fields of an object that one remedy mends are one."""
    fields: dict[tuple[str, Fault], list[str]] = {}
    for each in faults:
        place, separator, name = each.where.rpartition(": ")
        fields.setdefault((place + separator, each._replace(where="")), []).append(name)
    for (place, fault), names in fields.items():
        yield fault._replace(where=place + named(dict.fromkeys(names), _MOST_FIELDS))

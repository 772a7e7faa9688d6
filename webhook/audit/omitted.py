"""The records that the writer adds itself, to count the admissions that have no record in the file."""

from collections import Counter
from dataclasses import replace

from webhook.audit.record import NO_ADMISSION, AuditRecord, Omitted, Outcome
from webhook.documents.text import cut

# A client can invent namespaces, so only this many are counted by name.
_MOST_NAMESPACES = 20
_LONGEST_NAME = 63
_OTHERS = "…"


class OmittedDryRuns:
    """Counts the dry runs without a record, by namespace."""

    def __init__(self) -> None:
        self.by_namespace: Counter[str] = Counter()

    def count(self, namespace: str) -> None:
        """Count a dry run in `namespace`."""
        name = cut(namespace, _LONGEST_NAME)
        is_kept = name in self.by_namespace or len(self.by_namespace) < _MOST_NAMESPACES
        self.by_namespace[name if is_kept else _OTHERS] += 1

    def take(self) -> Omitted:
        """Return the counts, and reset them."""
        counted, self.by_namespace = self.by_namespace, Counter()
        return Omitted("dryRun", counted.total(), namespaces=dict(counted.most_common()))


def record_of(omitted: Omitted, time: str, replica: str, sequence: int) -> AuditRecord:
    """Return the record number `sequence`, which reports `omitted`."""
    outcome, text = _stated(omitted)
    known = replace(NO_ADMISSION, time=time, outcome=outcome, error=text, replica=replica, omitted=omitted)
    return replace(known, decision=f"{sequence:08}-omitted")


def _stated(omitted: Omitted) -> tuple[Outcome, str]:
    """Return outcome and error text of the record, for readers that ignore the field `omitted`."""
    records = omitted.records
    if omitted.reason == "dryRun":
        runs = "1 dry run" if records == 1 else f"{records} dry runs"
        return "Bypassed", f"{runs} beyond the share of a namespace: answered, without a record each"
    many = "1 record" if records == 1 else f"{records} records"
    return "Error", f"{many} before number {omitted.before} could not be written here; standard error may have them"

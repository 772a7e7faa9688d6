"""Count admissions at low cost: one step per admission, distributed to the metrics when they are scraped."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

_MOST_COUNTS = 1024


class AdmissionCount(NamedTuple):
    """The increments of one admission; `edits` are rules with the number of their edits.

    `kind` is that of an object other than a pod. Such an object is counted by kind and outcome alone.
    """

    outcome: str
    workload_type: str = ""
    edits: tuple[tuple[str, int], ...] = ()
    verdict: str | None = None
    """The verdict of the placement check, if there was one."""
    kind: str = ""
    shadow: str = ""
    """The outcome of an answer that was not given; empty if the answer was given."""


class AdmissionCounts(Collector):
    """Prometheus counters: admissions by outcome and workload type, edits by rule, placement checks by verdict.

    They count pods. Another counter has the other objects by kind and outcome, and one has the answers that shadow mode
    did not give, for all objects.

    Not thread-safe, scrapes included. Counters of prometheus_client take a lock and validate the labels
    for each edit. That costs 11 % of the CPU time of a cached request, or 4 % if the children are kept for each counted
    (medians of 240 paired rounds; 1 % of it is noise).
    """

    def __init__(self) -> None:
        self._counts: dict[AdmissionCount, int] = {}
        self._admissions: Counter[tuple[str, str]] = Counter()
        self._edits: Counter[str] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._objects: Counter[tuple[str, str]] = Counter()
        self._shadowed: Counter[str] = Counter()

    def count(self, counted: AdmissionCount) -> None:
        """Count one admission."""
        self._counts[counted] = self._counts.get(counted, 0) + 1
        if len(self._counts) > _MOST_COUNTS:
            self._spread()

    def start_at_zero(self, outcome: str) -> None:
        """Export the count of an outcome as 0 before the first one."""
        self._admissions[(outcome, "")] += 0
        self._shadowed[outcome] += 0

    def start_verdict_at_zero(self, verdict: str) -> None:
        """Export the count of a verdict as 0 before the first one."""
        self._verdicts[verdict] += 0

    def start_rule_at_zero(self, rule: str) -> None:
        """Export the count of the edits of a rule as 0 before the first one."""
        self._edits[rule] += 0

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the five metrics."""
        self._spread()
        admissions = _family(
            "admission_requests", "Admission requests answered, by outcome.", "outcome", "workload_type"
        )
        for (outcome, workload_type), count in self._admissions.items():
            admissions.add_metric((outcome, workload_type), count)
        edits = _family("rule_edits", "Edits made to pods, by rule.", "rule")
        for rule, count in self._edits.items():
            edits.add_metric((rule,), count)
        verdicts = _family("placement_verdicts", "Placement checks, by verdict.", "verdict")
        for verdict, count in self._verdicts.items():
            verdicts.add_metric((verdict,), count)
        objects = _family(
            "object_admission_requests",
            "Admission requests for objects other than pods answered, by kind and outcome.",
            "kind",
            "outcome",
        )
        for (kind, outcome), count in self._objects.items():
            objects.add_metric((kind, outcome), count)
        shadowed = _family(
            "shadowed_admissions",
            "Admission requests that shadow mode or the canary left alone, by the outcome that they would have had.",
            "outcome",
        )
        for outcome, count in self._shadowed.items():
            shadowed.add_metric((outcome,), count)
        yield from (admissions, edits, verdicts, objects, shadowed)

    def _spread(self) -> None:
        for counted, count in self._counts.items():
            if counted.shadow:
                self._shadowed[counted.shadow] += count
            if counted.kind:
                self._objects[(counted.kind, counted.outcome)] += count
                continue
            self._admissions[(counted.outcome, counted.workload_type)] += count
            for rule, edits in counted.edits:
                self._edits[rule] += count * edits
            if counted.verdict is not None:
                self._verdicts[counted.verdict] += count
        self._counts.clear()


def _family(name: str, text: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"placement_webhook_{name}", text, labels=labels)

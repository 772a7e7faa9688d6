"""Count admissions at low cost: one step per admission, distributed to the metrics when they are scraped."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

_MOST_COUNTS = 1024
WAITS_FOR = ("room", "preemption")
_FAMILIES = {
    "admission_requests": ("Admission requests answered, by outcome.", ("outcome", "workload_type")),
    "rule_edits": ("Edits made to pods, by rule.", ("rule",)),
    "placement_verdicts": ("Placement checks, by verdict.", ("verdict",)),
    "waiting_verdicts": (
        "Placement checks with the verdict Waiting, by what the pods wait for.",
        ("waits_for",),
    ),
    "object_admission_requests": (
        "Admission requests for objects other than pods answered, by kind and outcome.",
        ("kind", "outcome"),
    ),
    "shadowed_admissions": (
        "Admission requests that shadow mode or the canary left alone, by the outcome that they would have had.",
        ("outcome",),
    ),
}


class AdmissionCount(NamedTuple):
    """The increments of the counters for one admission. `edits` are (rule, number of its edits).

    `kind` is the kind of an object other than a pod. Such an object is only counted by kind and outcome.
    """

    outcome: str
    workload_type: str = ""
    edits: tuple[tuple[str, int], ...] = ()
    verdict: str | None = None
    """The verdict of the placement check, if there was one."""
    kind: str = ""
    shadow: str = ""
    """The outcome of an answer that was not given, or empty if the answer was given."""
    waits_for: str = ""
    """`room` or `preemption` if the verdict is Waiting."""


class AdmissionCounts(Collector):
    """Prometheus counters: admissions by outcome and workload type, edits by rule, placement checks by verdict.

    These counters are for pods. Another one counts other objects by kind and outcome, and one counts, for all objects,
    the responses that were not sent because of shadow mode.

    Not thread-safe; this includes scrapes. Counters of prometheus_client are not used, because they take a lock and
    validate the labels for each edit. This costs 11 % of the CPU time of a cached request, or 4 % if the children are
    cached (medians of 240 paired rounds; 1 % is noise).
    """

    def __init__(self) -> None:
        self._counts: dict[AdmissionCount, int] = {}
        self._series: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in _FAMILIES}

    def count(self, counted: AdmissionCount) -> None:
        """Count one admission."""
        self._counts[counted] = self._counts.get(counted, 0) + 1
        if len(self._counts) > _MOST_COUNTS:
            self._spread()

    def start_at_zero(self, family: str, *labels: str) -> None:
        """Export a series as 0 before the first count."""
        self._series[family][labels] += 0

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the metrics."""
        self._spread()
        for name, (text, labels) in _FAMILIES.items():
            family = CounterMetricFamily(f"placement_webhook_{name}", text, labels=labels)
            for values, count in self._series[name].items():
                family.add_metric(values, count)
            yield family

    def _spread(self) -> None:
        for counted, count in self._counts.items():
            if counted.shadow:
                self._series["shadowed_admissions"][(counted.shadow,)] += count
            if counted.kind:
                self._series["object_admission_requests"][(counted.kind, counted.outcome)] += count
                continue
            self._series["admission_requests"][(counted.outcome, counted.workload_type)] += count
            for rule, edits in counted.edits:
                self._series["rule_edits"][(rule,)] += count * edits
            if counted.verdict is not None:
                self._series["placement_verdicts"][(counted.verdict,)] += count
            if counted.waits_for:
                self._series["waiting_verdicts"][(counted.waits_for,)] += count
        self._counts.clear()

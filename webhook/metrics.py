"""The table of the Prometheus metrics, under the names of the public contract."""

# ruff: noqa: RUF009 - the calls return fields of the dataclass

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from webhook.admission_counts import AdmissionCounts
from webhook.byte_cache import ByteCache

AUDIT_DROP_REASONS = ("age", "size")
PREDICTION_RESULTS = ("same_node", "in_best_set", "feasible_elsewhere", "foretold_infeasible_but_bound")
RELOAD_RESULTS = ("success", "failure")
# From a patch without a check to a check over a very large cluster, then to where the API server has given up.
_DURATION_BOUNDS_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NAMESPACE = "placement_webhook"

M = TypeVar("M")
N = TypeVar("N", Counter, Gauge)


def _row(make: Callable[[], M], name: str, labels: Iterable[str]) -> M:
    """A field of `Metrics`; its metadata are what docs/operations.md says of it."""
    metric: M = field(default_factory=make, metadata={"name": f"{_NAMESPACE}_{name}", "labels": tuple(labels)})
    return metric


def _make(kind: type[N], name: str, text: str, labels: Mapping[str, Sequence[str]]) -> N:
    metric = kind(name, text, tuple(labels), namespace=_NAMESPACE, registry=None)
    for values in itertools.product(*labels.values()) if labels else ():
        metric.labels(*values)
    return metric


def _counter(name: str, text: str, /, **labels: Sequence[str]) -> Counter:
    """A counter; the values of `labels` that are given are shown from the start, with 0."""
    return _row(lambda: _make(Counter, name, text, labels), f"{name}_total", labels)


def _gauge(name: str, text: str, /, **labels: Sequence[str]) -> Gauge:
    """A gauge; the values of `labels` that are given are shown from the start, with 0."""
    return _row(lambda: _make(Gauge, name, text, labels), name, labels)


def _durations(name: str, text: str) -> Histogram:
    return _row(
        lambda: Histogram(name, text, namespace=_NAMESPACE, registry=None, buckets=_DURATION_BOUNDS_SECONDS), name, ()
    )


def _info(name: str, text: str, *labels: str) -> Info:
    return _row(lambda: Info(name, text, namespace=_NAMESPACE, registry=None), f"{name}_info", labels)


@dataclass(eq=False)
class Metrics:
    """The metrics of one server, one row each, in a registry of their own, which shows them in this order.

    Those of `admissions` are in `webhook.admission_counts`.
    """

    admissions: AdmissionCounts = field(default_factory=AdmissionCounts)
    admission_seconds: Histogram = _durations("admission_duration_seconds", "From a request's body to its answer.")
    in_flight: Gauge = _gauge("admissions_in_flight", "Admission requests being answered now.")
    predictions: Counter = _counter(
        "predictions",
        "Pods that were bound, by how that compares with what was foretold of them.",
        result=PREDICTION_RESULTS,
    )
    placement_seconds: Histogram = _durations("placement_duration_seconds", "Duration of a placement check.")
    cluster_nodes: Gauge = _gauge("cluster_nodes", "Nodes in the view of the cluster.")
    cluster_pods: Gauge = _gauge("cluster_pods", "Running pods in the view of the cluster.")
    cluster_age_seconds: Gauge = _gauge(
        "cluster_age_seconds", "Since when the view of the cluster has not been known to be current; NaN: no view."
    )
    feed_faults: Counter = _counter(
        "feed_faults", "Faults of the webhook's own while it followed the cluster; its log tells them."
    )
    policy: Info = _info("policy", "The policy in force.", "name", "revision")
    policy_reloads: Counter = _counter("policy_reloads", "Policy files read, by result.", result=())
    certificate_not_after: Gauge = _gauge(
        "certificate_not_after_timestamp_seconds", "When the served certificate expires."
    )
    certificate_not_before: Gauge = _gauge(
        "certificate_not_before_timestamp_seconds", "When the served certificate begins to be valid."
    )
    certificate_reloads: Counter = _counter(
        "certificate_reloads", "Attempts to serve changed certificate files, by result.", result=RELOAD_RESULTS
    )
    audit_records: Counter = _counter(
        "audit_records", "Audit records, by whether the log took them.", result=("written", "failed")
    )
    audit_dropped_files: Counter = _counter(
        "audit_dropped_files",
        "Rotated audit files dropped: for their age, or before it for the size of all.",
        reason=AUDIT_DROP_REASONS,
    )
    audit_dropped_bytes: Counter = _counter("audit_dropped_bytes", "Bytes of these files.", reason=AUDIT_DROP_REASONS)
    audit_dropped_records: Counter = _counter(
        "audit_dropped_records",
        "Audit records in these files, where they could be counted.",
        reason=AUDIT_DROP_REASONS,
    )
    waiting: Gauge = _gauge("admissions_waiting", "Large or costly admissions that wait for the worker thread.")
    connections: Gauge = _gauge("connections", "Open connections, by port.", port=())
    connections_closed: Counter = _counter(
        "connections_closed",
        "Connections closed to make room for others (evicted) or for want of room (refused), by port.",
        port=("webhook", "admin"),
        result=("evicted", "refused"),
    )
    cache_bytes: Gauge = _gauge("cache_bytes", "Memory that the entries of a cache take at most.", cache=())
    cache_budget_bytes: Gauge = _gauge("cache_budget_bytes", "Memory that the entries of a cache may take.", cache=())
    refused_requests: Counter = _counter(
        "http_refused_requests", "Requests to the webhook port that were no admission, by HTTP status.", code=()
    )

    def __post_init__(self) -> None:
        # A second series beside each counter, of no use to anybody here.
        disable_created_metrics()  # type: ignore[no-untyped-call] # its author left it without types
        self.registry = CollectorRegistry()
        for each in fields(self):
            self.registry.register(getattr(self, each.name))
        self.cluster_age_seconds.set(math.nan)
        # Looking a child up takes a lock and a check of its labels, for every pod.
        self._audited = {result: self.audit_records.labels(result) for result in ("written", "failed")}

    def start_at_zero(self, outcomes: Iterable[str], verdicts: Iterable[str], refusals: Iterable[int]) -> None:
        """Show these counts from the start: to Prometheus' increase(), a series that appears with 1 has not grown."""
        for outcome in outcomes:
            self.admissions.start_at_zero(outcome)
        for verdict in verdicts:
            self.admissions.start_verdict_at_zero(verdict)
        for status in refusals:
            self.refused_requests.labels(str(status))

    def count_audit_record(self, result: str) -> None:
        """Count one audit record, `written` or `failed`."""
        self._audited[result].inc()

    def count_audit_drop(self, reason: str, files: int, size_bytes: int, records: int) -> None:
        """Count rotated audit files that were dropped, with their bytes and records."""
        self.audit_dropped_files.labels(reason).inc(files)
        self.audit_dropped_bytes.labels(reason).inc(size_bytes)
        self.audit_dropped_records.labels(reason).inc(records)

    def render(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def view_follows(
        self, nodes: Callable[[], float], pods: Callable[[], float], age_seconds: Callable[[], float]
    ) -> None:
        """Let the size of the view and its age be asked anew at each scrape."""
        self.cluster_nodes.set_function(nodes)
        self.cluster_pods.set_function(pods)
        self.cluster_age_seconds.set_function(age_seconds)

    def show_process(self) -> None:
        """Show the process's memory, processor time and garbage collections beside these."""
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def show_caches(self, caches: Mapping[str, Sequence[ByteCache[Any, Any]]]) -> None:
        """Show how much the entries of these caches take and may take, those of one name together."""

        def used(of: Sequence[ByteCache[Any, Any]]) -> Callable[[], float]:
            return lambda: sum(each.used_bytes for each in of)

        for name, of in caches.items():
            self.cache_bytes.labels(name).set_function(used(of))
            self.cache_budget_bytes.labels(name).set(sum(each.budget_bytes for each in of))

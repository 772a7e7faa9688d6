"""The Prometheus metrics, under the names of the public contract."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

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


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        # A second series beside each counter, of no use to anybody here.
        disable_created_metrics()  # type: ignore[no-untyped-call] # its author left it without types
        self.registry = CollectorRegistry()
        self.admissions = AdmissionCounts()
        self.registry.register(self.admissions)
        self.admission_seconds = self._durations("admission_duration_seconds", "From a request's body to its answer.")
        self.in_flight = self._gauge("admissions_in_flight", "Admission requests being answered now.")
        self.predictions = self._counter(
            "predictions", "Pods that were bound, by how that compares with what was foretold of them.", ("result",)
        )
        for result in PREDICTION_RESULTS:
            self.predictions.labels(result)
        self.placement_seconds = self._durations("placement_duration_seconds", "Duration of a placement check.")
        self.cluster_nodes = self._gauge("cluster_nodes", "Nodes in the view of the cluster.")
        self.cluster_pods = self._gauge("cluster_pods", "Running pods in the view of the cluster.")
        self.cluster_age_seconds = self._gauge(
            "cluster_age_seconds", "Since when the view of the cluster has not been known to be current; NaN: no view."
        )
        self.cluster_age_seconds.set(math.nan)
        self.feed_faults = self._counter(
            "feed_faults", "Faults of the webhook's own while it followed the cluster; its log tells them.", ()
        )
        self.policy = Info("placement_webhook_policy", "The policy in force.", registry=self.registry)
        self.policy_reloads = self._counter("policy_reloads", "Policy files read, by result.", ("result",))
        self.certificate_not_after = self._gauge(
            "certificate_not_after_timestamp_seconds", "When the served certificate expires."
        )
        self.certificate_not_before = self._gauge(
            "certificate_not_before_timestamp_seconds", "When the served certificate begins to be valid."
        )
        self.certificate_reloads = self._counter(
            "certificate_reloads", "Attempts to serve changed certificate files, by result.", ("result",)
        )
        for result in RELOAD_RESULTS:
            self.certificate_reloads.labels(result)
        self._add_audit()
        self._add_serving()

    def _add_serving(self) -> None:
        self.waiting = self._gauge("admissions_waiting", "Large or costly admissions that wait for the worker thread.")
        self.connections = self._gauge("connections", "Open connections, by port.", ("port",))
        self.connections_closed = self._counter(
            "connections_closed",
            "Connections closed to make room for others (evicted) or for want of room (refused), by port.",
            ("port", "result"),
        )
        for port in ("webhook", "admin"):
            for result in ("evicted", "refused"):
                self.connections_closed.labels(port, result)
        self.cache_bytes = self._gauge("cache_bytes", "Memory that the entries of a cache take at most.", ("cache",))
        self.cache_budget_bytes = self._gauge(
            "cache_budget_bytes", "Memory that the entries of a cache may take.", ("cache",)
        )
        self.refused_requests = self._counter(
            "http_refused_requests", "Requests to the webhook port that were no admission, by HTTP status.", ("code",)
        )

    def _add_audit(self) -> None:
        self.audit_records = self._counter("audit_records", "Audit records, by whether the log took them.", ("result",))
        # Looking a child up takes a lock and a check of its labels, for every pod.
        self._audited = {result: self.audit_records.labels(result) for result in ("written", "failed")}
        self.audit_dropped_files = self._counter(
            "audit_dropped_files",
            "Rotated audit files dropped: for their age, or before it for the size of all.",
            ("reason",),
        )
        self.audit_dropped_bytes = self._counter("audit_dropped_bytes", "Bytes of these files.", ("reason",))
        self.audit_dropped_records = self._counter(
            "audit_dropped_records", "Audit records in these files, where they could be counted.", ("reason",)
        )
        for reason in AUDIT_DROP_REASONS:
            self.count_audit_drop(reason, 0, 0, 0)

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

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(name, text, labels, namespace="placement_webhook", registry=self.registry)

    def show_caches(self, caches: Mapping[str, Sequence[ByteCache[Any, Any]]]) -> None:
        """Show how much the entries of these caches take and may take, those of one name together."""

        def used(of: Sequence[ByteCache[Any, Any]]) -> Callable[[], float]:
            return lambda: sum(each.used_bytes for each in of)

        for name, of in caches.items():
            self.cache_bytes.labels(name).set_function(used(of))
            self.cache_budget_bytes.labels(name).set(sum(each.budget_bytes for each in of))

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, namespace="placement_webhook", registry=self.registry)

    def _durations(self, name: str, text: str) -> Histogram:
        return Histogram(
            name, text, namespace="placement_webhook", registry=self.registry, buckets=_DURATION_BOUNDS_SECONDS
        )

"""The Prometheus metrics. Each metric is one field of `Metrics`."""

# ruff: noqa: RUF009 - the calls return fields of the dataclass

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from webhook.runtime.admission_counts import WAITS_FOR, AdmissionCounts
from webhook.runtime.byte_cache import ByteCache

AUDIT_RESULTS = ("written", "failed", "omitted")
EVENT_RESULTS = ("written", "failed", "dropped", "no_object")
AUDIT_DROP_REASONS = ("age", "size")
PredictionResult = Literal[
    "same_node",
    "in_best_set",
    "feasible_elsewhere",
    "predicted_infeasible_but_bound",
    "predicted_waiting_but_bound",
    "predicted_feasible_but_pending",
]
EXTENDER_VERBS = ("filter", "prioritize")
EXTENDER_RESULTS = ("scored", "neutral", "failed")
RELOAD_RESULTS = ("success", "failure")
POLICY_RESULTS = ("applied", "rejected")
# From a patch without a check, over a check in a very large cluster, to the timeout of the API server.
_DURATION_BOUNDS_SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NAMESPACE = "placement_webhook"

M = TypeVar("M")
N = TypeVar("N", Counter, Gauge)


def _row(make: Callable[[], M], name: str, labels: Iterable[str]) -> M:
    """Return a field of `Metrics`. Its metadata is the row in the table of docs/operations.md."""
    metric: M = field(default_factory=make, metadata={"name": f"{_NAMESPACE}_{name}", "labels": tuple(labels)})
    return metric


def _make(kind: type[N], name: str, text: str, labels: Mapping[str, Sequence[str]]) -> N:
    metric = kind(name, text, tuple(labels), namespace=_NAMESPACE, registry=None)
    for values in itertools.product(*labels.values()) if labels else ():
        metric.labels(*values)
    return metric


def _counter(name: str, text: str, /, **labels: Sequence[str]) -> Counter:
    """Return a counter. The series with the given label values are exported as 0 from the start."""
    return _row(lambda: _make(Counter, name, text, labels), f"{name}_total", labels)


def _gauge(name: str, text: str, /, **labels: Sequence[str]) -> Gauge:
    """Return a gauge. The series with the given label values are exported as 0 from the start."""
    return _row(lambda: _make(Gauge, name, text, labels), name, labels)


def _durations(name: str, text: str) -> Histogram:
    return _row(
        lambda: Histogram(name, text, namespace=_NAMESPACE, registry=None, buckets=_DURATION_BOUNDS_SECONDS), name, ()
    )


@dataclass(eq=False)
class Metrics:
    """The metrics of one server, in their own registry, which exports them in this order.

    The metrics of `admissions` are in `webhook.runtime.admission_counts`.
    """

    admissions: AdmissionCounts = field(default_factory=AdmissionCounts)
    admission_seconds: Histogram = _durations("admission_duration_seconds", "Time from request body to response.")
    in_flight: Gauge = _gauge("admissions_in_flight", "Admission requests in progress.")
    predictions: Counter = _counter(
        "predictions",
        "Predictions, by whether the pod was bound to the predicted node.",
        result=get_args(PredictionResult),
    )
    placement_seconds: Histogram = _durations("placement_duration_seconds", "Duration of a placement check.")
    extender_requests: Counter = _counter(
        "extender_requests",
        "Calls of the scheduler extender, by verb and result.",
        verb=EXTENDER_VERBS,
        result=EXTENDER_RESULTS,
    )
    extender_seconds: Histogram = _durations(
        "extender_duration_seconds", "Time from request to response of the scheduler extender."
    )
    cluster_nodes: Gauge = _gauge("cluster_nodes", "Nodes in the cluster view.")
    cluster_pods: Gauge = _gauge("cluster_pods", "Running pods in the cluster view.")
    cluster_left_out: Gauge = _gauge(
        "cluster_left_out_objects",
        "Objects that the cluster view leaves out because they are malformed, too large or too many.",
    )
    waiting_pods: Gauge = _gauge(
        "waiting_pods",
        "Pods that wait for a node: with reserved room, or without room.",
        state=("reserved", "without_room"),
    )
    cluster_age_seconds: Gauge = _gauge(
        "cluster_age_seconds", "Age of the stalest watch of the cluster view in seconds; NaN without a view."
    )
    free_cards: Gauge = _gauge("free_cards", "Free cards, by pool and product.", pool=(), product=())
    nodes_by_free_cards: Gauge = _gauge(
        "nodes_by_free_cards",
        "Nodes with this number of free cards, by pool and product.",
        pool=(),
        product=(),
        free=(),
    )
    unusable_free_cards_share: Gauge = _gauge(
        "unusable_free_cards_share",
        "Share of the free cards that typical pods cannot use, by pool and product.",
        pool=(),
        product=(),
    )
    largest_gang: Gauge = _gauge(
        "largest_gang",
        "Pods in the largest gang of whole nodes that one topology domain could start now, by topology key.",
        domain_key=(),
    )
    held_cards: Gauge = _gauge(
        "held_cards", "Cards that are held and not used, by reason and resource.", reason=(), resource=()
    )
    held_pods: Gauge = _gauge("held_pods", "Pods that hold cards and do not use them, by reason.", reason=())
    missed_pods: Gauge = _gauge(
        "missed_pods",
        "Pods in the live view that the policy concerns and that were stored without its patch; NaN without one.",
    )
    feed_faults: Counter = _counter(
        "feed_faults", "Internal errors of the webhook while it watched the cluster; its log has the details."
    )
    policy: Gauge = _gauge("policy_info", "1 for each policy in force.", name=(), revision=())
    policy_reloads: Counter = _counter(
        "policy_reloads", "New contents of the policy's source, by result.", result=POLICY_RESULTS
    )
    policies_missing: Gauge = _gauge(
        "policies_missing",
        "Rejected PlacementPolicy objects whose last good generation was in force, but is not known to this replica.",
    )
    policy_rejected: Gauge = _gauge(
        "policy_rejected", "1 while the newest content of the policy's source is not in force, else 0."
    )
    exported_policy_in_step: Gauge = _gauge(
        "exported_policy_in_step",
        "1 while the exported policy in the cluster equals the policy in force, 0 while it does not; NaN in replicas "
        "that do not export it.",
    )
    certificate_not_after: Gauge = _gauge(
        "certificate_not_after_timestamp_seconds", "Expiry time of the served certificate."
    )
    certificate_not_before: Gauge = _gauge(
        "certificate_not_before_timestamp_seconds", "Start of the validity of the served certificate."
    )
    certificate_reloads: Counter = _counter(
        "certificate_reloads", "Reloads of changed certificate files, by result.", result=RELOAD_RESULTS
    )
    events: Counter = _counter(
        "events", "Kubernetes Events about pods, and reports that became none, by result.", result=EVENT_RESULTS
    )
    audit_records: Counter = _counter(
        "audit_records", "Audit records, by whether they were written to the log.", result=AUDIT_RESULTS
    )
    audit_dropped_files: Counter = _counter(
        "audit_dropped_files",
        "Rotated audit files dropped, because of their age or of the total size.",
        reason=AUDIT_DROP_REASONS,
    )
    audit_dropped_bytes: Counter = _counter(
        "audit_dropped_bytes", "Bytes of the dropped files.", reason=AUDIT_DROP_REASONS
    )
    audit_dropped_records: Counter = _counter(
        "audit_dropped_records",
        "Audit records in the dropped files, if they could be counted.",
        reason=AUDIT_DROP_REASONS,
    )
    waiting: Gauge = _gauge("admissions_waiting", "Large or costly admissions in the queue of the worker thread.")
    connections: Gauge = _gauge("connections", "Open connections, by port.", port=())
    connections_closed: Counter = _counter(
        "connections_closed",
        "Connections closed to make room for others (evicted), or rejected at the limit (refused) or because of the "
        "certificate of the client (untrusted), by port.",
        port=("webhook", "admin"),
        result=("evicted", "refused", "untrusted"),
    )
    cache_bytes: Gauge = _gauge("cache_bytes", "Upper estimate of the memory of the entries of a cache.", cache=())
    cache_budget_bytes: Gauge = _gauge("cache_budget_bytes", "Memory limit of the entries of a cache.", cache=())
    refused_requests: Counter = _counter(
        "http_refused_requests", "Requests to the webhook port rejected before admission, by HTTP status.", code=()
    )

    def __post_init__(self) -> None:
        # Disable the additional `_created` series of each counter.
        disable_created_metrics()  # type: ignore[no-untyped-call] # its author left it without types
        self.registry = CollectorRegistry()
        for each in fields(self):
            self.registry.register(getattr(self, each.name))
        self.cluster_age_seconds.set(math.nan)
        self.missed_pods.set(math.nan)
        self.exported_policy_in_step.set(math.nan)
        # Looking up a child takes a lock and validates the labels, for every pod.
        self._audited = {result: self.audit_records.labels(result) for result in AUDIT_RESULTS}

    def start_at_zero(
        self, outcomes: Iterable[str], verdicts: Iterable[str], refusals: Iterable[int], rules: Iterable[str]
    ) -> None:
        """Export these series as 0 from the start. Otherwise increase() in Prometheus misses the first 1."""
        for outcome in outcomes:
            self.admissions.start_at_zero("admission_requests", outcome, "")
            self.admissions.start_at_zero("shadowed_admissions", outcome)
        for verdict in verdicts:
            self.admissions.start_at_zero("placement_verdicts", verdict)
        for waits_for in WAITS_FOR:
            self.admissions.start_at_zero("waiting_verdicts", waits_for)
        for status in refusals:
            self.refused_requests.labels(str(status))
        for rule in rules:
            self.admissions.start_at_zero("rule_edits", rule)

    def count_audit_record(self, result: str) -> None:
        """Count one audit record, `written` or `failed`."""
        self._audited[result].inc()

    def count_audit_drop(self, reason: str, files: int, size_bytes: int, records: int) -> None:
        """Count rotated audit files that were dropped, with their bytes and records."""
        self.audit_dropped_files.labels(reason).inc(files)
        self.audit_dropped_bytes.labels(reason).inc(size_bytes)
        self.audit_dropped_records.labels(reason).inc(records)

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def show_process(self) -> None:
        """Add metrics of the process: memory, CPU time and garbage collections."""
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def show_caches(self, name: str, caches: Callable[[], Sequence[ByteCache[Any, Any]]]) -> None:
        """Export, under this name, the total memory that `caches` use and the sum of their limits."""
        self.cache_bytes.labels(name).set_function(lambda: sum(each.used_bytes for each in caches()))
        self.cache_budget_bytes.labels(name).set_function(lambda: sum(each.budget_bytes for each in caches()))

"""Metrics that are computed at each scrape."""

import math

import pytest

from webhook.runtime.byte_cache import ByteCache
from webhook.runtime.metrics import Metrics


def test_caches_of_one_name_are_summed_at_each_scrape() -> None:
    metrics = Metrics()
    caches = [ByteCache[str, str](100_000), ByteCache[str, str](50_000)]
    metrics.show_caches("pair", lambda: caches)
    alone = [ByteCache[str, str](7_000)]
    metrics.show_caches("alone", lambda: alone)

    def shown(name: str, cache: str) -> float | None:
        return metrics.registry.get_sample_value(f"placement_webhook_{name}", {"cache": cache})

    assert [shown("cache_bytes", "pair"), shown("cache_budget_bytes", "pair")] == [0, 150_000]
    for each in caches:
        each.put("key", "value", 1_000)
    assert shown("cache_bytes", "pair") == sum(each.used_bytes for each in caches) > 2_000
    assert [shown("cache_bytes", "alone"), shown("cache_budget_bytes", "alone")] == [0, 7_000]


def test_memory_and_garbage_collections_of_the_process_are_shown_where_asked_for() -> None:
    names = ("process_resident_memory_bytes", "process_cpu_seconds_total", "python_gc_collections_total")
    metrics = Metrics()
    assert not any(f"\n{name}" in metrics.render().decode() for name in names)

    metrics.show_process()

    shown = metrics.render().decode()
    assert [name for name in names if f"\n{name}" not in shown] == []


def test_durations_are_counted_from_a_tenth_of_a_millisecond_to_ten_seconds() -> None:
    metrics = Metrics()

    lines = metrics.render().decode().splitlines()

    for name in ("admission", "placement"):
        start = f'placement_webhook_{name}_duration_seconds_bucket{{le="'
        bounds = [line.removeprefix(start).partition('"')[0] for line in lines if line.startswith(start)]
        assert [float(each) for each in bounds] == [
            *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025),
            *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf")),
        ]


@pytest.mark.parametrize("name", ["cluster_age_seconds", "missed_pods", "exported_policy_in_step"])
def test_a_gauge_of_what_this_replica_does_not_follow_is_not_a_number(name: str) -> None:
    shown = Metrics().registry.get_sample_value(f"placement_webhook_{name}")
    assert shown is not None
    assert math.isnan(shown)


def test_counters_have_no_second_series_of_their_creation() -> None:
    metrics = Metrics()
    metrics.feed_faults.inc()

    assert "_created" not in metrics.render().decode()


# Names and labels on which users build.
CONTRACT = {
    "admission_requests_total": {"outcome", "workload_type"},
    "admission_duration_seconds_bucket": {"le"},
    "admissions_in_flight": set(),
    "rule_edits_total": {"rule"},
    "placement_verdicts_total": {"verdict"},
    "placement_duration_seconds_bucket": {"le"},
    "cluster_nodes": set(),
    "cluster_pods": set(),
    "cluster_age_seconds": set(),
    "policy_info": {"name", "revision"},
    "policy_reloads_total": {"result"},
    "certificate_not_after_timestamp_seconds": set(),
    "audit_records_total": {"result"},
}


def test_the_names_and_labels_of_the_contract_are_exported() -> None:
    metrics = Metrics()
    metrics.start_at_zero(["Patched"], ["Feasible"], [400], ["Spread"])
    metrics.policy.labels("default", "1").set(1)
    shown = {sample.name: set(sample.labels) for family in metrics.registry.collect() for sample in family.samples}

    assert {name: shown[f"placement_webhook_{name}"] for name in CONTRACT} == CONTRACT


def test_every_metric_has_a_help_text() -> None:
    texts = [family.documentation for family in Metrics().registry.collect()]

    assert [text for text in texts if len(text) < 10 or not text.endswith(".")] == []


def test_series_that_alerts_count_exist_from_the_start() -> None:
    metrics = Metrics()
    metrics.start_at_zero(["Error"], ["Unknown"], [503], ["Spread"])

    for name, labels in {
        "admission_requests": {"outcome": "Error", "workload_type": ""},
        "audit_records": {"result": "failed"},
        "audit_dropped_files": {"reason": "size"},
        "certificate_reloads": {"result": "failure"},
        "events": {"result": "failed"},
        "feed_faults": {},
        "http_refused_requests": {"code": "503"},
        "policy_reloads": {"result": "rejected"},
        "predictions": {"result": "predicted_infeasible_but_bound"},
        "rule_edits": {"rule": "Spread"},
    }.items():
        assert metrics.registry.get_sample_value(f"placement_webhook_{name}_total", labels) == 0, name


def test_dropped_audit_files_are_counted_with_their_bytes_and_records() -> None:
    metrics = Metrics()
    for reason, given in {"age": (1, 200, 30), "size": (2, 500, 0)}.items():
        metrics.count_audit_drop(reason, *given)
    metrics.count_audit_drop("age", 1, 1, 1)

    def shown(what: str, reason: str) -> float | None:
        return metrics.registry.get_sample_value(f"placement_webhook_audit_dropped_{what}_total", {"reason": reason})

    kinds = ("files", "bytes", "records")
    assert [shown(each, "age") for each in kinds] == [2, 201, 31]
    assert [shown(each, "size") for each in kinds] == [2, 500, 0]


def test_each_outcome_and_verdict_begins_at_zero_also_in_shadow_mode() -> None:
    metrics = Metrics()
    metrics.start_at_zero(["Patched", "Denied"], ["Waiting"], [], [])

    for name, labels in (
        ("shadowed_admissions", {"outcome": "Denied"}),
        ("shadowed_admissions", {"outcome": "Patched"}),
        ("placement_verdicts", {"verdict": "Waiting"}),
        ("waiting_verdicts", {"waits_for": "room"}),
        ("waiting_verdicts", {"waits_for": "preemption"}),
        ("extender_requests", {"verb": "filter", "result": "failed"}),
        ("connections_closed", {"port": "admin", "result": "refused"}),
    ):
        assert metrics.registry.get_sample_value(f"placement_webhook_{name}_total", labels) == 0, (name, labels)
    assert metrics.registry.get_sample_value("placement_webhook_waiting_pods", {"state": "without_room"}) == 0


def test_audit_records_are_counted_by_result() -> None:
    metrics = Metrics()
    for result in ("written", "failed", "written"):
        metrics.count_audit_record(result)

    name = "placement_webhook_audit_records_total"
    assert [metrics.registry.get_sample_value(name, {"result": each}) for each in ("written", "failed")] == [2, 1]

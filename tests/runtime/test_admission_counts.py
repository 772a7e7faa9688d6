"""Counts of admissions are exported to Prometheus."""

from prometheus_client import CollectorRegistry

from webhook.runtime.admission_counts import AdmissionCount, AdmissionCounts


def shown(counts: AdmissionCounts, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(counts)
    return registry.get_sample_value(f"placement_webhook_{name}_total", labels)


def test_each_admission_counts_for_its_outcome_its_edits_and_its_verdict() -> None:
    counts = AdmissionCounts()
    counted = AdmissionCount("Patched", "training", (("BinPacking", 2), ("SchedulerName", 1)), "Feasible")

    counts.count(counted)
    counts.count(counted)
    counts.count(AdmissionCount("Bypassed"))

    assert shown(counts, "admission_requests", outcome="Patched", workload_type="training") == 2
    assert shown(counts, "admission_requests", outcome="Bypassed", workload_type="") == 1
    assert shown(counts, "rule_edits", rule="BinPacking") == 4
    assert shown(counts, "rule_edits", rule="SchedulerName") == 2
    assert shown(counts, "placement_verdicts", verdict="Feasible") == 2


def test_a_scrape_resets_no_count() -> None:
    counts = AdmissionCounts()
    counts.count(AdmissionCount("Denied", "training"))

    assert shown(counts, "admission_requests", outcome="Denied", workload_type="training") == 1
    counts.count(AdmissionCount("Denied", "training"))

    assert shown(counts, "admission_requests", outcome="Denied", workload_type="training") == 2


def test_any_number_of_different_tallies_is_counted() -> None:
    counts = AdmissionCounts()

    for number in range(3000):
        counts.count(AdmissionCount("Patched", "training", (("GpuProduct", number),)))
        assert len(counts._counts) <= 1024

    assert shown(counts, "admission_requests", outcome="Patched", workload_type="training") == 3000
    assert shown(counts, "rule_edits", rule="GpuProduct") == sum(range(3000))


def test_counts_are_exported_from_zero() -> None:
    counts = AdmissionCounts()
    assert shown(counts, "admission_requests", outcome="Error", workload_type="") is None

    counts.start_at_zero("admission_requests", "Error", "")
    counts.start_at_zero("placement_verdicts", "Waiting")
    counts.start_at_zero("rule_edits", "Spread")

    assert shown(counts, "admission_requests", outcome="Error", workload_type="") == 0
    assert shown(counts, "placement_verdicts", verdict="Waiting") == 0
    assert shown(counts, "rule_edits", rule="Spread") == 0


def test_other_objects_are_counted_apart_from_pods() -> None:
    counts = AdmissionCounts()

    counts.count(AdmissionCount("Denied", kind="Namespace"))

    assert shown(counts, "object_admission_requests", kind="Namespace", outcome="Denied") == 1
    assert shown(counts, "admission_requests", outcome="Denied", workload_type="") is None


def test_answers_that_are_not_given_are_counted_for_objects_too() -> None:
    counts = AdmissionCounts()

    for kind in ("", "Namespace"):
        counts.count(AdmissionCount("Bypassed", kind=kind, shadow="Denied"))

    assert shown(counts, "shadowed_admissions", outcome="Denied") == 2


def test_what_waiting_pods_wait_for_is_counted() -> None:
    counts = AdmissionCounts()

    for waits_for in ("room", "preemption", "room", ""):
        counts.count(AdmissionCount("Patched", verdict="Waiting", waits_for=waits_for))

    assert shown(counts, "placement_verdicts", verdict="Waiting") == 4
    assert [shown(counts, "waiting_verdicts", waits_for=each) for each in ("room", "preemption", "")] == [2, 1, None]

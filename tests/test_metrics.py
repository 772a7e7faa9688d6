"""Metrics that are computed at each scrape."""

from webhook.byte_cache import ByteCache
from webhook.metrics import Metrics


def test_caches_of_one_name_are_summed_at_each_scrape() -> None:
    metrics = Metrics()
    caches = [ByteCache[str, str](100_000), ByteCache[str, str](50_000)]
    metrics.show_caches({"pair": caches, "alone": [ByteCache[str, str](7_000)]})

    def shown(name: str, cache: str) -> float | None:
        return metrics.registry.get_sample_value(f"placement_webhook_{name}", {"cache": cache})

    assert [shown("cache_bytes", "pair"), shown("cache_budget_bytes", "pair")] == [0, 150_000]
    for each in caches:
        each.put("key", "value", 1_000)
    assert shown("cache_bytes", "pair") == sum(each.used_bytes for each in caches) > 2_000
    assert [shown("cache_bytes", "alone"), shown("cache_budget_bytes", "alone")] == [0, 7_000]


def test_the_view_is_read_at_each_scrape() -> None:
    metrics, seen = Metrics(), {"nodes": 1.0, "pods": 2.0, "age": 3.0}
    metrics.view_follows(lambda: seen["nodes"], lambda: seen["pods"], lambda: seen["age"])
    names = ("cluster_nodes", "cluster_pods", "cluster_age_seconds")
    values = [metrics.registry.get_sample_value(f"placement_webhook_{name}") for name in names]
    seen.update(nodes=4.0, pods=5.0, age=6.0)

    assert values == [1.0, 2.0, 3.0]
    assert [metrics.registry.get_sample_value(f"placement_webhook_{name}") for name in names] == [4.0, 5.0, 6.0]

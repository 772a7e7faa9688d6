"""A cache stays within its budget, and its size estimates are not below the real memory."""

import tracemalloc
from typing import Any

import orjson
import pytest

from tests.support.admission import PRODUCT, TYPE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.servers.server import make_work_budget
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.runtime.byte_cache import ByteCache, parsed_bytes, value_count
from webhook.serving.decisions.decision_cache import DecisionCache

POLICY = policy_with()
SNAPSHOT = snapshot_from_documents([Document("node", make_node_object("node-1"))])
VIEW = ClusterView(SNAPSHOT, Scheduler(cache_bytes=0), assumed=AssumedPods(SNAPSHOT))
OVERHEAD = 256


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    cache: ByteCache[str, int] = ByteCache(5 * (100 + OVERHEAD))
    for number, key in enumerate("abcde"):
        assert cache.put(key, number, 100)
    assert cache.get("a") == 0

    assert cache.put("f", 5, 100)

    assert [cache.get(key) for key in "abcdef"] == [0, None, 2, 3, 4, 5]
    assert cache.used_bytes == cache.budget_bytes


def test_a_larger_entry_evicts_as_many_as_it_needs() -> None:
    cache: ByteCache[str, int] = ByteCache(8 * (100 + OVERHEAD))
    for number, key in enumerate("abcdefgh"):
        cache.put(key, number, 100)

    cache.put("large", 9, 2 * 100 + OVERHEAD)

    assert [key for key in "abcdefgh" if cache.get(key) is None] == ["a", "b"]
    assert cache.used_bytes == cache.budget_bytes


def test_an_entry_of_more_than_a_quarter_of_the_budget_is_not_kept() -> None:
    cache: ByteCache[str, int] = ByteCache(4096)
    assert cache.put("fits", 1, 1024 - OVERHEAD)
    assert not cache.put("too large", 2, 1025 - OVERHEAD)
    assert (cache.get("fits"), cache.get("too large"), len(cache)) == (1, None, 1)


def test_an_entry_that_becomes_too_large_is_gone() -> None:
    cache: ByteCache[str, int] = ByteCache(4096)
    cache.put("a", 1, 100)
    assert not cache.put("a", 2, 1025 - OVERHEAD)
    assert (cache.get("a"), cache.used_bytes) == (None, 0)


def test_an_entry_put_again_counts_once_and_one_dropped_not_at_all() -> None:
    cache: ByteCache[str, int] = ByteCache(4096)
    cache.put("a", 1, 100)
    cache.put("a", 2, 200)
    assert (cache.get("a"), cache.used_bytes) == (2, 200 + OVERHEAD)
    cache.drop("a")
    cache.drop("a")
    assert (len(cache), cache.used_bytes) == (0, 0)
    cache.put("b", 1, 100)
    cache.clear()
    assert (cache.get("b"), cache.used_bytes) == (None, 0)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" + b"{}," * 10_000 + b"{}]", id="empty objects"),
        pytest.param(b"[" + b"[]," * 10_000 + b"[]]", id="empty lists"),
        pytest.param(b"[" + b"0.1," * 10_000 + b"1]", id="numbers"),
        pytest.param(b'{"a":' * 200 + b"1" + b"}" * 200, id="nested"),
        pytest.param(orjson.dumps({f"key-{number}": "" for number in range(10_000)}), id="keys"),
        pytest.param(orjson.dumps(["é" * 500] * 100), id="text that is no ASCII"),
    ],
)
def test_the_estimate_of_parsed_json_is_not_below_its_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        parsed = orjson.loads(data)
        taken_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert parsed
    assert taken_bytes <= parsed_bytes(data)


def test_values_are_counted_without_parsing() -> None:
    assert value_count(b'{"a":[1,2,{}]}') >= 6


def _selector(number: int) -> PodBuilder:
    return make_pod("a").spec(nodeSelector={f"key-{number}-{each}": "value" for each in range(400)})


def _tolerations(number: int) -> PodBuilder:
    return make_pod("a").spec(tolerations=[{"key": f"{number}-{each}", "operator": "Exists"} for each in range(400)])


def _terms(number: int) -> PodBuilder:
    terms = [
        {
            "labelSelector": {"matchLabels": {f"{number}-{each}": "v"}},
            "topologyKey": "zone",
            "namespaces": [f"n-{each}"],
        }
        for each in range(150)
    ]
    return make_pod("a").spec(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


def _resources(number: int) -> PodBuilder:
    requests = {f"example.com/{number}-{each}": "1" for each in range(400)}
    return make_pod("a").spec(containers=[{"name": "main", "resources": {"requests": requests}}])


def _products(number: int) -> PodBuilder:
    """Each nodeSelectorTerm gets all products of the pod."""
    required = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": f"k-{each}", "operator": "Exists"}]} for each in range(10)]
    }
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    products = ",".join(f"{'PRODUCT' * 8}-{number}-{each}" for each in range(100))
    return make_pod("a").gpu(1).annotate(PRODUCT, products).spec(affinity=affinity)


@pytest.mark.slow
@pytest.mark.parametrize("make", [_selector, _tolerations, _terms, _resources, _products])
def test_a_cache_takes_no_more_memory_than_estimated(make: Any) -> None:
    """Pods of about 12 KB, each another: what is kept of them is measured, and held against what the caches count."""
    decisions = DecisionCache()
    bodies = [orjson.dumps(make(number).annotate(TYPE, "training").obj()) for number in range(8)]
    tracemalloc.start()
    try:
        for body in bodies:
            request = make_request(orjson.loads(body))
            decisions.decide(request, POLICY, VIEW, make_work_budget())
            del request
        taken_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    caches = [cache for group in decisions.caches.values() for cache in group]
    assert len(caches[0]) > 5
    assert taken_bytes <= sum(cache.used_bytes for cache in caches) + 2**20


def test_the_entries_used_last_are_kept_however_large_they_are() -> None:
    cache: ByteCache[str, str] = ByteCache(1024, least=2)
    for key in ("a", "b", "c"):
        assert cache.put(key, key, 1_000_000)

    assert [cache.get(key) for key in ("a", "b", "c")] == [None, "b", "c"]


def test_a_budget_of_zero_keeps_nothing() -> None:
    assert not ByteCache[str, str](0, least=2).put("a", "a", 1)

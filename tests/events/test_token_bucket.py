"""Buckets as those of client-go: a burst, then one token at a time."""

from tests.support.servers.server import Clock
from webhook.events.pacing import Clocks, Pacing
from webhook.events.token_bucket import TokenBucket, TokenBuckets


def test_bucket_gives_its_burst_and_then_one_at_a_time() -> None:
    bucket = TokenBucket(3, 10.0, now=0.0)
    assert [bucket.take(0.0) for _ in range(4)] == [0.0, 0.0, 0.0, 10.0]
    assert bucket.take(4.0) == 6.0
    assert bucket.take(10.0) == 0.0


def test_bucket_holds_no_more_than_its_burst() -> None:
    bucket = TokenBucket(3, 10.0, now=0.0)
    assert bucket.available(1000.0) == 3
    bucket.take(1000.0, 2)
    assert bucket.available(1000.0) == 1


def test_each_key_has_a_bucket_of_its_own() -> None:
    buckets = TokenBuckets(25, 300.0)
    assert [buckets.of("a", 0.0).take(0.0) for _ in range(26)] == [0.0] * 25 + [300.0]
    assert buckets.of("b", 0.0).take(0.0) == 0.0


def test_memory_of_many_keys_is_bounded() -> None:
    buckets = TokenBuckets(25, 300.0)
    for number in range(20_000):
        buckets.of(f"source-{number}", 0.0)
    assert len(buckets._buckets) < 5000


def test_each_source_has_25_events_and_then_one_in_five_minutes() -> None:
    pacing = Pacing(Clocks(lambda: 0.0))
    assert [pacing.wait_seconds("team-a", f"event-{number}", "a") for number in range(26)] == [0.0] * 25 + [300.0]
    assert pacing.wait_seconds("team-a", "another", "b") == 0.0


def test_interval_between_writes_of_an_event_doubles_to_a_minute_until_it_is_quiet() -> None:
    clock = Clock(0.0)
    pacing = Pacing(Clocks(clock))
    intervals = []
    for _write in range(8):
        assert pacing.wait_seconds("team-a", "event", "a") == 0.0
        intervals.append(pacing.wait_seconds("team-a", "event", "a"))
        clock.seconds += intervals[-1]
    assert intervals == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]

    clock.seconds += 9 * 60.0 + 0.5
    assert pacing.wait_seconds("team-a", "event", "a") == 0.0
    assert pacing.wait_seconds("team-a", "event", "a") == 1.0


def test_interval_is_that_of_each_event() -> None:
    pacing = Pacing(Clocks(lambda: 0.0))
    asked = [("team-a", "event"), ("team-a", "another"), ("team-b", "event"), ("team-a", "event")]
    assert [pacing.wait_seconds(*each, "a") for each in asked] == [0.0, 0.0, 0.0, 1.0]
